//go:build unix

package workspace

import (
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sum(s string) [32]byte { return sha256.Sum256([]byte(s)) }

var noFile [32]byte

func leftovers(t testing.TB, m *Manager, dir string) {
	t.Helper()
	for _, p := range []string{dir + "/.pawl-*", dir + "/*/.pawl-*", m.state + "/swap/*/.pawl-*"} {
		if found, _ := filepath.Glob(p); len(found) != 0 {
			t.Errorf("left over: %v", found)
		}
	}
}

func TestWriteTable(t *testing.T) {
	for _, kind := range []Kind{KindWorktree, KindFolder} {
		for name, c := range map[string]struct {
			disk     string // "-" for none
			old, new string
			drift    bool
			already  bool
		}{
			"replaces what is known":  {disk: "A", old: "A", new: "B"},
			"is done already":         {disk: "B", old: "A", new: "B", already: true},
			"finds another content":   {disk: "H", old: "A", new: "B", drift: true},
			"finds no file":           {disk: "-", old: "A", new: "B", drift: true},
			"makes a file":            {disk: "-", old: "-", new: "B"},
			"was to make one, exists": {disk: "H", old: "-", new: "B", drift: true},
			"made it already":         {disk: "B", old: "-", new: "B", already: true},
			"empties a file":          {disk: "A", old: "A", new: ""},
			"empty is not missing":    {disk: "", old: "-", new: "B", drift: true},
			"fills an empty file":     {disk: "", old: "", new: "B"},
			"makes an empty file":     {disk: "-", old: "-", new: ""},
			"changes nothing":         {disk: "A", old: "A", new: "A", already: true},
		} {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				m := newManager(t)
				dir, err := filepath.EvalSymlinks(t.TempDir())
				must(t, err)
				if kind == KindFolder {
					m = &Manager{}
				}
				ws := Workspace{Run: "r1", Kind: kind, Path: dir}
				digest := func(s string) [32]byte {
					if s == "-" {
						return noFile
					}
					return sum(s)
				}
				if c.disk != "-" {
					put(t, dir+"/f", c.disk)
					must(t, os.Chmod(dir+"/f", 0o640))
				}
				res, err := m.Write(ctx, ws, "f", digest(c.old), sum(c.new), []byte(c.new), 0o600)
				var d *DriftError
				if errors.As(err, &d) != c.drift || !c.drift && err != nil {
					t.Fatalf("got %v", err)
				}
				if c.drift {
					if d.Disk != digest(c.disk) || d.Known != digest(c.old) || d.Want != sum(c.new) {
						t.Errorf("drift %+v", d)
					}
					if _, err := os.Stat(dir + "/f"); (err == nil) != (c.disk != "-") {
						t.Error("a refused write made or removed the file")
					}
					if c.disk != "-" && read(t, dir+"/f") != c.disk {
						t.Error("a refused write changed the file")
					}
					return
				}
				st, err := os.Stat(dir + "/f")
				must(t, err)
				want := os.FileMode(0o640)
				if c.disk == "-" {
					want = 0o600
				}
				if read(t, dir+"/f") != c.new || res.Already != c.already || st.Mode().Perm() != want || res.Path != dir+"/f" {
					t.Errorf("%+v, mode %v, content %q", res, st.Mode(), read(t, dir+"/f"))
				}
				leftovers(t, m, dir)
				again, err := m.Write(ctx, ws, "f", digest(c.old), sum(c.new), []byte(c.new), 0o600)
				if err != nil || !again.Already {
					t.Errorf("again: %+v %v", again, err)
				}
			})
		}
	}
}

func TestAnEditInTheLastMomentIsKept(t *testing.T) {
	for _, point := range []string{"filled", "exchanged"} {
		for name, edit := range map[string]func(string) error{
			"in place": func(p string) error { return os.WriteFile(p, []byte("human"), 0o644) },
			"replaced": func(p string) error {
				return errors.Join(os.WriteFile(p+"~", []byte("human"), 0o644), os.Rename(p+"~", p))
			},
			"removed": os.Remove,
		} {
			m, ws := newSpace(t)
			f := ws.Path + "/a.txt"
			old := read(t, f)
			m.point = func(at string) {
				if at == point {
					must(t, edit(f))
				}
			}
			_, err := m.Write(ctx, ws, "a.txt", sum(old), sum("agent"), []byte("agent"), 0)
			b, rerr := os.ReadFile(f)
			if point == "exchanged" {
				// The edit came after ours and is simply the newer one.
				if err != nil || (name == "removed") != errors.Is(rerr, os.ErrNotExist) || name != "removed" && string(b) != "human" {
					t.Errorf("%s, %s: %v, content %q", point, name, err, b)
				}
				continue
			}
			var d *DriftError
			if !errors.As(err, &d) {
				t.Errorf("%s, %s: got %v", point, name, err)
			}
			if name == "removed" && !errors.Is(rerr, os.ErrNotExist) || name != "removed" && string(b) != "human" {
				t.Errorf("%s, %s: the edit was lost: %q", point, name, b)
			}
			leftovers(t, m, ws.Path)
		}
	}
	m, ws := newSpace(t)
	m.point = func(string) { put(t, ws.Path+"/new", "human") }
	var d *DriftError
	if _, err := m.Write(ctx, ws, "new", noFile, sum("agent"), []byte("agent"), 0); !errors.As(err, &d) || d.Disk != sum("human") || read(t, ws.Path+"/new") != "human" {
		t.Errorf("made meanwhile: %v, %q", err, read(t, ws.Path+"/new"))
	}
	leftovers(t, m, ws.Path)
}

// stopped ends a write at a point as a crash would: nothing after it happens.
func stopped(m *Manager, ws Workspace, at string, before func(), path string, old, new string) {
	defer func() { _ = recover() }()
	m.point = func(p string) {
		if p == "filled" && before != nil {
			before()
		}
		if p == at {
			panic("stopped here")
		}
	}
	defer func() { m.point = nil }()
	_, _ = m.Write(ctx, ws, path, sum(old), sum(new), []byte(new), 0)
}

func TestACrashBetweenExchangeAndCheckLosesNoEdit(t *testing.T) {
	for _, kind := range []Kind{KindWorktree, KindFolder} {
		m, ws := newSpace(t)
		ws.Kind = kind
		f := ws.Path + "/a.txt"
		old := read(t, f)
		stopped(m, ws, "filled", nil, "a.txt", old, "agent")
		if read(t, f) != old {
			t.Fatal("too early")
		}
		res, err := m.Write(ctx, ws, "a.txt", sum(old), sum("agent"), []byte("agent"), 0)
		if err != nil || res.Already || read(t, f) != "agent" {
			t.Errorf("%s, after a crash before the exchange: %+v %v", kind, res, err)
		}
		leftovers(t, m, ws.Path)

		put(t, f, old)
		stopped(m, ws, "exchanged", nil, "a.txt", old, "agent")
		res, err = m.Write(ctx, ws, "a.txt", sum(old), sum("agent"), []byte("agent"), 0)
		if err != nil || !res.Already || read(t, f) != "agent" {
			t.Errorf("%s, after a crash behind the exchange: %+v %v", kind, res, err)
		}
		leftovers(t, m, ws.Path)

		put(t, f, old)
		stopped(m, ws, "exchanged", func() { put(t, f, "human") }, "a.txt", old, "agent")
		var d *DriftError
		if _, err := m.Write(ctx, ws, "a.txt", sum(old), sum("agent"), []byte("agent"), 0); !errors.As(err, &d) || d.Disk != sum("human") || read(t, f) != "human" {
			t.Errorf("%s: the edit that the crash hid is lost: %v, %q", kind, err, read(t, f))
		}
		leftovers(t, m, ws.Path)
	}
}

func TestLinksAndGitsOwnDirectory(t *testing.T) {
	m, ws := newSpace(t)
	out := t.TempDir()
	put(t, out+"/f", "outside")
	for link, to := range map[string]string{"outdir": out, "outfile": out + "/f", "nowhere": out + "/new", "in": "dir", "infile": "dir/b.txt", "loop": "loop", "up": "../../..", "absin": ws.Path + "/dir"} {
		must(t, os.Symlink(to, filepath.Join(ws.Path, link)))
	}
	must(t, os.Symlink("outdir", ws.Path+"/twice"))
	real, err := filepath.EvalSymlinks(out)
	must(t, err)
	for path, want := range map[string]struct {
		abs    string
		inside bool
	}{
		".": {ws.Path, true}, "a.txt": {ws.Path + "/a.txt", true}, "new/deep/file": {ws.Path + "/new/deep/file", true},
		"in/b.txt": {ws.Path + "/dir/b.txt", true}, "infile": {ws.Path + "/dir/b.txt", true}, "absin/b.txt": {ws.Path + "/dir/b.txt", true},
		"outdir/f": {real + "/f", false}, "outfile": {real + "/f", false}, "nowhere": {real + "/new", false}, "twice/x": {real + "/x", false},
		"../x": {filepath.Dir(ws.Path) + "/x", false}, "in/../a.txt": {ws.Path + "/a.txt", true}, "outdir/../f": {filepath.Dir(real) + "/f", false},
		ws.Path + "/a.txt": {ws.Path + "/a.txt", true}, ws.Repo + "/a.txt": {ws.Repo + "/a.txt", false}, "/etc/hostname": {"/etc/hostname", false},
		ws.Path + "x": {ws.Path + "x", false},
	} {
		abs, inside, err := m.Resolve(ws, path)
		if err != nil || abs != want.abs || inside != want.inside {
			t.Errorf("%s: %s %v %v", path, abs, inside, err)
		}
		if want.inside {
			continue
		}
		var r *RefusedError
		if _, err := m.Write(ctx, ws, path, sum("outside"), sum("x"), []byte("x"), 0); !errors.As(err, &r) {
			t.Errorf("writing %s: %v", path, err)
		}
		if _, _, _, err := m.ReadFile(ctx, ws, path, 10); !errors.As(err, &r) {
			t.Errorf("reading %s: %v", path, err)
		}
	}
	for _, path := range []string{"loop", "missing/../a.txt", "a\x00b", "a.txt/below"} {
		if abs, _, err := m.Resolve(ws, path); err == nil {
			if _, werr := m.Write(ctx, ws, path, noFile, sum("x"), []byte("x"), 0); werr == nil {
				t.Errorf("%q: resolved to %s and written", path, abs)
			}
		}
	}
	for _, path := range []string{".git", "new/.git/config", ".GIT/hooks/pre-commit", "dir/.Git/config", "sub/.git /x", ".git./config", "GIT~1/config"} {
		var r *RefusedError
		if _, err := m.Write(ctx, ws, path, noFile, sum("x"), []byte("x"), 0); !errors.As(err, &r) {
			t.Errorf("writing %s: %v", path, err)
		}
	}
	if read(t, out+"/f") != "outside" {
		t.Error("the outside was changed")
	}
	if _, err := m.Write(ctx, ws, "infile", sum("b\n"), sum("c\n"), []byte("c\n"), 0); err != nil || read(t, ws.Path+"/dir/b.txt") != "c\n" {
		t.Errorf("through a link that stays inside: %v", err)
	}
	if st, err := os.Lstat(ws.Path + "/infile"); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
}

func TestALinkSwappedInIsNotFollowed(t *testing.T) {
	m, ws := newSpace(t)
	out := t.TempDir()
	put(t, out+"/b.txt", "b\n")
	stop := make(chan bool)
	done := make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(ws.Path+"/dir", ws.Path+"/kept")
			_ = os.Symlink(out, ws.Path+"/dir")
			_ = os.Remove(ws.Path + "/dir")
			_ = os.Rename(ws.Path+"/kept", ws.Path+"/dir")
		}
	}()
	for i := range 300 {
		text := strings.Repeat("x", i+1)
		_, _ = m.Write(ctx, ws, "dir/b.txt", sum("b\n"), sum(text), []byte(text), 0)
		_, _ = m.Write(ctx, ws, "dir/new", noFile, sum(text), []byte(text), 0)
		if read(t, out+"/b.txt") != "b\n" {
			t.Fatal("a write went through the link")
		}
	}
	close(stop)
	<-done
	if _, err := os.Stat(out + "/new"); err == nil {
		t.Error("a file was made through the link")
	}
}

func TestReadFile(t *testing.T) {
	m, ws := newSpace(t)
	text := read(t, ws.Path+"/a.txt")
	b, d, n, err := m.ReadFile(ctx, ws, "a.txt", 5)
	if err != nil || string(b) != text[:5] || d != sum(text) || n != int64(len(text)) {
		t.Errorf("%q %d %v", b, n, err)
	}
	if got, err := m.FileDigest(ctx, ws, "a.txt"); err != nil || got != sum(text) {
		t.Error(err)
	}
	for _, none := range []string{"none", "no/such/dir/file"} {
		if got, err := m.FileDigest(ctx, ws, none); err != nil || got != noFile {
			t.Errorf("%s: %v %v", none, got, err)
		}
	}
	if _, _, _, err := m.ReadFile(ctx, ws, "dir", 5); err == nil {
		t.Error("a directory was read")
	}
	if _, err := m.Write(ctx, ws, "a.txt", sum(text), sum("x"), []byte("y"), 0); err == nil {
		t.Error("data other than announced was written")
	}
}

func TestKilledWhileWriting(t *testing.T) {
	m, ws := newSpace(t)
	old, text := strings.Repeat("old\n", 200_000), strings.Repeat("new\n", 300_000)
	rng := rand.New(rand.NewPCG(3, 4))
	done := 0
	const rounds = 10
	for i := range rounds {
		put(t, ws.Path+"/f", old)
		before := picture(t, ws.Path)
		if killedWhile(t, map[string]any{"State": m.state, "Op": "write", "WS": ws, "Path": "f", "Old": sum(old), "New": sum(text), "Data": []byte(text)},
			time.Duration(rng.IntN(15))*time.Millisecond) {
			done++
		}
		switch read(t, ws.Path+"/f") {
		case text:
		case old:
			if picture(t, ws.Path) != before {
				t.Errorf("round %d: something half done is in the workspace", i)
			}
		default:
			t.Fatalf("round %d: the file is neither old nor new", i)
		}
		if _, err := m.Write(ctx, ws, "f", sum(old), sum(text), []byte(text), 0); err != nil || read(t, ws.Path+"/f") != text {
			t.Errorf("round %d: %v", i, err)
		}
		leftovers(t, m, ws.Path)
	}
	t.Logf("%d of %d were done before they were killed", done, rounds)
}
