package headless

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/fixtures/world"
)

// A ticket was posted and the process killed before it could note the answer.
// Reading changes nothing; the verdict needs a reason and the typed id; what
// was settled is settled once; the world was acted upon once.
func TestSettle(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	dir := t.TempDir()
	w := world.StartTest(t, world.Options{Dir: dir})
	id, _ := p.start(ExitWaits, posts, "--var", "WORLD="+w.URL())
	a := p.do("inbox", "--json").objects()[0]["id"].(string)
	p.do("approve", a).want(ExitDone)
	if s := p.spawn([]string{"PAWL_CRASH=after-effect@/tickets"}, "resume", id); s.code != -1 {
		t.Fatalf("was not killed: %d\n%s%s", s.code, s.out, s.err)
	}

	events := p.do("verify", "--json").want(ExitDone).object()["events"]
	items := p.do("inbox", "--json").want(ExitDone).objects()
	if len(items) != 1 || items[0]["kind"] != "ambiguous" || !strings.Contains(items[0]["next"].(string), "settle") {
		t.Fatalf("inbox: %v", items)
	}
	e := items[0]["id"].(string)
	_, short, _ := strings.Cut(e, ".")
	p.do("show", e).want(ExitDone).has("it may have happened, or not", "cost if wrong", "the model gets", "--confirm "+short).lacks("failed")
	shown := p.do("show", e, "--json").want(ExitDone).object()
	if shown["verdict"] != "unknown" || shown["state"] != "ambiguous" {
		t.Errorf("shown: %v %v", shown["verdict"], shown["state"])
	}
	if after := p.do("verify", "--json").object()["events"]; after != events {
		t.Errorf("reading made %v events out of %v", after, events)
	}

	p.do("settle", e, "happened").want(ExitError).has("pawl: ", "--reason", "next: ")
	p.do("settle", e, "happened", "--reason", "I saw it").want(ExitError).has("--confirm " + short)
	p.do("settle", e, "happened", "--reason", "I saw it", "--confirm", "e99").want(ExitError).has("--confirm " + short)
	p.do("settle", e, "probe").want(ExitError).threeParts().has("no way to look")
	p.do("settle", id+".e77", "wait").want(ExitError).threeParts().has("is not pending")
	p.do("settle", "rnobody.e1", "wait").want(ExitError).threeParts().has("is not pending")
	p.do("settle", e, "happened", "--reason", "I saw it", "--confirm", short).want(ExitDone).has("resume " + id)
	p.do("settle", e, "retry", "--reason", "no", "--confirm", short).want(ExitError).threeParts().has("is not pending")
	p.do("resume", id).want(ExitDone)

	effects := p.do("show", id, "--json").object()["effects"].([]any)
	if v := effects[0].(map[string]any); v["verdict"] != "happened" || v["forced"] != true || v["state"] != "forced_happened" {
		t.Errorf("settled: %v", v)
	}
	log, err := world.ReadLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	if v := world.Judge(log, nil); v.Duplicates != 0 || len(v.Actions) != 1 {
		t.Errorf("the world saw %v", v.Actions)
	}
	p.do("verify").want(ExitDone)
}

// What a run did in its worktree is shown, previewed and landed, once.
func TestDiffAndLand(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	repo := p.gitRepo()
	script := `
name = "writes"
[[step]]
[[step.call]]
tool = "write_file"
args = { path = "new.txt", content = "made by the run\n" }
[[step]]
[[step.call]]
tool = "finish"
args = { summary = "Written." }
`
	p.write("repo/loose.txt", "not committed\n")
	s := p.do("run", "write a file", "--repo", repo, "--script", p.write("s.toml", script), "--headless").want(ExitDone)
	s.has("1 uncommitted change: loose.txt", "--with-changes", "pawl --ledger "+p.ledger+" land r")
	id := strings.TrimSuffix(strings.Fields(s.out)[1], ":")
	if err := os.Remove(filepath.Join(repo, "loose.txt")); err != nil {
		t.Fatal(err)
	}
	p.do("diff", id).want(ExitDone).has("+made by the run")
	if raw := p.do("diff", id, "--raw").want(ExitDone).out; !strings.HasPrefix(raw, "diff --git") {
		t.Errorf("raw: %q", raw)
	}
	p.do("land", id, "--dry-run").want(ExitDone).has("new.txt", "main")
	if _, err := os.Stat(filepath.Join(repo, "new.txt")); err == nil {
		t.Error("a dry run landed")
	}
	p.do("land", id, "--onto", "nowhere").want(ExitError).has("nowhere", "next: ")
	v := p.do("land", id, "--json").want(ExitDone).object()
	if v["done"] != true || v["onto"] != "main" {
		t.Errorf("land: %v", v)
	}
	if b, err := os.ReadFile(filepath.Join(repo, "new.txt")); err != nil || string(b) != "made by the run\n" {
		t.Errorf("landed: %q, %v", b, err)
	}
	p.do("land", id).want(ExitDone).has("has landed on main")
	p.do("inbox", "--json").want(ExitDone).lacks(id)
}

// gitRepo is a checkout with one commit on main.
func (p *pawlCmd) gitRepo() string {
	p.t.Helper()
	dir := filepath.Dir(p.write("repo/old.txt", "old\n"))
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "-b", "main"},
		{"add", "--all"},
		{"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false", "commit", "--quiet", "-m", "start"},
	} {
		cmd := exec.CommandContext(p.t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			p.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// The first interrupt waits for what is in flight, the second does not; what
// was in flight is then unknown, and never called a failure.
func TestSecondInterruptStopsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	script := `
name = "stuck"
[[step]]
[[step.call]]
tool = "shell"
args = { command = "echo here > started; while :; do sleep 1; done" }
`
	cmd := p.process(nil, "run", "never end", "--repo", p.gitRepo(), "--script", p.write("s.toml", script), "--headless")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, said := bufio.NewScanner(out), bufio.NewScanner(errs)
	id := strings.TrimSuffix(strings.Fields(readUntil(t, lines, "run r"))[1], ":")
	readUntil(t, lines, "sent: ")
	work := p.do("show", id, "--json").want(ExitDone).object()["workspace"].(map[string]any)["path"].(string)
	for started := filepath.Join(work, "started"); ; time.Sleep(10 * time.Millisecond) { // until the command itself says so
		if _, err := os.Stat(started); err == nil {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("the command never started")
		}
	}
	for _, wait := range []string{"at a safe point", "Stopped at once"} {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		readUntil(t, said, wait)
	}
	rest := readUntil(t, lines, "goes on")
	for lines.Scan() {
		rest += lines.Text()
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != ExitWaits || !strings.Contains(rest, "unknown") || strings.Contains(rest, "safe point") {
		t.Errorf("code %d: %s", code, rest)
	}
	effects := p.do("show", id, "--json").want(ExitDone).object()["effects"].([]any)
	if v := effects[0].(map[string]any); v["verdict"] != "unknown" {
		t.Errorf("verdict %v in state %v", v["verdict"], v["state"])
	}
	p.do("cancel", id).want(ExitDone).has("1 unknown").lacks("failed")
	p.do("verify").want(ExitDone)
}
