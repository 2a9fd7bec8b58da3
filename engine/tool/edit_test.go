package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine/machine"
)

func TestWriteAndEdit(t *testing.T) {
	b := newBench(t, Options{})
	p := b.mustPlan("write_file", m{"path": "d/new.txt", "content": "one\ntwo\n"})
	if p.Summary != "create d/new.txt" || p.Contract.Class != machine.ClassWorkspace || !p.Contract.Writes ||
		p.Contract.Sender != machine.SenderLocal || !p.Subject.Sealed || !p.Subject.Writes[0].Inside {
		t.Errorf("%+v", p)
	}
	wantText(t, p.Text, "before: does not exist", "after:  8 bytes, sha256 "+machine.DigestOf([]byte("one\ntwo\n")).String(), "+++ b/d/new.txt", "+one")
	o := b.do("write_file", m{"path": "d/new.txt", "content": "one\ntwo\n"})
	wantEnd(t, o, EndCompleted, "0")
	if !o.Result.OK || !o.Result.Changed || b.disk("d/new.txt") != "one\ntwo\n" {
		t.Errorf("%+v", o)
	}
	wantText(t, text(t, o), "d/new.txt: created (+2 -0 lines)")
	o = b.do("edit_file", m{"path": "d/new.txt", "old": "two", "new": "2"})
	wantEnd(t, o, EndCompleted, "0")
	wantText(t, text(t, o), "d/new.txt: replaced 1 occurrence (+1 -1 lines)", "-two\n+2\n")
	o = b.do("write_file", m{"path": "d/new.txt", "content": ""})
	wantEnd(t, o, EndCompleted, "0")
	if b.disk("d/new.txt") != "" {
		t.Error("not emptied")
	}
}

func TestWriteKeepsTheMode(t *testing.T) {
	b := newBench(t, Options{})
	b.put("run.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(b.env.Space.Path, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, b.do("edit_file", m{"path": "run.sh", "old": "sh\n", "new": "bash\n"}), EndCompleted, "0")
	st, err := os.Stat(filepath.Join(b.env.Space.Path, "run.sh"))
	if err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// B28, B35: no way of spelling a path writes outside, or into .git.
func TestWritesStayInside(t *testing.T) {
	b := newBench(t, Options{})
	out := t.TempDir()
	ws := b.env.Space.Path
	for link, target := range map[string]string{"out": out, "dangling": filepath.Join(out, "not-there"), "g": ".git", "in": "real"} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	b.put(".git/config", "x")
	b.put("real/f", "x")
	b.put("a/f", "x")
	for _, p := range []string{"../f", "/etc/passwd", filepath.Join(out, "f"), "out/f", "dangling", "a/../../f", "/"} {
		wantText(t, b.refused("write_file", m{"path": p, "content": ""}), "outside the workspace")
		wantText(t, b.refused("edit_file", m{"path": p, "old": "a", "new": "b"}), "outside the workspace")
	}
	for _, p := range []string{".git", ".git/config", ".GIT/config", "g/config", "sub/.git/hooks/x", "real/../.git/x", ".git./x"} {
		wantText(t, b.refused("write_file", m{"path": p, "content": ""}), "git's own directory")
	}
	wantText(t, b.refused("write_file", m{"path": "d/", "content": ""}), "names a directory")
	wantText(t, b.refused("write_file", m{"path": ".", "content": ""}), "workspace itself")
	wantText(t, b.refused("edit_file", m{"path": "f", "old": "a", "new": "a"}), "the same")
	p := b.mustPlan("write_file", m{"path": "in/f", "content": "new"})
	if p.Target != "real/f" {
		t.Errorf("the target shown is %s", p.Target)
	}
	wantEnd(t, b.do("write_file", m{"path": "in/f", "content": "new"}), EndCompleted, "0")
	if b.disk("real/f") != "new" {
		t.Error("a link that stays inside does not work")
	}
	wantEnd(t, b.do("write_file", m{"path": ".gitignore", "content": "new"}), EndCompleted, "0")
}

func TestEditThatDoesNotFitIsAResult(t *testing.T) {
	b := newBench(t, Options{})
	b.put("f", "a\na\n")
	p := b.mustPlan("edit_file", m{"path": "f", "old": "a", "new": "b"})
	wantText(t, p.Text, "As the file stands now", "occurs 2 times")
	o := b.do("edit_file", m{"path": "f", "old": "a", "new": "b"})
	wantEnd(t, o, EndCompleted, CodeNoMatch)
	wantText(t, text(t, o), "f: The old text occurs 2 times")
	o = b.do("edit_file", m{"path": "none", "old": "a", "new": "b"})
	wantEnd(t, o, EndCompleted, CodeNotFound)
	wantText(t, text(t, o), "write_file creates one")
	b.put("dir/x", "")
	wantEnd(t, b.do("write_file", m{"path": "dir", "content": ""}), EndCompleted, CodeUnreadable)
	if b.disk("f") != "a\na\n" {
		t.Error("written all the same")
	}
}

// A call may prepare what a later call of the same response edits.
func TestEditPlannedBeforeItsFileExists(t *testing.T) {
	b := newBench(t, Options{})
	p := b.mustPlan("edit_file", m{"path": "f", "old": "a", "new": "b"})
	b.put("f", "a")
	c := b.call(p)
	var err error
	if c.Measured, err = b.set.Get("edit_file").Measure(t.Context(), b.env, p.Contract, p.Args); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, b.set.Get("edit_file").Run(t.Context(), b.env, c), EndCompleted, "0")
	if b.disk("f") != "b" {
		t.Error(b.disk("f"))
	}
}

// After an interruption the disk decides: the new content is adopted, the old
// one is written over, anything else is left alone.
func TestRepeatedEditLooksAtTheDisk(t *testing.T) {
	b := newBench(t, Options{})
	for _, c := range []struct{ name, disk, code, want, text string }{
		{"written", "B\n", "0", "B\n", "already has the new content"},
		{"not written", "A\n", "0", "B\n", "replaced"},
		{"somebody else's", "C\n", CodeDrift, "C\n", "somebody else changed f meanwhile"},
		{"gone", "", CodeDrift, "", "now does not exist"},
	} {
		b.put("f", "A\n")
		p := b.mustPlan("edit_file", m{"path": "f", "old": "A", "new": "B"})
		call := b.call(p)
		var err error
		if call.Measured, err = b.set.Get("edit_file").Measure(t.Context(), b.env, p.Contract, p.Args); err != nil {
			t.Fatal(err)
		}
		b.put("f", c.disk)
		if c.disk == "" {
			if err := os.Remove(filepath.Join(b.env.Space.Path, "f")); err != nil {
				t.Fatal(err)
			}
		}
		o := b.set.Get("edit_file").Run(t.Context(), b.env, call)
		wantEnd(t, o, EndCompleted, c.code)
		wantText(t, text(t, o), c.text)
		if o.Result.OK != (c.code == "0") {
			t.Errorf("%s: OK %v", c.name, o.Result.OK)
		}
		if c.want != "" && b.disk("f") != c.want {
			t.Errorf("%s: disk %q", c.name, b.disk("f"))
		}
	}
}

// B28: somebody writes between the last look and the exchange of the file.
func TestEditLosesToAConcurrentWriter(t *testing.T) {
	b := newBench(t, Options{})
	b.put("f", "A\n")
	p := b.mustPlan("write_file", m{"path": "f", "content": "B\n"})
	c := b.call(p)
	var err error
	if c.Measured, err = b.set.Get("write_file").Measure(t.Context(), b.env, p.Contract, p.Args); err != nil {
		t.Fatal(err)
	}
	c.Before = func() { b.put("f", "human\n") }
	o := b.set.Get("write_file").Run(t.Context(), b.env, c)
	wantEnd(t, o, EndCompleted, CodeDrift)
	if b.disk("f") != "human\n" {
		t.Errorf("the other's work is lost: %q", b.disk("f"))
	}
}

func TestUnmeasuredEditWritesNothing(t *testing.T) {
	b := newBench(t, Options{})
	b.put("f", "A\n")
	p := b.mustPlan("write_file", m{"path": "f", "content": "B\n"})
	o := b.set.Get("write_file").Run(t.Context(), b.env, b.call(p))
	wantEnd(t, o, EndCompleted, CodeDrift)
	p = b.mustPlan("write_file", m{"path": "g", "content": "B\n"})
	o = b.set.Get("write_file").Run(t.Context(), b.env, b.call(p))
	wantEnd(t, o, EndRejected, CodeNotStarted)
	if b.disk("f") != "A\n" {
		t.Error("written")
	}
}

func TestEditOfBinaryIsDescribed(t *testing.T) {
	b := newBench(t, Options{})
	b.put("f", "A\x00one\r\n")
	p := b.mustPlan("edit_file", m{"path": "f", "old": "one", "new": "two"})
	wantText(t, p.Text, "before: f is binary", "after: f is binary")
	if strings.Contains(p.Text, "\x00") {
		t.Error("raw bytes in the text")
	}
	wantEnd(t, b.do("edit_file", m{"path": "f", "old": "one", "new": "two"}), EndCompleted, "0")
	if b.disk("f") != "A\x00two\r\n" {
		t.Errorf("%q", b.disk("f"))
	}
}
