package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

// laterSteps are the migrations of this build and two of an imagined later one.
func laterSteps(t testing.TB) []step {
	t.Helper()
	steps, err := withTwoMore()
	must(t, err)
	return steps
}

func withTwoMore() ([]step, error) {
	steps, err := loadSteps(migrationFiles)
	n := len(steps)
	return append(steps,
		newStep(n+1, "add_colour", "ALTER TABLE run ADD COLUMN colour TEXT NOT NULL DEFAULT 'none'; CREATE INDEX run_colour ON run(colour);"),
		newStep(n+2, "add_shade", "CREATE TABLE shade(id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT; INSERT INTO shade(name) SELECT id FROM run;"),
	), err
}

// roleMigrate opens the ledger as a later build would; at the point args[0] it
// kills itself.
func roleMigrate(path string, args []string) error {
	steps, err := withTwoMore()
	if err != nil {
		return err
	}
	d, err := Open(bg, Options{Path: path, steps: steps, at: func(p string) error {
		if p == args[0] {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	v, err := d.w.c.version()
	fmt.Println("VERSION", v, err)
	return d.Close()
}

// seed makes a ledger of this build with n events.
func seed(t *testing.T, n int64) string {
	t.Helper()
	path := dbPath(t)
	d := openAt(t, path)
	for i := range n {
		_, err := d.Commit(bg, Full, Part{Run: "r", Cmd: newCmd(), Tail: i, Events: ev("Seeded"), Rows: Rows{Run: &RunRow{ID: "r", State: "running"}}})
		must(t, err)
	}
	must(t, d.Close())
	return path
}

// B49: killed at any moment of a migration, the ledger is at one version or the
// next, and the next start completes what is left. A copy is kept before each step.
func TestAMigrationKilledAnywhereIsCompleted(t *testing.T) {
	for _, point := range []string{"copied add_colour", "within add_colour", "migrated add_colour", "copied add_shade", "within add_shade", "migrated add_shade"} {
		t.Run(point, func(t *testing.T) {
			path := seed(t, 3)
			p := start(t, "migrate", path, point)
			for s := range p.lines {
				t.Fatalf("it was not killed: %s", s)
			}
			p.kill()
			p = start(t, "migrate", path, "nowhere")
			if v := p.expect("VERSION"); v != "3 <nil>" {
				t.Fatalf("version %s", v)
			}
			p.finish()
			d := openWith(t, Options{Path: path, steps: laterSteps(t)})
			if v := whole(t, d); v.Events != 3 {
				t.Errorf("%d events", v.Events)
			}
			for v := 1; v <= 2; v++ { // the copies open with the build they were made for
				c := openWith(t, Options{Path: fmt.Sprintf("%s.before-v%d", path, v+1), steps: laterSteps(t)[:v]})
				if n, _ := c.Tail(bg, "r"); n != 3 {
					t.Errorf("the copy before version %d has %d events", v+1, n)
				}
			}
		})
	}
}

// B49: two builds that start at once migrate once.
func TestManyWhoMigrateAtOnceMigrateOnce(t *testing.T) {
	path := seed(t, 2)
	var ps []*process
	for range 5 {
		ps = append(ps, start(t, "migrate", path, "nowhere"))
	}
	for _, p := range ps {
		if v := p.expect("VERSION"); v != "3 <nil>" {
			t.Error(v)
		}
		p.finish()
	}
	d := openWith(t, Options{Path: path, steps: laterSteps(t)})
	n, err := d.w.c.one("SELECT count(*) FROM migration")
	must(t, err)
	if num(n) != 3 {
		t.Errorf("%d steps recorded", n)
	}
}

// Many who start at once where there is no ledger make one, and all use it.
func TestManyWhoCreateAtOnceShareOneLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "er", "ledger.db")
	var ps []*process
	for range 5 {
		ps = append(ps, start(t, "own", path, "r"))
	}
	for _, p := range ps {
		p.expect("READY")
	}
	ps[0].say("claim 1 0")
	ps[0].expect("OK")
	ps[1].say("claim 2 1")
	ps[1].expect("HELD")
	for _, p := range ps {
		p.finish()
	}
	es, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	for _, e := range es {
		if strings.Contains(e.Name(), ".new-") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

// A step that fails leaves the ledger as it was, usable by the old build.
func TestAFailedMigrationIsUndone(t *testing.T) {
	path := seed(t, 1)
	steps := laterSteps(t)
	steps[2] = newStep(3, "broken", "CREATE TABLE half(x INTEGER) STRICT; INSERT INTO nowhere VALUES(1);")
	_, err := Open(bg, Options{Path: path, steps: steps})
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Fatal(err)
	}
	d := openWith(t, Options{Path: path, steps: steps[:2]})
	if v, err := d.w.c.one("SELECT count(*) FROM sqlite_schema WHERE name = 'half'"); err != nil || num(v) != 0 {
		t.Errorf("half a migration is left: %v %v", v, err)
	}
	whole(t, d)
}

// B49: no space for the copy: nothing is migrated, and it is when there is space.
func TestNoMigrationWithoutACopy(t *testing.T) {
	dir := tinyDisk(t, "1m")
	path := filepath.Join(dir, "ledger.db")
	d := openAt(t, path)
	must(t, add(d, Full, "r", 0))
	must(t, d.Close())
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	must(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	must(t, os.Truncate(ballast, fileSize(ballast)-100<<10)) // enough to open it, not for a copy
	_, err = Open(bg, Options{Path: path, steps: laterSteps(t)})
	is[*FullError](t, err)
	if _, err := os.Stat(path + ".before-v2"); err == nil {
		t.Error("half a copy is left")
	}
	must(t, os.Remove(ballast))
	must(t, openAt(t, path).Close()) // still as the old build knows it
	d = openWith(t, Options{Path: path, steps: laterSteps(t)})
	if n, _ := d.Tail(bg, "r"); n != 1 {
		t.Errorf("%d events", n)
	}
}

// What a process left that died while it made a ledger or an anchor goes away.
func TestScratchOfTheDeadIsSweptAway(t *testing.T) {
	path := dbPath(t)
	var left []string
	for _, s := range []string{".new-0011", ".head.0123456789abcdef"} {
		left = append(left, path+s)
		must(t, os.WriteFile(path+s, []byte("half"), 0o600))
	}
	d := openAt(t, path)
	must(t, os.WriteFile(path+".head."+d.id, []byte("being written"), 0o600))
	openAt(t, path)
	for _, p := range left {
		if _, err := os.Stat(p); err == nil {
			t.Errorf("%s is still there", p)
		}
	}
	if _, err := os.Stat(path + ".head." + d.id); err != nil {
		t.Error("a living process's file was taken")
	}
}

// B49: a newer ledger is refused, with both versions and the right path; it can
// be neither read nor harmed.
func TestANewerLedgerIsRefused(t *testing.T) {
	path := seed(t, 1)
	openWith(t, Options{Path: path, steps: laterSteps(t)}).Close()
	for _, view := range []bool{false, true} {
		_, err := Open(bg, Options{Path: path, ViewOnly: view})
		e := is[*NewerError](t, err)
		if e.Path != path || e.Have != 3 || e.Known != 1 || !strings.Contains(err.Error(), path) {
			t.Errorf("%+v", e)
		}
	}
}

// A process of an old build that was open while a newer one migrated stops
// writing, instead of writing what it no longer understands.
func TestAnOldBuildStopsWritingOnceMigrated(t *testing.T) {
	path := seed(t, 1)
	old := openAt(t, path)
	must(t, add(old, Full, "r", 1))
	openWith(t, Options{Path: path, steps: laterSteps(t)}).Close()
	is[*NewerError](t, add(old, Full, "r", 2))
}

// B49: checksums are the same whatever the line ends of a checkout.
func TestLineEndsDoNotChangeAChecksum(t *testing.T) {
	unix := "CREATE TABLE a(x);\n-- b\nCREATE TABLE c(y);\n"
	var sums []string
	for _, sql := range []string{unix, strings.ReplaceAll(unix, "\n", "\r\n")} {
		steps, err := loadSteps(fstest.MapFS{"migrations/0001_a.sql": {Data: []byte(sql)}})
		must(t, err)
		sums = append(sums, steps[0].sum)
	}
	if sums[0] != sums[1] || len(sums[0]) != 64 {
		t.Error(sums)
	}
	if _, err := loadSteps(fstest.MapFS{"migrations/0002_a.sql": {}}); err == nil {
		t.Error("a gap in the numbers went unnoticed")
	}
}

// A full disk while a ledger is made leaves none behind (B46), and its message
// says that the disk is full.
func TestAFullDiskLeavesNoHalfMadeLedger(t *testing.T) {
	dir := tinyDisk(t, "64k")
	path := filepath.Join(dir, "ledger.db")
	_, err := Open(bg, Options{Path: path})
	is[*FullError](t, err)
	es, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range es {
		if e.Name() != "ledger.db.procs" {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

// A disk that fills up while running refuses what does not fit, keeps the rest,
// and goes on when there is space.
func TestAFullDiskRefusesAndResumes(t *testing.T) {
	dir := tinyDisk(t, "3m")
	d := openAt(t, filepath.Join(dir, "ledger.db"))
	must(t, os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 1<<20), 0o600))
	tail := int64(0)
	var err error
	for err == nil {
		_, err = d.Commit(bg, Full, Part{Run: "r", Cmd: newCmd(), Tail: tail, Events: []NewEvent{{Kind: "Fill", Actor: "engine", Payload: make([]byte, 20_000)}}})
		if err == nil {
			tail++
		}
	}
	is[*FullError](t, err)
	if n, err := d.Tail(bg, "r"); n != tail || err != nil || n == 0 {
		t.Fatalf("%d events, %d acknowledged, %v", n, tail, err)
	}
	must(t, os.Remove(filepath.Join(dir, "ballast")))
	must(t, add(d, Full, "r", tail))
	whole(t, d)
}

// A file size limit is a full disk, too, and no reason to die.
func TestAFileSizeLimitIsAFullDisk(t *testing.T) {
	path := dbPath(t)
	openAt(t, path).Close()
	p := start(t, "fill", path, "1000000")
	p.expect("FULL")
	p.expect("RESUMED")
	p.finish()
	whole(t, openAt(t, path))
}

// tinyDisk mounts a file system of the given size.
func tinyDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}
