//go:build unix

package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"pawl/engine/confine"
)

const roleEnv = "WORKSPACE_TEST_ROLE"

func TestMain(m *testing.M) {
	confine.Main()
	if os.Getenv(roleEnv) != "" {
		playRole()
		os.Exit(0)
	}
	home, err := os.MkdirTemp("", "workspace-home-")
	if err != nil {
		panic(err)
	}
	// A user with a configuration of their own, some of which must not have any effect.
	err = os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Ada\n\temail = ada@example.org\n[core]\n\tautocrlf = false\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n"), 0o600)
	if err != nil {
		panic(err)
	}
	os.Setenv("HOME", home)
	os.Unsetenv("XDG_CONFIG_HOME")
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func needGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
}

var ctx = context.Background()

// sh runs a script as the user would, in dir.
func sh(t testing.TB, dir, script string) string {
	t.Helper()
	c := exec.Command("sh", "-ec", script)
	c.Dir = dir
	var e strings.Builder
	c.Stderr = &e
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, e.String())
	}
	return string(out)
}

func put(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

// newRepo makes a user's repository with a branch main of two commits.
func newRepo(t testing.TB) string {
	t.Helper()
	needGit(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	repo := filepath.Join(dir, "project")
	must(t, os.Mkdir(repo, 0o755))
	put(t, repo+"/a.txt", "one\ntwo\nthree\n")
	put(t, repo+"/dir/b.txt", "b\n")
	put(t, repo+"/.gitignore", "*.log\nnode_modules/\n")
	sh(t, repo, "git init -q -b main && git add . && git commit -qm first && echo four >>a.txt && git commit -qam second && git branch other HEAD~1 && git tag v1")
	return repo
}

func newManager(t testing.TB) *Manager {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return New(filepath.Join(dir, "state"))
}

// newSpace prepares run r1 on a new repository.
func newSpace(t testing.TB) (*Manager, Workspace) {
	t.Helper()
	repo, m := newRepo(t), newManager(t)
	ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: repo, Title: "mend it"})
	must(t, err)
	return m, ws
}

func snap(t testing.TB, m *Manager, ws Workspace) Snapshot {
	t.Helper()
	s, err := m.Snapshot(ctx, ws, "test")
	must(t, err)
	return s
}

// picture describes everything below dir that a person could tell apart: names, kinds, modes and contents.
func picture(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if rel == ".git" && d.IsDir() {
			return filepath.SkipDir
		}
		st, err := os.Lstat(p)
		if err != nil {
			return err
		}
		l := fmt.Sprintf("%q %v", rel, st.Mode())
		switch {
		case st.Mode()&os.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			l += fmt.Sprintf(" -> %q", to)
		case st.Mode().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			l += fmt.Sprintf(" %q", b)
		}
		lines = append(lines, l)
		return nil
	})
	must(t, err)
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// refsOf lists a repository's refs with what they are on, and HEAD.
func refsOf(t testing.TB, repo string) string {
	t.Helper()
	return sh(t, repo, "git for-each-ref; git symbolic-ref HEAD; git stash list; cat .git/config; git status --porcelain --branch")
}

// playRole does one operation of a Manager in a process that is to be killed.
func playRole() {
	var job struct {
		State string
		Op    string
		Req   Request
		WS    Workspace
		To    Snapshot
		Plan  LandPlan
		Old   [32]byte
		New   [32]byte
		Path  string
		Data  []byte
	}
	if err := json.NewDecoder(os.Stdin).Decode(&job); err != nil {
		panic(err)
	}
	fmt.Println("go")
	m := New(job.State)
	var err error
	switch job.Op {
	case "prepare":
		_, err = m.Prepare(ctx, job.Req)
	case "snapshot":
		_, err = m.Snapshot(ctx, job.WS, "killed")
	case "restore":
		_, err = m.Restore(ctx, job.WS, job.To)
	case "rebuild":
		_, err = m.Rebuild(ctx, job.WS, job.To)
	case "write":
		_, err = m.Write(ctx, job.WS, job.Path, job.Old, job.New, job.Data, 0)
	case "land":
		err = m.Land(ctx, job.WS, job.Plan)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, job.Op, err)
		os.Exit(1)
	}
}

// killedWhile starts an operation in a process of its own and kills that after a part of the time it takes, part
// being from 0 to 1. It says whether the process was done before.
func killedWhile(t testing.TB, job map[string]any, after time.Duration) (done bool) {
	t.Helper()
	b, err := json.Marshal(job)
	must(t, err)
	exe, err := os.Executable()
	must(t, err)
	c := exec.Command(exe)
	c.Env = append(os.Environ(), roleEnv+"=1")
	c.Stdin = strings.NewReader(string(b))
	var e strings.Builder
	c.Stderr = &e
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	ready := make([]byte, 3)
	_, err = out.Read(ready) // the moment is counted from here
	must(t, err)
	ended := make(chan error, 1)
	timer := time.AfterFunc(after, func() { _ = c.Process.Kill() })
	go func() { ended <- c.Wait() }()
	err = <-ended
	timer.Stop()
	if c.ProcessState.Exited() && c.ProcessState.ExitCode() != 0 {
		t.Fatalf("the operation failed by itself: %s", e.String())
	}
	return err == nil
}
