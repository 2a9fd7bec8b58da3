package tool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
)

// atEachLevel runs a test without a box and, where the machine can, sealed.
func atEachLevel(t *testing.T, o Options, test func(t *testing.T, b *bench)) {
	t.Run("none", func(t *testing.T) { test(t, newBench(t, o)) })
	t.Run("sealed", func(t *testing.T) { test(t, newBench(t, o).sealed()) })
}

func TestShellPlanSaysWhatItIs(t *testing.T) {
	b := newBench(t, Options{})
	p := b.mustPlan("shell", m{"command": "go test ./... | tail"})
	if p.Contract.Class != machine.ClassIrreversible || !p.Contract.Writes || p.Contract.Sender != machine.SenderCommand ||
		p.Contract.InFlight == 0 || p.Subject.Sealed || p.Subject.Network || p.Text != "go test ./... | tail" || len(p.Subject.Commands.Simple) != 2 {
		t.Errorf("unsealed: %+v", p)
	}
	b.env.Level = confine.LevelSealed
	p = b.mustPlan("shell", m{"command": "ls"})
	if p.Contract.Class != machine.ClassWorkspace || !p.Contract.Writes || p.Contract.InFlight != 0 || !p.Subject.Sealed || p.Subject.Class != machine.ClassWorkspace {
		t.Errorf("sealed: %+v", p)
	}
	p = b.mustPlan("shell", m{"command": "curl x", "network": true})
	if p.Contract.Class != machine.ClassIrreversible || !p.Contract.Network || p.Contract.InFlight == 0 || p.Subject.Sealed || !p.Subject.Network {
		t.Errorf("network: %+v", p)
	}
	p = b.mustPlan("shell", m{"command": "echo 'unfinished"})
	if len(p.Subject.Commands.Unresolved) == 0 || p.Subject.Commands.Whole {
		t.Errorf("what cannot be parsed: %+v", p.Subject.Commands)
	}
	wantText(t, b.refused("shell", m{"command": "a\x00b"}), "NUL byte")
	wantText(t, b.refused("shell", m{"command": " \n"}), "empty")
}

func TestShellDigestCoversWhatTheLineNames(t *testing.T) {
	b := newBench(t, Options{})
	for _, f := range []string{"run.sh", "tool", "Makefile", "sub/Makefile", "package.json", "main.go", "sub/x.py", "in.sh"} {
		b.put(f, "content of "+f)
	}
	out := filepath.Join(t.TempDir(), "out.sh")
	if err := os.WriteFile(out, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"ls -l":                                 "",
		"./tool --flag":                         "tool",
		"sh run.sh":                             "run.sh",
		"bash -eu run.sh && ./tool":             "run.sh tool",
		"bash -c './tool'":                      "tool",
		"env A=b ./tool":                        "tool",
		". ./run.sh":                            "run.sh",
		"make test":                             "Makefile",
		"make -C sub test":                      "Makefile sub/Makefile",
		"make -f sub/Makefile":                  "sub/Makefile",
		"cd sub && make":                        "Makefile sub/Makefile",
		"cd sub; python3 x.py":                  "sub/x.py",
		"npm test":                              "package.json",
		"go run main.go":                        "main.go",
		"sh < in.sh":                            "in.sh",
		"sh " + out:                             "",
		"$(echo ./tool)":                        "",
		filepath.Join(b.env.Space.Path, "tool"): "tool",
	} {
		p := b.mustPlan("shell", m{"command": line})
		var names []string
		for _, f := range p.Files {
			names = append(names, f.Path)
			if f.Digest != machine.DigestOf([]byte("content of "+f.Path)) {
				t.Errorf("%s: digest of %s", line, f.Path)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestShellRuns(t *testing.T) {
	atEachLevel(t, Options{}, func(t *testing.T, b *bench) {
		o := b.do("shell", m{"command": "echo out; echo err >&2; pwd; echo $PAWL_EFFECT; exit 3"})
		wantEnd(t, o, EndCompleted, "3")
		if got, want := text(t, o), "out\nerr\n"+b.env.Space.Path+"\nr1abc.e1\n"; got != want {
			t.Errorf("have %q, want %q", got, want)
		}
		if o.Result.OK || !o.Result.Changed || o.Output.Path == "" {
			t.Errorf("%+v", o)
		}
		if b.env.Level == confine.LevelSealed && o.Dead == nil {
			t.Error("no proof of death")
		}
		st, err := os.Stat(o.Output.Path)
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st.Mode(), err)
		}
		o = b.do("shell", m{"command": "echo x > made && cat made"})
		wantEnd(t, o, EndCompleted, "0")
		if !o.Result.OK || b.disk("made") != "x\n" {
			t.Errorf("%+v", o)
		}
		wantEnd(t, b.do("shell", m{"command": "echo 'unfinished"}), EndCompleted, "2")
	})
}

// Proxies are part of reaching the network, passwords in them are not.
func TestShellNetworkKnowsTheProxy(t *testing.T) {
	b := newBench(t, Options{Environ: []string{"PATH=" + os.Getenv("PATH"), "HTTPS_PROXY=http://proxy:1", "http_proxy=http://u:s3cret@proxy:1"}})
	got := text(t, b.do("shell", m{"command": "env", "network": true}))
	wantText(t, got, "HTTPS_PROXY=http://proxy:1\n")
	if strings.Contains(got, "s3cret") {
		t.Error(got)
	}
	if got := text(t, b.do("shell", m{"command": "env"})); strings.Contains(got, "HTTPS_PROXY") {
		t.Error(got)
	}
}

func TestShellUsesBashWhereThereIsOne(t *testing.T) {
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("needs bash")
	}
	b := newBench(t, Options{})
	o := b.do("shell", m{"command": "a=(1 2); [[ ${a[1]} == 2 ]] && echo yes"})
	wantEnd(t, o, EndCompleted, "0")
	wantText(t, text(t, o), "yes")
}

func TestShellSealedReachesNothingElse(t *testing.T) {
	b := newBench(t, Options{}).sealed()
	out := filepath.Join(t.TempDir(), "f")
	o := b.do("shell", m{"command": "echo x > " + out + "; echo $?"})
	wantEnd(t, o, EndCompleted, "0")
	if _, err := os.Stat(out); err == nil {
		t.Error("it wrote outside of the workspace")
	}
}

// An environment variable that is a secret does not reach the command.
func TestShellEnvironmentIsChosen(t *testing.T) {
	b := newBench(t, Options{Environ: []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "API_TOKEN=s3cret", "PAWL_EFFECT=old", "HOME=/elsewhere"}})
	got := text(t, b.do("shell", m{"command": "env"}))
	wantText(t, got, "LANG=C.UTF-8\n", "PAWL_EFFECT=r1abc.e1\n", "PWD="+b.env.Space.Path)
	if strings.Contains(got, "s3cret") || strings.Contains(got, "PAWL_EFFECT=old") {
		t.Error(got)
	}
}

// The identity is on record before anything of the command runs; the last look
// comes after its end.
func TestShellStartIsRecordedBeforeItRuns(t *testing.T) {
	atEachLevel(t, Options{}, func(t *testing.T, b *bench) {
		marker := filepath.Join(b.env.Space.Path, "ran")
		c := b.call(b.mustPlan("shell", m{"command": "touch ran; echo done"}))
		var order []string
		c.Started = func(id machine.Identity) error {
			if id.PID == 0 || id.Boot == "" || id.Start == 0 || (b.env.Level == confine.LevelSealed && id.Inner == "") {
				t.Errorf("%+v", id)
			}
			if _, err := os.Stat(marker); err == nil {
				t.Error("it ran before it was recorded")
			}
			order = append(order, "started")
			return nil
		}
		c.Before = func() { order = append(order, "before") }
		var mu sync.Mutex
		var live strings.Builder
		c.Output = func(p []byte) { mu.Lock(); live.Write(p); mu.Unlock() }
		c.After = func() { order = append(order, "after") }
		wantEnd(t, b.set.Get("shell").Run(t.Context(), b.env, c), EndCompleted, "0")
		if got := strings.Join(order, " "); got != "started before after" {
			t.Error(got)
		}
		if live.String() != "done\n" {
			t.Errorf("live output %q", live.String())
		}

		if err := os.Remove(marker); err != nil {
			t.Fatal(err)
		}
		c = b.call(b.mustPlan("shell", m{"command": "touch ran"}))
		c.Started = func(machine.Identity) error { return fmt.Errorf("the lease is lost") }
		o := b.set.Get("shell").Run(t.Context(), b.env, c)
		wantEnd(t, o, EndRejected, CodeNotStarted)
		wantText(t, text(t, o), "the lease is lost")
		if _, err := os.Stat(marker); err == nil {
			t.Error("it ran without being recorded")
		}
	})
}

// Output is seen while the command runs.
func TestShellOutputIsLive(t *testing.T) {
	atEachLevel(t, Options{Poll: time.Millisecond}, func(t *testing.T, b *bench) {
		c := b.call(b.mustPlan("shell", m{"command": "echo first; until [ -e go ]; do sleep 0.01; done; echo second"}))
		var once sync.Once
		c.Output = func([]byte) { once.Do(func() { b.put("go", "") }) } // else it never ends
		o := b.set.Get("shell").Run(t.Context(), b.env, c)
		wantEnd(t, o, EndCompleted, "0")
		wantText(t, text(t, o), "first\nsecond\n")
	})
}

// B15: nothing that a command leaves behind holds up its end.
func TestShellEndsInTime(t *testing.T) {
	for name, line := range map[string]string{
		"background writer": "(while :; do echo x; sleep 0.05; done) & sleep 600",
		"deaf to TERM":      "trap '' TERM INT HUP; echo up; sleep 600",
		"own session":       "setsid sleep 600 & sleep 600",
	} {
		t.Run(name, func(t *testing.T) {
			atEachLevel(t, Options{}, func(t *testing.T, b *bench) {
				began := time.Now()
				o := b.do("shell", m{"command": line, "timeout_s": 1})
				if took := time.Since(began); took > 30*time.Second { // it would be 600
					t.Errorf("it took %s", took)
				}
				if b.env.Level != confine.LevelSealed {
					if o.End != EndAmbiguous || !strings.Contains(o.Cause, "stopped after 1s") {
						t.Errorf("%+v", o)
					}
					return
				}
				wantEnd(t, o, EndCompleted, CodeTimeout)
				wantText(t, o.Result.Note, "stopped after 1s")
				if o.Dead == nil || o.Result.OK {
					t.Errorf("%+v", o)
				}
			})
		})
	}
}

// B15: what a command leaves in the background ends with it, or is named.
func TestShellBackgroundEndsWithIt(t *testing.T) {
	for name, line := range map[string]string{
		"plain":       "(while :; do date >> beat; sleep 0.01; done) & ",
		"own session": "setsid sh -c 'while :; do date >> beat; sleep 0.01; done' & ",
		"no marker":   "env -i setsid /bin/sh -c 'while :; do date >> beat; sleep 0.01; done' & ",
	} {
		t.Run(name, func(t *testing.T) {
			atEachLevel(t, Options{}, func(t *testing.T, b *bench) {
				o := b.do("shell", m{"command": line + "until [ -s beat ]; do sleep 0.01; done; echo ended"})
				wantEnd(t, o, EndCompleted, "0")
				wantText(t, text(t, o), "ended")
				if o.Dead == nil && (b.env.Level == confine.LevelSealed || !strings.Contains(o.Result.Note, "pid ")) {
					t.Fatalf("neither proven dead nor named: %+v", o)
				}
			})
		})
	}
}

// A stop of Pawl itself says nothing about the command: it stays to be settled.
func TestShellStoppedByPawlIsUnknown(t *testing.T) {
	atEachLevel(t, Options{Poll: time.Millisecond}, func(t *testing.T, b *bench) {
		ctx, stop := context.WithCancel(t.Context())
		c := b.call(b.mustPlan("shell", m{"command": "echo up; sleep 600"}))
		c.Output = func([]byte) { stop() }
		o := b.set.Get("shell").Run(ctx, b.env, c)
		if o.End != EndAmbiguous || !strings.Contains(o.Cause, "Pawl was told to stop") {
			t.Errorf("%+v", o)
		}
		wantText(t, text(t, o), "up")
		if b.env.Level == confine.LevelSealed && o.Dead == nil {
			t.Error("no proof of death")
		}
	})
}

func TestShellSignalIsAnEndOnlyWhereSealed(t *testing.T) {
	atEachLevel(t, Options{}, func(t *testing.T, b *bench) {
		o := b.do("shell", m{"command": "kill -KILL $$"})
		if b.env.Level == confine.LevelSealed {
			wantEnd(t, o, EndCompleted, "SIGKILL")
			return
		}
		if o.End != EndAmbiguous || !strings.Contains(o.Cause, "SIGKILL") {
			t.Errorf("%+v", o)
		}
	})
}

func TestShellRunawayOutputIsStopped(t *testing.T) {
	atEachLevel(t, Options{MaxOutput: 1 << 20, Poll: time.Millisecond}, func(t *testing.T, b *bench) {
		o := b.do("shell", m{"command": "yes"})
		if b.env.Level == confine.LevelSealed {
			wantEnd(t, o, EndCompleted, CodeTooMuch)
		} else if o.End != EndAmbiguous || !strings.Contains(o.Cause, "printed more than is kept") {
			t.Errorf("%+v", o)
		}
	})
}

// A plan made for a sealed command is not carried out unsealed.
func TestShellIsNeverDowngraded(t *testing.T) {
	b := newBench(t, Options{})
	b.env.Level = confine.LevelSealed
	p := b.mustPlan("shell", m{"command": "touch ran"})
	for _, l := range []confine.Level{confine.LevelNone, confine.LevelPartial, confine.LevelGuarded, confine.LevelUnknown} {
		b.env.Level = l
		o := b.set.Get("shell").Run(t.Context(), b.env, b.call(p))
		wantEnd(t, o, EndRejected, CodeNotStarted)
		wantText(t, text(t, o), fmt.Sprintf("level %q", l))
	}
	if _, err := os.Stat(filepath.Join(b.env.Space.Path, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestShellThatCannotStartIsRejected(t *testing.T) {
	b := newBench(t, Options{})
	c := b.call(b.mustPlan("shell", m{"command": "true"}))
	b.env.Outputs = filepath.Join(b.env.Space.Path, "f", "sub")
	b.put("f", "")
	o := b.set.Get("shell").Run(t.Context(), b.env, c)
	wantEnd(t, o, EndRejected, CodeNotStarted)
	c.Effect = "../../x"
	b.env.Outputs = t.TempDir()
	wantEnd(t, b.set.Get("shell").Run(t.Context(), b.env, c), EndRejected, CodeNotStarted)
}

func TestFinishRunsTheCheck(t *testing.T) {
	atEachLevel(t, Options{}, func(t *testing.T, b *bench) {
		o := b.do("finish", m{"summary": "s"})
		wantEnd(t, o, EndCompleted, CodeUnchecked)
		b.env.Check = "test -e fixed || { echo not yet; exit 1; }"
		p := b.mustPlan("finish", m{"summary": "s"})
		if p.Contract.Class != machine.ClassWorkspace || !p.Contract.Declared || !p.Contract.Writes || !p.Subject.Declared ||
			p.Text != b.env.Check || p.Subject.Sealed != (b.env.Level == confine.LevelSealed) {
			t.Errorf("%+v", p)
		}
		o = b.do("finish", m{"summary": "s"})
		wantEnd(t, o, EndCompleted, "1")
		wantText(t, text(t, o), "not yet")
		if o.Result.OK {
			t.Error("a red check is no success")
		}
		b.put("fixed", "")
		o = b.do("finish", m{"summary": "s"})
		wantEnd(t, o, EndCompleted, "0")
		if !o.Result.OK {
			t.Errorf("%+v", o)
		}
	})
}

func TestFinishCheckTimesOut(t *testing.T) {
	b := newBench(t, Options{CheckTimeout: 300 * time.Millisecond}).sealed()
	b.env.Check = "sleep 600"
	wantEnd(t, b.do("finish", m{"summary": "s"}), EndCompleted, CodeTimeout)
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	c := exec.Command(git, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// pushBench is a workspace with a commit and a bare remote beside it. The home
// directory holds nothing of the user's.
func pushBench(t *testing.T) (*bench, string) {
	home := t.TempDir()
	b := newBench(t, Options{Home: home, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}})
	ws := b.env.Space.Path
	remote := filepath.Join(t.TempDir(), "remote.git")
	gitIn(t, filepath.Dir(remote), "init", "-q", "--bare", remote)
	gitIn(t, ws, "init", "-q", "-b", "main")
	b.put("f", "x")
	gitIn(t, ws, "add", "-A")
	gitIn(t, ws, "commit", "-qm", "first")
	gitIn(t, ws, "remote", "add", "origin", remote)
	b.env.Space.GitDir = filepath.Join(ws, ".git")
	return b, remote
}

func TestGitPushIsARecipe(t *testing.T) {
	atLevel := func(t *testing.T, seal bool) {
		b, remote := pushBench(t)
		if seal {
			b.sealed()
		}
		const line = "git push origin HEAD:refs/heads/fix/x"
		p := b.mustPlan("shell", m{"command": line})
		if p.Contract.Class != machine.ClassProbeable || p.Contract.Probe == nil || p.Subject.Recipe != "git-push" ||
			p.Subject.Sealed || len(p.Subject.OutsideWrite) != 1 || p.Subject.OutsideWrite[0] != remote || !p.Contract.Writes {
			t.Fatalf("%+v", p)
		}
		wantText(t, p.Text, line, remote, "refs/heads/fix/x")
		head := gitIn(t, b.env.Space.Path, "rev-parse", "HEAD")
		c := b.call(p)
		var err error
		if c.Measured, err = b.set.Get("shell").Measure(t.Context(), b.env, p.Contract, p.Args); err != nil {
			t.Fatal(err)
		}
		if c.Measured.Params["new"] != head || c.Measured.Params["old"] != "" || c.Measured.Params["ref"] != "refs/heads/fix/x" {
			t.Errorf("%v", c.Measured.Params)
		}
		wantEnd(t, b.set.Get("shell").Run(t.Context(), b.env, c), EndCompleted, "0")
		if got := gitIn(t, remote, "rev-parse", "refs/heads/fix/x"); got != head {
			t.Errorf("the remote has %s", got)
		}
		// The remote's refusal is an answer, although the code alone proves nothing.
		gitIn(t, b.env.Space.Path, "commit", "-q", "--amend", "--allow-empty", "-m", "other")
		wantEnd(t, b.do("shell", m{"command": line}), EndCompleted, "1")
		// A line that would act on another remote than the one agreed to does not run.
		c = b.call(p)
		other := filepath.Join(t.TempDir(), "other.git")
		gitIn(t, filepath.Dir(other), "init", "-q", "--bare", other)
		gitIn(t, b.env.Space.Path, "remote", "set-url", "origin", other)
		o := b.set.Get("shell").Run(t.Context(), b.env, c)
		wantEnd(t, o, EndRejected, CodeNotStarted)
		wantText(t, text(t, o), "not on what was agreed to")
		if got := gitIn(t, other, "for-each-ref"); got != "" {
			t.Errorf("it was pushed: %s", got)
		}
		// Inside a longer line it is undeclared.
		if p := b.mustPlan("shell", m{"command": line + " && echo ok"}); p.Contract.Class == machine.ClassProbeable || p.Subject.Recipe != "" {
			t.Errorf("%+v", p)
		}
	}
	t.Run("none", func(t *testing.T) { atLevel(t, false) })
	t.Run("sealed", func(t *testing.T) { atLevel(t, true) })
}

// A hook of the remote that dies after the ref moved leaves the end open.
func TestGitPushBrokenOffIsUnknown(t *testing.T) {
	b, remote := pushBench(t)
	hook := "#!/bin/sh\nkill -KILL $PPID\n"
	if err := os.WriteFile(filepath.Join(remote, "hooks", "post-update"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	o := b.do("shell", m{"command": "git push origin HEAD:refs/heads/fix/x"})
	if o.End != EndAmbiguous || o.Cause == "" {
		t.Errorf("%+v %s", o, text(t, o))
	}
}

func TestCommitsHaveAnAuthor(t *testing.T) {
	b, _ := pushBench(t)
	wantEnd(t, b.do("shell", m{"command": "git commit --allow-empty -qm one"}), EndCompleted, "0")
	if got := gitIn(t, b.env.Space.Path, "log", "-1", "--format=%an <%ae> %cn"); got != "Pawl r1abc <pawl@localhost> Pawl r1abc" {
		t.Error(got)
	}
	b.env.Space.Name, b.env.Space.Email = "Grace", "grace@example.org"
	wantEnd(t, b.do("shell", m{"command": "git commit --allow-empty -qm user"}), EndCompleted, "0")
	if got := gitIn(t, b.env.Space.Path, "log", "-1", "--format=%an <%ae> %cn"); got != "Grace <grace@example.org> Grace" {
		t.Error(got)
	}
	gitIn(t, b.env.Space.Path, "config", "user.name", "Ada")
	gitIn(t, b.env.Space.Path, "config", "user.email", "ada@example.org")
	wantEnd(t, b.do("shell", m{"command": "git commit --allow-empty -qm two"}), EndCompleted, "0")
	if got := gitIn(t, b.env.Space.Path, "log", "-1", "--format=%an <%ae> %cn"); got != "Ada <ada@example.org> Ada" {
		t.Error(got)
	}
}

func BenchmarkShell(b *testing.B) {
	for _, l := range []confine.Level{confine.LevelNone, confine.LevelSealed} {
		b.Run(l.String(), func(b *testing.B) {
			if l > measuredLevel().Level {
				b.Skip("this machine cannot seal commands")
			}
			mgr, ws := newSpace(b)
			set := All(Options{})
			env := Env{Run: "r1abc", Space: ws, Manager: mgr, Level: l, Outputs: b.TempDir()}
			n := 0
			for b.Loop() {
				n++
				args, err := set.Validate("shell", `{"command":"true"}`)
				if err != nil {
					b.Fatal(err)
				}
				p, err := set.Get("shell").Plan(b.Context(), env, args)
				if err != nil {
					b.Fatal(err)
				}
				o := set.Get("shell").Run(b.Context(), env, Call{Effect: machine.EffectIDOf("r1abc", n), Attempt: 1, Args: args, Contract: p.Contract})
				if o.Result.Code != "0" {
					b.Fatalf("%+v", o)
				}
			}
		})
	}
}
