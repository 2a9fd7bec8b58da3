package effect

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pawl/engine/confine"
	"pawl/engine/machine"
)

// needsPrograms skips a test for want of a program.
func needsPrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s", p)
		}
	}
}

// exits runs a line as bash would and returns its code and output.
func exits(t *testing.T, dir, line string) (string, []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return fmt.Sprint(cmd.ProcessState.ExitCode()), out
}

// What exit codes of curl and wget prove, against servers that refuse, break off
// and answer.
func TestRequestsByCommandLine(t *testing.T) {
	var got atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Add(1)
		switch r.URL.Path {
		case "/down":
			w.WriteHeader(http.StatusBadGateway)
		case "/cut":
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = c.Close()
			}
		case "/reset":
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			}
		}
	}))
	defer srv.Close()
	for _, tt := range []struct {
		line     string
		arrives  int64
		before   bool // its code proves that nothing happened
		answered bool
	}{
		{"curl -sS -d x SRV/ok", 1, false, true},
		{"curl -sS -f -d x SRV/down", 1, false, false},
		{"curl -sS -d x SRV/down", 1, false, true}, // it prints the answer and says nothing of its status
		{"curl -sS -X DELETE SRV/cut", 1, false, false},
		{"curl -sS -d x SRV/reset", 1, false, false},
		{"curl -sS -d x http://127.0.0.1:1/", 0, true, true},
		{"curl -sS -d x http://no-such-host.invalid/", 0, true, true},
		{"wget -q --tries=1 --max-redirect=0 -O- --post-data=x SRV/ok", 1, false, true},
		{"wget -q --tries=1 --max-redirect=0 -O- --post-data=x SRV/down", 1, false, false},
		{"wget -q --tries=1 --max-redirect=0 -O- --post-data=x SRV/cut", 1, false, false},
		{"wget -q --tries=1 --max-redirect=0 -O- --post-data=x http://127.0.0.1:1/", 0, false, false},
	} {
		t.Run(tt.line, func(t *testing.T) {
			needsPrograms(t, strings.Fields(tt.line)[0], "bash")
			line := strings.ReplaceAll(tt.line, "SRV", srv.URL)
			r, ok := lookUp(t, line)
			if !ok {
				t.Fatal("no recipe")
			}
			p, err := r.Plan(t.Context(), Place{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			got.Store(0)
			code, out := exits(t, t.TempDir(), line)
			if n := got.Load(); n != tt.arrives {
				t.Errorf("it arrived %d times", n)
			}
			if before := slices.Contains(p.Contract.BeforeEffect, code); before != tt.before {
				t.Errorf("code %s before the effect: %v\n%s", code, before, out)
			}
			if answered, why := Answered(p.Contract, code, out); answered != tt.answered {
				t.Errorf("code %s answered: %v, %s\n%s", code, answered, why, out)
			}
		})
	}
}

// terraform apply against the real program and a local state. What it did in
// the world is in a file that it does not read.
func TestTerraformApply(t *testing.T) {
	needsPrograms(t, "terraform", "bash")
	yard := func(t *testing.T, provisioner string) Place {
		dir := t.TempDir()
		at := Place{
			Dir: filepath.Join(dir, "work"), Scratch: filepath.Join(dir, "scratch"), Home: filepath.Join(dir, "home"), Level: measured().Level,
			Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "CHECKPOINT_DISABLE=1"},
		}
		for _, d := range []string{at.Dir, at.Scratch, at.Home} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		text := "resource \"terraform_data\" \"x\" {\n  input = 1\n  provisioner \"local-exec\" {\n    command = \"" + provisioner + "\"\n  }\n}\n"
		if err := os.WriteFile(filepath.Join(at.Dir, "main.tf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "terraform", "init", "-input=false", "-no-color")
		cmd.Dir, cmd.Env = at.Dir, at.Environ
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("needs a terraform that starts here: %v\n%s", err, out)
		}
		return at
	}
	plan := func(t *testing.T, at Place) machine.Contract {
		r, _ := lookUp(t, "terraform apply -auto-approve -no-color")
		p, err := r.Plan(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		p.Contract.Needs.Env = append(p.Contract.Needs.Env, "CHECKPOINT_DISABLE")
		return p.Contract
	}
	look := func(t *testing.T, at Place, want machine.Verdict) {
		t.Helper()
		before, err := os.ReadDir(at.Dir)
		if err != nil {
			t.Fatal(err)
		}
		f := Probe(t.Context(), Request{Contract: plan(t, at), Place: at})
		if f.Verdict != want {
			t.Errorf("%v (%s), want %v\n%s", f.Verdict, f.Text, want, f.Detail)
		}
		after, err := os.ReadDir(at.Dir)
		if err != nil || len(after) != len(before) && at.Level == confine.LevelSealed {
			t.Errorf("the look left something: %v, before %v", after, before)
		}
	}
	apply := func(t *testing.T, at Place) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "terraform", "apply", "-auto-approve", "-no-color")
		cmd.Dir, cmd.Env = at.Dir, at.Environ
		detach(cmd)
		return cmd
	}
	t.Run("run to its end", func(t *testing.T) {
		at := yard(t, "echo x >> ../world")
		look(t, at, machine.VerdictInconclusive)
		if out, err := apply(t, at).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		look(t, at, machine.VerdictHappened)
	})
	t.Run("killed while a resource is made", func(t *testing.T) {
		at := yard(t, "echo x >> ../world; echo made > ../pipe; sleep 1000")
		pipe := filepath.Join(filepath.Dir(at.Dir), "pipe")
		if err := exec.Command("mkfifo", pipe).Run(); err != nil {
			t.Skip("needs mkfifo")
		}
		cmd := apply(t, at)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.ReadFile(pipe); err != nil { // returns when the resource was made
			t.Fatal(err)
		}
		_ = cmd.Cancel()
		_ = cmd.Wait() // it was killed
		if world, err := os.ReadFile(filepath.Join(filepath.Dir(at.Dir), "world")); err != nil || string(world) != "x\n" {
			t.Fatalf("%q %v", world, err)
		}
		// The state does not hold it: a plan wants to do it again, which must not
		// be taken for proof that nothing happened.
		look(t, at, machine.VerdictInconclusive)
	})
	t.Run("no configuration", func(t *testing.T) {
		at := yard(t, "true")
		if err := os.Remove(filepath.Join(at.Dir, "main.tf")); err != nil {
			t.Fatal(err)
		}
		cmd := apply(t, at)
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Skip("this terraform applies nothing at all")
		}
		if ok, why := Answered(plan(t, at), "1", out); !ok {
			t.Errorf("%s\n%s", why, out)
		}
	})
}

// psql against the real program: a server that is not there is a refusal, an
// error of its own none.
func TestPsqlThatNeverConnects(t *testing.T) {
	needsPrograms(t, "psql", "bash")
	line := "psql -X -w -h 127.0.0.1 -p 1 -c 'SELECT 1' shop"
	r, ok := lookUp(t, line)
	if !ok {
		t.Fatal("no recipe")
	}
	p, err := r.Plan(t.Context(), Place{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	code, out := exits(t, t.TempDir(), line)
	if ok, why := Answered(p.Contract, code, out); code != "2" || !ok {
		t.Errorf("code %s: %s\n%s", code, why, out)
	}
	if ok, _ := Answered(p.Contract, "2", []byte("server closed the connection unexpectedly\nconnection to server was lost\n")); ok {
		t.Error("a connection that broke counts as an answer")
	}
	if ok, _ := Answered(p.Contract, "1", []byte("ERROR:  relation does not exist")); !ok {
		t.Error("the server's own refusal counts as none")
	}
}
