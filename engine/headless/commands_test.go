package headless

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pawl/engine"
)

// A run without a screen goes from start to end, and can be read afterwards.
func TestRunToItsEnd(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	s := p.do("run", "finish at once", "--repo", p.repo(), "--script", p.write("s.toml", finishes), "--headless")
	s.want(ExitDone).has("run r", "finish at once", "turn 1", "done (unchecked)")

	runs := p.do("list", "--json").want(ExitDone).objects()
	if len(runs) != 1 || runs[0]["state"] != "done" || runs[0]["goal"] != "finish at once" {
		t.Fatalf("list: %v", runs)
	}
	id := runs[0]["id"].(string)
	show := p.do("show", id, "--json").want(ExitDone).object()
	for _, key := range []string{"id", "goal", "state", "turns", "spend_usd", "effects"} {
		if _, ok := show[key]; !ok {
			t.Errorf("show --json has no %s: %v", key, show)
		}
	}
	for _, e := range show["effects"].([]any) {
		for _, key := range []string{"id", "tool", "class", "state", "verdict", "forced", "attempts", "digest", "evidence"} {
			if _, ok := e.(map[string]any)[key]; !ok {
				t.Errorf("an effect has no %s: %v", key, e)
			}
		}
	}
	p.do("show", id).want(ExitDone).has("finish at once", "done", "finish")
	p.do("log", id).want(ExitDone).has("run created")
	log := p.do("log", id, "--json").want(ExitDone).objects()
	for i, row := range log {
		if row["n"] != float64(i+1) || row["run"] != id {
			t.Errorf("row %d: %v", i, row)
		}
	}
	last := p.do("log", id, "--json", "--last", "2").want(ExitDone).objects()
	if len(last) != 2 || last[1]["n"] != float64(len(log)) {
		t.Errorf("--last 2 of %d: %v", len(log), last)
	}
	p.do("log", id, "--follow").want(ExitDone) // it has ended, so there is nothing to follow
	p.do("context", id).want(ExitDone).has("finish at once", "tokens")
	pack := p.do("context", id, "--json", "--section", "charter").want(ExitDone).object()
	if n := len(pack["sections"].([]any)); n != 1 {
		t.Errorf("%d sections", n)
	}
	p.do("context", id, "--section", "nonsense").want(ExitUsage).has("charter")
	v := p.do("verify", "--json").want(ExitDone).object()
	if v["ok"] != true || v["runs"] != float64(1) {
		t.Errorf("verify: %v", v)
	}
	p.do("verify").want(ExitDone).has("whole: 1 run,")
	p.do("resume", id).want(ExitDone) // it makes no difference that there is nothing to do
}

// A question stops a run with code 3 and the commands that answer it; the
// answer is taken once, and resuming carries it out.
func TestQuestionIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, s := p.start(ExitWaits, asks)
	waits := s.object()["waits"].([]any)
	if len(waits) != 1 {
		t.Fatalf("waits: %v", waits)
	}
	inbox := p.do("inbox", "--json").want(ExitDone).objects()
	if len(inbox) != 1 {
		t.Fatalf("inbox: %v", inbox)
	}
	item := inbox[0]
	for _, key := range []string{"id", "kind", "run", "summary", "since", "reach", "next"} {
		if v, _ := item[key].(string); v == "" {
			t.Errorf("inbox --json has no %s: %v", key, item)
		}
	}
	if item["kind"] != engine.KindQuestion || item["run"] != id || !strings.Contains(item["next"].(string), "--ledger "+p.ledger) {
		t.Errorf("inbox: %v", item)
	}
	q := item["id"].(string)
	p.do("inbox").want(ExitDone).has(q, "question", "Which one?", "answer "+q)
	p.do("show", q).want(ExitDone).has("Which one?", "left", "right")

	p.do("resume", "--json").want(ExitWaits) // nothing was decided: it waits as before
	p.do("answer", q, "left").want(ExitDone).has("Nobody drives run "+id, "resume "+id)
	p.do("answer", q, "right").want(ExitError).threeParts().has("is not pending", "left")
	p.do("answer", id+".q9", "left").want(ExitError).threeParts().has("is not pending")
	p.do("inbox").want(ExitDone).has("Interrupted, nobody drives: " + id)

	s = p.do("resume").want(ExitDone).has("run "+id, "last: ", "done")
	if strings.Index(s.out, "last: ") > strings.Index(s.out, "done (unchecked)") {
		t.Errorf("the last line comes after the run moved: %s", s.out)
	}
	p.do("inbox", "--json").want(ExitDone)
}

// Approvals are decided once, by their id alone, and what was decided stays.
func TestApprovals(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, s := p.start(ExitWaits, posts, "--var", "WORLD=http://127.0.0.1:9")
	a := s.object()["waits"].([]any)[0].(map[string]any)["id"].(string)
	p.do("show", a).want(ExitDone).has("exactly this will run", "POST", "/tickets", "approve "+a)
	card := p.do("show", a, "--json").want(ExitDone).object()
	digest := card["digest"].(string)

	p.do("approve", id).want(ExitError).threeParts().has("is a run")
	p.do("approve", id+".a9").want(ExitError).threeParts().has("is not pending")
	p.do("approve", "rzzzzzz.a1").want(ExitError).threeParts().has("is not pending")
	p.do("approve", "nonsense").want(ExitError).threeParts()
	p.do("approve", a, "--digest", strings.Repeat("0", 63)+"1").want(ExitError).has("changed since")
	p.do("approve", a, "--digest", "12").want(ExitUsage)
	d := p.do("approve", a, "--digest", digest, "--json").want(ExitDone).object()
	if d["decision"] != "approved" || d["owner"] != "" || !strings.Contains(d["next"].(string), "resume "+id) {
		t.Errorf("decision: %v", d)
	}
	p.do("approve", a).want(ExitError).threeParts().has("is not pending", "granted")
	p.do("deny", a, "--reason", "no").want(ExitError).has("is not pending")
	kept, err := os.ReadFile(filepath.Join(filepath.Dir(p.ledger), "pawl.log"))
	for _, did := range []string{"approve " + a, "deny " + a, "approve " + id + ".a9"} {
		if err != nil || !strings.Contains(string(kept), did+" did not count") {
			t.Errorf("no note of %s: %v\n%s", did, err, kept)
		}
	}
}

// A denial goes to the model, which goes on.
func TestDeny(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, s := p.start(ExitWaits, posts, "--var", "WORLD=http://127.0.0.1:9")
	a := s.object()["waits"].([]any)[0].(map[string]any)["id"].(string)
	p.do("deny", a, "--reason", "not today").want(ExitDone)
	p.do("log", id).has("denied", "not today")
	p.do("resume", id).want(ExitDone)
}

// Pausing, telling and cancelling say what they did; a run that has ended
// refuses with a way on.
func TestSteering(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, _ := p.start(ExitWaits, asks)
	p.do("pause", id, "--reason", "lunch").want(ExitDone).has("Nothing is lost")
	p.do("pause", id).want(ExitError).threeParts().has("paused already")
	p.do("resume", id).want(ExitWaits).has("unpause")
	p.do("unpause", id).want(ExitDone)
	p.do("tell", id, "use", "the", "left", "one").want(ExitDone)
	p.do("context", id).has("use the left one")
	p.do("cancel", id, "--reason", "enough").want(ExitDone).has("cancelled", "enough")
	p.do("cancel", id).want(ExitError).threeParts()
	p.do("tell", id, "more").want(ExitError).has("pawl run")
	p.do("resume", id).want(ExitFailed)
	for _, cmd := range []string{"pause", "unpause", "cancel", "diff", "show", "log", "context", "land", "resume"} {
		p.do(cmd, "rnobody").want(ExitError).threeParts().has("rnobody")
	}
}

// With several runs that could be resumed nothing is guessed: the operator's
// last word comes first in the list, whatever else was written since.
func TestResumeAsksWhichOne(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	first, _ := p.start(ExitWaits, asks)
	second, _ := p.start(ExitWaits, asks)
	p.do("answer", first+".q1", "left").want(ExitDone)
	s := p.do("resume").want(ExitUsage).threeParts().has(first, second, "--all")
	if strings.Index(s.err, first) > strings.Index(s.err, second) {
		t.Errorf("the run with the newest word of the operator is not first:\n%s", s.err)
	}
	done := p.do("resume", "--all", "--json").want(ExitWaits).objects()
	if len(done) != 2 {
		t.Fatalf("%v", done)
	}
	states := map[any]any{}
	for _, o := range done {
		states[o["id"]] = o["state"]
	}
	if states[first] != "done" || states[second] != "waiting" {
		t.Errorf("%v", states)
	}
}

// A process that stays for answers carries them out as they come, from
// whichever process they are given.
func TestResumeWaits(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, _ := p.start(ExitWaits, asks)
	cmd := p.process(nil, "resume", id, "--wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	seen := readUntil(t, lines, "as soon as you have decided")
	if !strings.Contains(seen, "answer "+id+".q1") {
		t.Errorf("no command to answer with:\n%s", seen)
	}
	p.do("resume", id).want(ExitError).threeParts().has("was not taken over")
	p.do("answer", id+".q1", "left").want(ExitDone).lacks("Nobody drives")
	readUntil(t, lines, "run "+id+" is done")
	for lines.Scan() { //nolint:revive // to its end
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// Following a run shows what other processes write, and ends with the run.
func TestLogFollows(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, _ := p.start(ExitWaits, asks)
	cmd := p.process(nil, "log", id, "--follow")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	readUntil(t, lines, "question: Which one?")
	p.do("answer", id+".q1", "left").want(ExitDone)
	readUntil(t, lines, "answered: left")
	p.do("resume", id).want(ExitDone)
	readUntil(t, lines, "done (unchecked)")
	for lines.Scan() { //nolint:revive // to its end
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func readUntil(t *testing.T, lines *bufio.Scanner, text string) string {
	t.Helper()
	var seen strings.Builder
	for lines.Scan() {
		seen.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), text) {
			return seen.String()
		}
	}
	t.Fatalf("ended without %q:\n%s", text, seen.String())
	return ""
}

// An interrupt stops at a safe point, says that nothing is lost and how to go on.
func TestInterruptStopsAtASafePoint(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, _ := p.start(ExitWaits, asks)
	cmd := p.process(nil, "resume", id, "--wait")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	readUntil(t, lines, "as soon as you have decided")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest := readUntil(t, lines, "goes on")
	for lines.Scan() {
		rest += lines.Text()
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != ExitWaits || !strings.Contains(errs.String(), "Nothing is lost") || !strings.Contains(rest, "resume "+id) {
		t.Errorf("code %d\n%s\n%s", cmd.ProcessState.ExitCode(), rest, errs.String())
	}
	p.do("answer", id+".q1", "left").want(ExitDone)
	p.do("resume", id).want(ExitDone)
	p.do("verify").want(ExitDone)
}

// What a model says cannot reach the terminal as control, in any command.
func TestNothingFromOutsideObeysItself(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	evil := `a\u001b[2K\u001b]0;t\u0007\u202eb`
	script := strings.ReplaceAll(asks, "Which one?", "Which"+evil+" one?")
	script = strings.ReplaceAll(script, "Two things", "Two"+evil+" things")
	p.write("project/"+"na\x1b[1mme.txt", "x")
	s := p.do("run", "goal \x1b[31mred", "--repo", p.repo(), "--script", p.write("s.toml", script), "--headless").want(ExitWaits)
	id := strings.TrimSuffix(strings.Fields(s.out)[1], ":")
	for _, s := range []said{
		s, p.do("list"), p.do("show", id), p.do("log", id), p.do("inbox"), p.do("show", id+".q1"), p.do("context", id), p.do("diff", id),
		p.do("list", "--json"), p.do("log", id, "--json"), p.do("inbox", "--json"), p.do("context", id, "--json"),
	} {
		for _, r := range s.out + s.err {
			if r != '\n' && (r < 0x20 || steers(r)) {
				t.Errorf("pawl %s prints U+%04X", s.args, r)
				break
			}
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	before := p.do("doctor", "--json").want(ExitDone).object()
	if before["ledger"].(map[string]any)["exists"] != false {
		t.Errorf("ledger: %v", before["ledger"])
	}
	if _, err := os.Stat(filepath.Dir(p.ledger)); err == nil {
		t.Error("doctor made a directory")
	}
	p.start(ExitDone, finishes)
	d := p.do("doctor", "--json").want(ExitDone).object()
	l := d["ledger"].(map[string]any)
	if d["ok"] != true || l["writable"] != true || l["runs"] != float64(1) {
		t.Errorf("doctor: %v", d)
	}
	if level, _ := d["confinement"].(string); level == "" || level == "unknown" {
		t.Errorf("confinement: %v", d["confinement"])
	}
	if _, ok := d["confinement_missing"].([]any); !ok {
		t.Errorf("confinement_missing: %v", d["confinement_missing"])
	}
	p.do("doctor").want(ExitDone).has("confinement", "git", "models", p.ledger)
}

// The shell is offered what there is.
func TestCompletion(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, _ := p.start(ExitWaits, asks)
	p.do("__complete", "show", "").want(ExitDone).has(id)
	p.do("__complete", "answer", "").want(ExitDone).has(id + ".q1")
	p.do("__complete", "settle", id+".e1", "").want(ExitDone).has("abandon")
	p.do("completion", "bash").want(ExitDone).has("bash completion")
}
