package effect

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

// world is a working copy with a bare remote beside it.
type world struct {
	t            testing.TB
	home         string
	work, remote string
	at           Place
}

func newWorld(t testing.TB) *world {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), remote: filepath.Join(dir, "remote.git")}
	scratch := filepath.Join(dir, "scratch")
	for _, d := range []string{w.home, w.work, scratch} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.at = Place{Dir: w.work, Scratch: scratch, Environ: w.environ(), Timeout: 30 * time.Second}
	w.git("init", "-q", "--bare", "-b", "main", w.remote)
	w.git("init", "-q", "-b", "main", w.work)
	w.git("remote", "add", "origin", w.remote)
	w.commit("first")
	w.git("push", "-q", "origin", "main")
	t.Cleanup(func() {
		left, err := os.ReadDir(scratch)
		if err != nil || len(left) > 0 {
			t.Errorf("scratch repositories are left behind: %v %v", left, err)
		}
	})
	return w
}

func (w *world) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com",
	}
}

// run runs a program in the working copy and returns exit code and output.
func (w *world) run(name string, args ...string) (int, string) {
	w.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = w.work, w.environ()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		w.t.Fatalf("%s %v: %v", name, args, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	code, out := w.run("git", args...)
	if code != 0 {
		w.t.Fatalf("git %v: %d\n%s", args, code, out)
	}
	return strings.TrimSpace(out)
}

func (w *world) commit(text string) string {
	w.t.Helper()
	w.git("commit", "-q", "--allow-empty", "-m", text)
	return w.git("rev-parse", "HEAD")
}

// refs are all refs of the remote.
func (w *world) refs() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(w.git("--git-dir="+w.remote, "for-each-ref", "--format=%(objectname) %(refname)")) {
		oid, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[name] = oid
	}
	return out
}

func (w *world) hook(name, body string) {
	w.t.Helper()
	path := filepath.Join(w.remote, "hooks", name)
	if body == "" {
		if err := os.Remove(path); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

func match(t testing.TB, line string) (Recipe, bool) {
	t.Helper()
	c, _ := policy.Parse(line)
	return Match(&c)
}

// planned matches and plans a line that must have a contract.
func (w *world) planned(line string) (Recipe, Planned) {
	w.t.Helper()
	r, ok := match(w.t, line)
	if !ok {
		w.t.Fatalf("%q is not recognised", line)
	}
	p, err := r.Plan(w.t.Context(), w.at)
	if err != nil {
		w.t.Fatalf("plan %q: %v", line, err)
	}
	return r, p
}

// dispatched is planned and measured: what would be on record.
func (w *world) dispatched(line string) (machine.Contract, map[string]string) {
	w.t.Helper()
	r, p := w.planned(line)
	params, err := r.Measure(w.t.Context(), w.at, p.Contract)
	if err != nil {
		w.t.Fatalf("measure %q: %v", line, err)
	}
	return p.Contract, params
}

func (w *world) probe(c machine.Contract, params map[string]string) Finding {
	w.t.Helper()
	return Probe(w.t.Context(), Request{Contract: c, Params: params, Place: w.at})
}

func (w *world) want(f Finding, v machine.Verdict, text string) {
	w.t.Helper()
	if f.Verdict != v || !strings.Contains(f.Text, text) {
		w.t.Errorf("found %v (%s), want %v with %q\n%s", f.Verdict, f.Text, v, text, f.Detail)
	}
}
