//go:build unix

package workspace

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// oddNames are names that have broken programs.
var oddNames = []string{
	"trailing\n", "in\nner", "tab\t", `quo"te`, "'single'", "-dash", "--output=x", " space ", "esc\x1b[31m", "bad\xff\xfeutf8", "ünïcode",
	"e\u0301", "\u00e9", ":(top)magic", "*", "a[b]", "back\\slash", strings.Repeat("n", 255), "#hash", "!bang", "con", ".hidden", "~", "$HOME",
}

// fill makes a workspace of everything that must survive byte for byte.
func fill(t testing.TB, dir string) {
	t.Helper()
	for i, n := range oddNames {
		must(t, os.WriteFile(filepath.Join(dir, n), []byte{byte('0' + i%10)}, 0o644))
	}
	for n, b := range map[string]string{
		"crlf.txt": "a\r\nb\r\n", "mixed.txt": "a\r\nb\nc\rd", "bom.txt": "\xef\xbb\xbfx", "utf16.txt": "\xff\xfea\x00\r\x00\n\x00",
		"no-newline": "x", "empty": "", "bin": "\x00\x01\xff", "lfs.dat": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
		"ident.c": "/* $Id$ */\n", ".gitattributes": "* text=auto eol=crlf\n*.c ident\n*.dat filter=lfs diff=lfs merge=lfs\nutf16.txt working-tree-encoding=UTF-16\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, n), []byte(b), 0o644))
	}
	for n, mode := range map[string]os.FileMode{"exec": 0o755, "secret": 0o600, "secret-exec": 0o700, "group": 0o664, "readonly": 0o444, "nobody": 0o000} {
		p := filepath.Join(dir, n)
		must(t, os.WriteFile(p, []byte(n), 0o644))
		must(t, os.Chmod(p, mode))
	}
	if os.Getuid() != 0 {
		must(t, os.Chmod(filepath.Join(dir, "nobody"), 0o400)) // unreadable to its owner, and so not part of a snapshot
	}
	must(t, os.Symlink("empty", filepath.Join(dir, "link")))
	must(t, os.Symlink("/nowhere/at/all", filepath.Join(dir, "dangling")))
	must(t, os.MkdirAll(filepath.Join(dir, "hollow/deeper"), 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, "d/e/f"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "d/e/f/g"), []byte("g"), 0o644))
}

// spoil changes all of it in every way.
func spoil(t testing.TB, dir string) {
	t.Helper()
	for i, n := range oddNames {
		p := filepath.Join(dir, n)
		switch i % 3 {
		case 0:
			must(t, os.Remove(p))
		case 1:
			must(t, os.WriteFile(p, []byte("spoilt"), 0o600))
		}
	}
	for _, n := range []string{"crlf.txt", "utf16.txt", "secret", "group", "lfs.dat"} {
		must(t, os.Remove(filepath.Join(dir, n)))
		must(t, os.WriteFile(filepath.Join(dir, n), []byte("\n"), 0o644))
	}
	must(t, os.Chmod(filepath.Join(dir, "exec"), 0o644))
	must(t, os.Chmod(filepath.Join(dir, "secret-exec"), 0o755))
	must(t, os.Chmod(filepath.Join(dir, "readonly"), 0o644)) // same content, other mode
	must(t, os.Remove(filepath.Join(dir, "link")))
	must(t, os.Mkdir(filepath.Join(dir, "link"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "link/now-a-directory"), nil, 0o644))
	must(t, os.Remove(filepath.Join(dir, "empty")))
	must(t, os.MkdirAll(filepath.Join(dir, "empty/hollow/dirs"), 0o755)) // nothing but directories in a file's place
	must(t, os.RemoveAll(filepath.Join(dir, "d")))
	must(t, os.Symlink("/etc", filepath.Join(dir, "d")))
	must(t, os.RemoveAll(filepath.Join(dir, "hollow")))
	must(t, os.MkdirAll(filepath.Join(dir, "other/hollow"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "created"), nil, 0o644))
}

func TestSnapshotsComeBackByteForByte(t *testing.T) {
	m, ws := newSpace(t)
	fill(t, ws.Path)
	want := picture(t, ws.Path)
	s := snap(t, m, ws)
	// The picture also has the top, six directories and .git.
	if s.Files != int64(strings.Count(want, "\n")+1-8) || s.Bytes == 0 || len(s.Skipped) != 0 {
		t.Errorf("%d files, %d bytes, skipped %q", s.Files, s.Bytes, s.Skipped)
	}
	spoil(t, ws.Path)
	res, err := m.Restore(ctx, ws, s)
	must(t, err)
	if got := picture(t, ws.Path); got != want {
		t.Fatalf("it came back as\n%s\nwas\n%s", got, want)
	}
	if len(res.Changed) < 15 {
		t.Errorf("changed %q", res.Changed)
	}
	if again := snap(t, m, ws); again.Tree != s.Tree {
		t.Error("equal files, other tree")
	}
	// The rescue brings the spoilt state back.
	_, err = m.Restore(ctx, ws, res.Rescue)
	must(t, err)
	if read(t, ws.Path+"/crlf.txt") != "\n" || read(t, ws.Path+"/link/now-a-directory") != "" {
		t.Error("the rescue is not what was there")
	}
	// The commit alone is enough.
	_, err = m.Restore(ctx, ws, Snapshot{Commit: s.Commit})
	must(t, err)
	if picture(t, ws.Path) != want {
		t.Error("restored from the commit's name, it differs")
	}
	if out := sh(t, ws.Shadow, "git --git-dir=. fsck --strict --full --no-dangling 2>&1"); strings.Contains(out, "error") {
		t.Error(out)
	}
}

func TestUnchangedFilesMakeTheSameTree(t *testing.T) {
	m, ws := newSpace(t)
	a := snap(t, m, ws)
	b := snap(t, m, ws)
	if a.Tree != b.Tree || a.Commit == b.Commit || a.Head != ws.Base || a.Branch != "refs/heads/"+ws.Branch || a.Index == "" {
		t.Errorf("%+v then %+v", a, b)
	}
	put(t, ws.Path+"/x.log", "ignored")
	if c := snap(t, m, ws); c.Tree != a.Tree {
		t.Error("an ignored file is in the snapshot")
	}
}

func TestInterruptedGitCommandsAreUndone(t *testing.T) {
	for name, script := range map[string]string{
		"commit":          "echo x >>a.txt && git commit -qam work",
		"staged":          "echo x >>a.txt && git add a.txt",
		"branch":          "git switch -qc pawl/r1/side && echo y >y && git add y && git commit -qm side",
		"merge conflict":  "git switch -qc pawl/r1/side other && echo z >>a.txt && git commit -qam z && ! git merge -q pawl/r1/work",
		"rebase conflict": "git switch -qc pawl/r1/side other && echo z >>a.txt && git commit -qam z && ! git rebase -q pawl/r1/work",
		"detached":        "git checkout -q HEAD~1",
		"amend":           "git commit -q --amend -m other",
		"reset":           "git reset -q --hard HEAD~1",
		"killed commit":   "echo x >>a.txt && git add a.txt && touch $(git rev-parse --git-dir)/index.lock $(git rev-parse --git-dir)/HEAD.lock",
		"sequence":        "git commit -q --allow-empty -m e && git revert --no-edit HEAD~1",
	} {
		t.Run(name, func(t *testing.T) {
			m, ws := newSpace(t)
			state := func() string {
				return sh(t, ws.Path, "git status --porcelain=v2 --branch; git symbolic-ref -q HEAD || true; git for-each-ref refs/heads/pawl; git ls-files -s; git log --format=%H -g HEAD; ls -A $(git rev-parse --git-dir)")
			}
			before, files := state(), picture(t, ws.Path)
			s := snap(t, m, ws)
			sh(t, ws.Path, script)
			old := time.Now().Add(-time.Hour)
			for _, l := range []string{"index.lock", "HEAD.lock"} {
				_ = os.Chtimes(filepath.Join(ws.GitDir, l), old, old) // left by a command that is long dead
			}
			_, err := m.Restore(ctx, ws, s)
			must(t, err)
			if picture(t, ws.Path) != files {
				t.Error("the files differ")
			}
			if got := state(); got != before {
				t.Errorf("git's state is\n%s\nwas\n%s", got, before)
			}
			sh(t, ws.Path, "echo more >>a.txt && git commit -qam works && git fsck --no-dangling")
		})
	}
}

func TestEditsDuringARestoreAreNotLost(t *testing.T) {
	m, ws := newSpace(t)
	s := snap(t, m, ws)
	put(t, ws.Path+"/a.txt", "spoilt\n")
	edits := 0
	m.point = func(name string) {
		if name == "rescued" && edits == 0 {
			edits++
			put(t, ws.Path+"/a.txt", "by hand\n")
		}
	}
	res, err := m.Restore(ctx, ws, s)
	must(t, err)
	if read(t, ws.Path+"/a.txt") != "one\ntwo\nthree\nfour\n" {
		t.Error("not restored")
	}
	_, err = m.Restore(ctx, ws, res.Rescue)
	must(t, err)
	if got := read(t, ws.Path+"/a.txt"); got != "by hand\n" {
		t.Errorf("the rescue holds %q, not the edit", got)
	}
	m.point = func(name string) {
		if name == "rescued" {
			edits++
			put(t, ws.Path+"/a.txt", "by hand "+time.Now().String())
		}
	}
	var d *DriftError
	if _, err = m.Restore(ctx, ws, s); !errors.As(err, &d) {
		t.Fatalf("got %v", err)
	}
	if got := read(t, ws.Path+"/a.txt"); !strings.HasPrefix(got, "by hand 2") {
		t.Errorf("the edit was overwritten: %q", got)
	}
	m.point = func(name string) {
		if name == "rescued" {
			put(t, ws.Path+"/created", "by hand")
			m.point = nil
		}
	}
	put(t, ws.Path+"/created", "")
	want := snap(t, m, ws)
	must(t, os.Remove(ws.Path+"/created"))
	if _, err = m.Restore(ctx, ws, want); err != nil {
		t.Fatal(err)
	}
	// An edit of a file that is the same in both is kept.
	m.point = func(name string) {
		if name == "rescued" && edits < 10 {
			edits = 10
			put(t, ws.Path+"/dir/b.txt", "by hand\n")
		}
	}
	put(t, ws.Path+"/a.txt", "spoilt again\n")
	res, err = m.Restore(ctx, ws, want)
	must(t, err)
	if _, err := m.Restore(ctx, ws, res.Rescue); err != nil || read(t, ws.Path+"/dir/b.txt") != "by hand\n" {
		t.Errorf("an edit elsewhere was lost: %v", err)
	}
}

func TestRepositoriesInsideAreKeptWhole(t *testing.T) {
	m, ws := newSpace(t)
	sh(t, ws.Path, `git init -q in && echo x >in/x && git -C in add x && git -C in commit -qm x && echo new >in/untracked && echo 1 >in/a.log
git init -q hollow && echo y >hollow/y && mkdir -p in/deep && git init -q in/deep/er && echo z >in/deep/er/z && echo '*.tmp' >in/.gitignore && echo t >in/t.tmp && git init -q void`)
	inner := sh(t, ws.Path, "cd in && cat .git/HEAD .git/config && git log --oneline")
	s := snap(t, m, ws)
	want := picture(t, ws.Path)
	put(t, ws.Path+"/in/x", "spoilt")
	put(t, ws.Path+"/hollow/y", "spoilt")
	must(t, os.Remove(ws.Path+"/in/deep/er/z"))
	must(t, os.Remove(ws.Path+"/in/untracked"))
	put(t, ws.Path+"/in/made", "made")
	_, err := m.Restore(ctx, ws, s)
	must(t, err)
	if got := picture(t, ws.Path); got != want {
		t.Errorf("it came back as\n%s\nwas\n%s", got, want)
	}
	if got := sh(t, ws.Path, "cd in && cat .git/HEAD .git/config && git log --oneline"); got != inner {
		t.Error("the repository inside was altered")
	}
	if again := snap(t, m, ws); again.Tree != s.Tree {
		t.Error("equal files, other tree")
	}
}

func TestUnreadableFilesAreNamedAndTheRestIsKept(t *testing.T) {
	if os.Getuid() == 0 {
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("root reads everything, and there is no setpriv")
		}
		exe, err := os.Executable()
		must(t, err)
		dir, err := os.MkdirTemp("", "workspace-user-")
		must(t, err)
		defer os.RemoveAll(dir)
		bin := filepath.Join(dir, "test")
		b, err := os.ReadFile(exe)
		must(t, err)
		must(t, os.WriteFile(bin, b, 0o755))
		must(t, os.Chmod(dir, 0o777))
		c := exec.Command("setpriv", "--reuid=1500", "--regid=1500", "--clear-groups", bin, "-test.run=^"+t.Name()+"$", "-test.v")
		c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+dir)
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("as an ordinary user: %v\n%s", err, out)
		}
		return
	}
	m, ws := newSpace(t)
	put(t, ws.Path+"/closed\nname", "x")
	must(t, os.Chmod(ws.Path+"/closed\nname", 0))
	put(t, ws.Path+"/open", "x")
	s := snap(t, m, ws)
	if len(s.Skipped) != 1 {
		t.Fatalf("skipped %q", s.Skipped)
	}
	put(t, ws.Path+"/open", "spoilt")
	if _, err := m.Restore(ctx, ws, s); err != nil || read(t, ws.Path+"/open") != "x" {
		t.Errorf("restore: %v", err)
	}
	if st, err := os.Lstat(ws.Path + "/closed\nname"); err != nil || st.Mode().Perm() != 0 {
		t.Errorf("the unreadable file: %v %v", st, err)
	}
}

func TestAFailedSnapshotIsNone(t *testing.T) {
	m, ws := newSpace(t)
	s := snap(t, m, ws)
	put(t, ws.Path+"/a.txt", "changed\n")
	objects := filepath.Join(ws.Shadow, "objects")
	must(t, os.Rename(objects, objects+".away"))
	must(t, os.WriteFile(objects, nil, 0o600)) // as on a disk that takes nothing
	if got, err := m.Snapshot(ctx, ws, "fails"); err == nil || got.Commit != "" {
		t.Errorf("got %+v, %v", got, err)
	}
	must(t, os.Remove(objects))
	must(t, os.Rename(objects+".away", objects))
	last, err := store{ws.Shadow}.last()
	if err != nil || last != s.Commit {
		t.Errorf("the last snapshot is %s, %v", last, err)
	}
	if _, err := m.Restore(ctx, ws, Snapshot{Commit: strings.Repeat("0", 40)}); err == nil {
		t.Error("restored what does not exist")
	}
	if read(t, ws.Path+"/a.txt") != "changed\n" {
		t.Error("a failed restore changed a file")
	}
	if _, err := m.Restore(ctx, ws, s); err != nil || read(t, ws.Path+"/a.txt") != "one\ntwo\nthree\nfour\n" {
		t.Error("the older snapshot does not come back", err)
	}
}

func TestChangesAndDiffs(t *testing.T) {
	m, ws := newSpace(t)
	a := snap(t, m, ws)
	put(t, ws.Path+"/a.txt", "one\nTWO\nthree\nfour\n")
	put(t, ws.Path+"/odd\nname", "x\r\n")
	put(t, ws.Path+"/bin", "\x00\x01")
	must(t, os.Remove(ws.Path+"/dir/b.txt"))
	b := snap(t, m, ws)
	list, err := m.Changed(ctx, ws, a, b)
	must(t, err)
	var got []string
	for _, c := range list {
		got = append(got, c.String())
	}
	if want := "M a.txt (+1 -1)|A bin (binary)|D dir/b.txt (+0 -1)|A odd\nname (+1 -0)"; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
	d, err := m.Diff(ctx, ws, a.Tree, b.Tree)
	if err != nil || !strings.Contains(string(d), "-two\n+TWO\n") || !strings.Contains(string(d), "+x\r\n") {
		t.Errorf("%s %v", d, err)
	}
	sh(t, ws.Path, "git add a.txt && git commit -qm half")
	staged := sh(t, ws.Path, "git status --porcelain")
	d, err = m.DiffBase(ctx, ws)
	if err != nil || !strings.Contains(string(d), "+TWO\n") || !strings.Contains(string(d), "-b\n") {
		t.Errorf("against the base: %s %v", d, err)
	}
	if sh(t, ws.Path, "git status --porcelain") != staged {
		t.Error("looking changed the index")
	}
}

func TestIgnoredFilesAreWatched(t *testing.T) {
	m, ws := newSpace(t)
	put(t, ws.Path+"/x.log", "1")
	put(t, ws.Path+"/node_modules/p/index.js", "1")
	sum := func() [32]byte {
		h, err := m.IgnoredManifest(ctx, ws)
		must(t, err)
		return h
	}
	a := sum()
	put(t, ws.Path+"/node_modules/p/index.js", "2")
	put(t, ws.Path+"/a.txt", "no ignored file")
	if sum() != a {
		t.Error("a cache or a tracked file counts")
	}
	put(t, ws.Path+"/x.log", "22")
	if sum() == a {
		t.Error("a change was missed")
	}
	b := sum()
	put(t, ws.Path+"/dir/y.log", "")
	if sum() == b {
		t.Error("a new file was missed")
	}
}

func TestKilledWhileSnapshottingAndRestoring(t *testing.T) {
	m, ws := newSpace(t)
	for i := range 400 {
		put(t, ws.Path+"/many/"+string(rune('a'+i%26))+"/"+strings.Repeat("x", i/26+1), strings.Repeat("text\n", i))
	}
	sh(t, ws.Path, "git add many && git commit -qm many")
	base, files := snap(t, m, ws), picture(t, ws.Path)
	gitState := func() string {
		return sh(t, ws.Path, "git symbolic-ref HEAD; git for-each-ref refs/heads; git status --porcelain; git ls-files -s; git log --format=%H")
	}
	wantGit := gitState()
	hurt := func() {
		sh(t, ws.Path, "rm -rf many/a many/b; for f in many/c/*; do echo more >>$f; done; mkdir -p n/o; echo new >n/o/w; git add -A; git commit -qm hurt; echo tail >>a.txt")
	}
	start := time.Now()
	hurt()
	_, err := m.Restore(ctx, ws, base)
	must(t, err)
	took := time.Since(start)
	rng := rand.New(rand.NewPCG(1, 2))
	done := 0
	const rounds = 10
	for i := range rounds {
		hurt()
		job := map[string]any{"State": m.state, "WS": ws, "To": base, "Op": "restore"}
		if i%3 == 0 {
			job["Op"] = "snapshot"
		}
		if killedWhile(t, job, time.Duration(rng.Int64N(int64(took)))) {
			done++
		}
		if _, err := m.Restore(ctx, ws, base); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if picture(t, ws.Path) != files {
			t.Fatalf("round %d: the files differ", i)
		}
		if got := gitState(); got != wantGit {
			t.Fatalf("round %d: git says\n%s\nwas\n%s", i, got, wantGit)
		}
	}
	t.Logf("%d of %d were done before they were killed", done, rounds)
}

func TestHumanWithAnIndexLock(t *testing.T) {
	m, ws := newSpace(t)
	lock := filepath.Join(ws.RepoGit, "index.lock")
	put(t, lock, "")
	s := snap(t, m, ws)
	put(t, ws.Path+"/a.txt", "spoilt")
	if _, err := m.Restore(ctx, ws, s); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Error("the user's lock was removed")
	}
}

func TestPipesAndSocketsDoNotBlock(t *testing.T) {
	m, ws := newSpace(t)
	must(t, syscall.Mkfifo(ws.Path+"/fifo", 0o644))
	s := snap(t, m, ws)
	if _, err := m.Restore(ctx, ws, s); err != nil {
		t.Error(err)
	}
	if _, _, _, err := m.ReadFile(ctx, ws, "fifo", 10); !errors.Is(err, errNotRegular) {
		t.Errorf("reading a pipe: %v", err)
	}
}
