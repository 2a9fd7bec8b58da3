package ledger

import (
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Files are the owner's alone, whatever the umask, and their names may hold
// what means something in an address.
func TestFilesArePrivateWhateverTheirName(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "a ?b#c%20d", "new")
	path := filepath.Join(dir, "led ger?x=1#%41.db")
	d := openAt(t, path)
	must(t, add(d, Full, "r", 0))
	must(t, d.Sync(bg))
	for p, want := range map[string]os.FileMode{dir: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, path + ".head": 0o600, path + ".procs": 0o700} {
		st, err := os.Stat(p)
		must(t, err)
		if st.Mode().Perm() != want {
			t.Errorf("%s: %o", p, st.Mode().Perm())
		}
	}
	must(t, os.Chmod(path, 0o644)) // as a copy may have made it
	openAt(t, path)
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
		t.Errorf("%o", st.Mode().Perm())
	}
}

// B46: what is no ledger is refused and left as it was.
func TestAFileThatIsNoLedgerIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	must(t, os.WriteFile(notes, []byte(strings.Repeat("shopping list\n", 100)), 0o644))
	other := filepath.Join(dir, "other.db")
	must(t, os.WriteFile(other, nil, 0o644))
	c, err := dial(other, modeMigrate, 0)
	must(t, err)
	must(t, c.do("CREATE TABLE bookmark(url TEXT); INSERT INTO bookmark VALUES('x')"))
	must(t, c.close())
	for _, p := range []string{notes, other, dir} {
		before, _ := os.ReadFile(p)
		_, err := Open(bg, Options{Path: p})
		is[*ForeignError](t, err)
		after, _ := os.ReadFile(p)
		if string(after) != string(before) {
			t.Errorf("%s was changed", p)
		}
	}
}

// An emptied or missing ledger is not silently started anew where there was one.
func TestAnEmptiedLedgerIsNotStartedOver(t *testing.T) {
	path := seed(t, 4)
	must(t, os.Truncate(path, 0))
	_, err := Open(bg, Options{Path: path})
	if e := is[*EmptiedError](t, err); e.Gone || e.Want.Seq != 4 {
		t.Errorf("%+v", e)
	}
	must(t, os.Remove(path))
	_, err = Open(bg, Options{Path: path})
	if e := is[*EmptiedError](t, err); !e.Gone {
		t.Errorf("%+v", e)
	}
	must(t, os.Remove(path+".head"))
	must(t, os.WriteFile(path+"-wal", []byte("left over"), 0o600))
	_, err = Open(bg, Options{Path: path})
	is[*EmptiedError](t, err)
	must(t, os.Remove(path+"-wal"))
	must(t, os.WriteFile(path, nil, 0o600)) // an empty file and no trace: as good as none
	must(t, add(openAt(t, path), Full, "r", 0))
}

func TestAMissingLedgerCanBeAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "ledger.db")
	for _, o := range []Options{{Path: path, MustExist: true}, {Path: path, ViewOnly: true}} {
		_, err := Open(bg, o)
		is[*NotFoundError](t, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("its directory was made")
	}
}

// B46: a network file system is refused by name, before anything is made there.
func TestANetworkFileSystemIsRefused(t *testing.T) {
	path := dbPath(t)
	_, err := Open(bg, Options{Path: path, NetworkFS: func(string) (string, error) { return "NFS", nil }})
	if e := is[*NetworkFSError](t, err); e.FS != "NFS" || e.Path != path {
		t.Errorf("%+v", e)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a ledger was made")
	}
	if name, err := networkFS(filepath.Dir(path)); name != "" || err != nil {
		t.Errorf("this directory: %q %v", name, err)
	}
}

// B46: a ledger or directory of another user is refused, naming the user.
func TestAnotherUsersPlaceIsRefused(t *testing.T) {
	path := seed(t, 1)
	me := uint32(os.Geteuid())
	_, err := Open(bg, Options{Path: path, UID: func() uint32 { return me + 1 }})
	if e := is[*OwnerError](t, err); e.Path != path || e.UID != me {
		t.Errorf("%+v", e)
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 4242, -1); err != nil {
		t.Skipf("cannot give a directory away: %v", err)
	}
	_, err = Open(bg, Options{Path: filepath.Join(dir, "ledger.db")})
	if e := is[*OwnerError](t, err); e.Path != dir || e.UID != 4242 {
		t.Errorf("%+v", e)
	}
}

// B46: where nothing can be written, the ledger opens for viewing and says why.
func TestAReadOnlyPlaceOpensForViewing(t *testing.T) {
	nobody := uint32(65534)
	var cred *syscall.Credential
	if os.Geteuid() == 0 { // root may write anywhere
		cred = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	for _, clean := range []bool{true, false} {
		path := seed(t, 3)
		dir := filepath.Dir(path)
		if !clean { // still open, so its newest events are in the -wal
			d := openAt(t, path)
			must(t, add(d, Full, "r", 3))
		}
		for p := dir; p != "/"; p = filepath.Dir(p) {
			st, err := os.Stat(p)
			must(t, err)
			if st.Mode().Perm()&0o005 != 0o005 {
				os.Chmod(p, st.Mode().Perm()|0o055)
				t.Cleanup(func() { os.Chmod(p, st.Mode().Perm()) })
			}
		}
		must(t, os.Chmod(dir, 0o555))
		for _, s := range []string{"", "-wal", "-shm", ".head"} {
			os.Chmod(path+s, 0o444)
		}
		exe, err := os.Executable()
		must(t, err)
		if cred != nil && !reachable(exe) {
			t.Skip("another user could not run this test binary")
		}
		p := startAs(t, cred, "once", path)
		want := "HEAD 3 true"
		if !clean {
			want = "HEAD 4 true"
		}
		why := p.expect(want)
		if !strings.Contains(why, "cannot be written") {
			t.Errorf("the reason is %q", why)
		}
		if s := p.expect("WRITE"); !strings.Contains(s, "viewing only") {
			t.Errorf("writing: %s", s)
		}
		p.finish()
		os.Chmod(dir, 0o755)
	}
}

// B46: a read-only mount is one of those places; and a viewer there notices
// when somebody who may write has changed the file.
func TestAReadOnlyMountOpensForViewing(t *testing.T) {
	path := seed(t, 3)
	mnt := t.TempDir()
	if err := unix.Mount(filepath.Dir(path), mnt, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(mnt, unix.MNT_DETACH) })
	must(t, unix.Mount("", mnt, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	d, err := Open(bg, Options{Path: filepath.Join(mnt, "ledger.db")})
	must(t, err)
	defer d.Close()
	if ro, why := d.ReadOnly(); !ro || !strings.Contains(why, "read-only file system") {
		t.Errorf("%v %q", ro, why)
	}
	if n, err := d.Tail(bg, "r"); n != 3 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
	is[*ReadOnlyError](t, add(d, Full, "r", 3))
	_, err = d.Renew(bg)
	is[*ReadOnlyError](t, err)
	is[*ReadOnlyError](t, d.PutBlob(bg, NewBlob(nil)))

	w := openAt(t, path)
	must(t, add(w, Full, "r", 3))
	if n, err := d.Tail(bg, "r"); n != 4 || err != nil {
		t.Errorf("what another wrote since is not seen: %d %v", n, err)
	}
	must(t, w.Close())
	if n, err := d.Tail(bg, "r"); n != 4 || err != nil {
		t.Errorf("after it closed: %d %v", n, err)
	}
}

// loseTail makes a ledger whose last events are only in the -wal, and removes it.
func loseTail(t *testing.T, spoil func(wal string)) string {
	t.Helper()
	path := seed(t, 3) // checkpointed when closed
	p := start(t, "own", path, "r")
	p.expect("READY")
	p.say("claim 1 3")
	p.expect("OK")
	d := openAt(t, path)
	must(t, add(d, Full, "r", 4))
	must(t, d.Sync(bg)) // moves the anchor
	p.kill()
	// Copy the files as a crash would leave them: closing d would tidy up.
	dst := filepath.Join(t.TempDir(), "ledger.db")
	for _, s := range []string{"", "-wal", ".head"} {
		b, err := os.ReadFile(path + s)
		must(t, err)
		must(t, os.WriteFile(dst+s, b, 0o600))
	}
	spoil(dst + "-wal")
	return dst
}

// A write-ahead file that was removed or damaged loses events without SQLite
// noticing. The anchor does: the ledger is refused until that is acknowledged.
func TestALostTailIsNamedAndMustBeAcknowledged(t *testing.T) {
	for name, spoil := range map[string]func(wal string){
		"removed": func(w string) { os.Remove(w) },
		"cut":     func(w string) { os.Truncate(w, fileSize(w)/2) },
		"flipped": func(w string) {
			b, _ := os.ReadFile(w)
			b[len(b)/3] ^= 1
			os.WriteFile(w, b, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := loseTail(t, spoil)
			_, err := Open(bg, Options{Path: path})
			e := is[*LostTailError](t, err)
			if e.Want.Seq != 5 || e.Have.Seq >= 5 || e.Path != path {
				t.Errorf("%+v", e)
			}
			v := openWith(t, Options{Path: path, ViewOnly: true})
			if v.Lost() == nil || v.Lost().Want != e.Want {
				t.Errorf("viewing does not tell: %+v", v.Lost())
			}
			must(t, v.Close())
			d := openWith(t, Options{Path: path, AcceptLoss: true})
			must(t, add(d, Full, "r", e.Have.Seq))
			must(t, d.Close())
			d = openAt(t, path) // accepted once, it is no longer asked about
			found := whole(t, d)
			if len(found.Losses) != 1 || found.Losses[0].Want != e.Want || found.Losses[0].Have != e.Have {
				t.Errorf("%+v", found.Losses)
			}
		})
	}
	path := loseTail(t, func(string) {}) // the same without the damage
	if n, err := openAt(t, path).Tail(bg, "r"); n != 5 || err != nil {
		t.Errorf("%d %v", n, err)
	}
}

// An older copy that has been written to since differs from what the anchor knows.
func TestAnotherHistoryIsNoticed(t *testing.T) {
	path := seed(t, 3)
	b, err := os.ReadFile(path)
	must(t, err)
	d := openAt(t, path)
	must(t, add(d, Full, "r", 3))
	must(t, d.Close())
	anchor, err := os.ReadFile(path + ".head")
	must(t, err)
	must(t, os.WriteFile(path, b, 0o600))
	must(t, os.WriteFile(path+".head", []byte("torn"), 0o600)) // no anchor: nothing to compare with
	d = openAt(t, path)
	for i := range int64(3) {
		must(t, add(d, Full, "other", i))
	}
	must(t, d.Close())
	must(t, os.WriteFile(path+".head", anchor, 0o600))
	_, err = Open(bg, Options{Path: path})
	if e := is[*LostTailError](t, err); e.Want.Seq != 4 || e.Have.Seq != 6 {
		t.Errorf("%+v", e)
	}
}

// Damage in what was stored is found at the next start if it is recent, when it
// is read, and by verify wherever it is.
func TestDamageIsFound(t *testing.T) {
	path := seed(t, 3)
	b, err := os.ReadFile(path)
	must(t, err)
	i := strings.LastIndex(string(b), "payload of Seeded")
	b[i] ^= 0x20
	must(t, os.WriteFile(path, b, 0o600))
	_, err = Open(bg, Options{Path: path})
	if e := is[*CorruptError](t, err); e.Run != "r" || e.Seq == 0 {
		t.Errorf("%+v", e)
	}
}

func TestVerifyFindsEveryKindOfDamage(t *testing.T) {
	for name, sql := range map[string]string{
		"payload":  "UPDATE event SET payload = x'00' WHERE seq = 2",
		"time":     "UPDATE event SET late = 7 WHERE seq = 1",
		"kind":     "UPDATE event SET kind = actor WHERE seq = 1",
		"epoch":    "UPDATE part SET epoch = 3 WHERE first = 1",
		"command":  "UPDATE part SET cmd = zeroblob(16) WHERE first = 1",
		"event":    "DELETE FROM event WHERE seq = 3",
		"part":     "DELETE FROM part WHERE first = 2",
		"word":     "DELETE FROM word",
		"order":    "UPDATE part SET n0 = 9 WHERE first = 2",
		"blob":     "UPDATE blob SET data = (SELECT data FROM blob WHERE id = 2) WHERE id = 1",
		"frame":    "UPDATE blob SET data = x'0102' WHERE id = 1",
		"guard":    "DROP TRIGGER event_no_update",
		"stranger": "CREATE TRIGGER extra AFTER INSERT ON event BEGIN DELETE FROM inbox; END",
	} {
		t.Run(name, func(t *testing.T) {
			path := dbPath(t)
			d := openAt(t, path)
			for i := range int64(4) {
				must(t, add(d, Full, "r", i))
			}
			must(t, d.PutBlob(bg, NewBlob([]byte("one")), NewBlob([]byte("two"))))
			must(t, d.Close())
			c, err := dial(path, modeMigrate, 0)
			must(t, err)
			var triggers []string
			must(t, c.query(bg, "SELECT name FROM sqlite_schema WHERE type = 'trigger'", nil, func(v []driver.Value) error {
				triggers = append(triggers, text(v[0]))
				return nil
			}))
			var defs []string
			must(t, c.query(bg, "SELECT sql FROM sqlite_schema WHERE type = 'trigger'", nil, func(v []driver.Value) error {
				defs = append(defs, text(v[0]))
				return nil
			}))
			if name != "guard" && name != "stranger" {
				for _, n := range triggers {
					must(t, c.do("DROP TRIGGER "+n))
				}
			}
			must(t, c.do(sql))
			if name != "guard" && name != "stranger" {
				for _, s := range defs {
					must(t, c.do(s))
				}
			}
			must(t, c.close())
			v, err := Open(bg, Options{Path: path, ViewOnly: true})
			if err != nil { // found at the start already
				is[*CorruptError](t, err)
				return
			}
			defer v.Close()
			found, err := v.VerifyChain(bg, nil)
			must(t, err)
			if len(found.Problems) == 0 {
				t.Error("not found")
			}
			for _, p := range found.Problems {
				is[*CorruptError](t, error(p))
			}
		})
	}
}

// A backup is whole, opens as a ledger, and never replaces anything.
func TestABackupIsWholeAndReplacesNothing(t *testing.T) {
	path := seed(t, 3)
	d := openAt(t, path)
	must(t, add(d, Lazy, "r", 3))
	to := filepath.Join(t.TempDir(), "copy.db")
	must(t, d.Backup(bg, to))
	if err := d.Backup(bg, to); err == nil {
		t.Error("it replaced a file")
	}
	es, err := os.ReadDir(filepath.Dir(to))
	must(t, err)
	if len(es) != 1 {
		t.Errorf("%v", es)
	}
	if st, _ := os.Stat(to); st.Mode().Perm() != 0o600 {
		t.Errorf("%o", st.Mode().Perm())
	}
	c := openAt(t, to)
	if v := whole(t, c); v.Events != 4 {
		t.Errorf("%+v", v)
	}
	must(t, add(c, Full, "r", 4))
	err = d.Backup(bg, filepath.Join(t.TempDir(), "no", "such", "dir"))
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// reachable reports whether a stranger may run a program where it lies.
func reachable(exe string) bool {
	for p := exe; p != "/"; p = filepath.Dir(p) {
		if st, err := os.Stat(p); err != nil || st.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}
