package headless

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/engine"
	"pawl/engine/model/scripted"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// Every error that an operator can run into says what, why and what next, each
// once, and names the thing it is about.
func TestExplain(t *testing.T) {
	disk := errors.New("no space left on device")
	for _, c := range []struct {
		err   error
		names []string // in what is printed
	}{
		{&ledger.NetworkFSError{Path: "/n/l.db", FS: "nfs"}, []string{"/n/l.db", "nfs", "--ledger"}},
		{&ledger.OwnerError{Path: "/o", UID: 12}, []string{"/o", "12"}},
		{&ledger.ReadOnlyError{Path: "/l.db", Reason: "its directory cannot be written by you"}, []string{"viewing only", "its directory"}},
		{&ledger.ForeignError{Path: "/l.db", What: "no SQLite database"}, []string{"/l.db is not a ledger", "no SQLite database"}},
		{&ledger.EmptiedError{Path: "/l.db", Gone: true, Want: ledger.Head{Seq: 7}}, []string{"is gone", "7 events", "backup"}},
		{&ledger.EmptiedError{Path: "/l.db"}, []string{"is empty"}},
		{&ledger.NewerError{Path: "/l.db", Have: 9, Known: 3}, []string{"newer", "9", "3", "update"}},
		{&ledger.LostTailError{Path: "/l.db", Have: ledger.Head{Seq: 4}, Want: ledger.Head{Seq: 9}}, []string{"4", "9", "--accept-loss"}},
		{&ledger.LostTailError{Path: "/l.db", Have: ledger.Head{Seq: 9}, Want: ledger.Head{Seq: 9}}, []string{"another one", "--accept-loss"}},
		{&ledger.CorruptError{Path: "/l.db", Run: "r1", Seq: 3, What: "its hash differs"}, []string{"r1", "event 3", "its hash differs", "backup"}},
		{&ledger.FullError{Path: "/l.db", Err: disk}, []string{"kept", "no space left on device", "free some space"}},
		{&ledger.BusyError{Path: "/l.db", Waited: 5 * time.Second, PID: 42, Who: "pawl", Halted: true}, []string{"42", "stopped", "kill -CONT 42", "5s"}},
		{&ledger.BusyError{Path: "/l.db", Waited: time.Second}, []string{"another process"}},
		{&ledger.UnknownError{Path: "/l.db", Err: disk}, []string{"not known"}},
		{&ledger.NotFoundError{What: "run", ID: "r9"}, []string{`no run "r9"`, "pawl list"}},
		{&ledger.NotFoundError{What: "approval", ID: "r9.a1"}, []string{"pawl inbox"}},
		{fmt.Errorf("open: %w", &ledger.NotFoundError{What: "ledger", ID: "/l.db"}), []string{"no ledger at /l.db", "pawl demo"}},
		{&ledger.HeldError{Run: "r9", Owner: "pid 4 (pawl run) on host", Left: 3 * time.Second}, []string{"r9", "pid 4", "3s", "--follow"}},
		{&ledger.FencedError{Run: "r9", Epoch: 2, Current: 3}, []string{"r9", "2", "3"}},
		{&ledger.TailError{Run: "r9", Want: 2, Have: 3}, []string{"r9", "decide anew"}},
		{&engine.NotPendingError{ID: "r9.a1", Why: "it is granted, by ada"}, []string{"r9.a1 is not pending", "by ada", "pawl inbox"}},
		{&scripted.ParseError{File: "s.toml", Line: 3, What: "a step has no tool", Mend: "Name one."}, []string{"s.toml, line 3", "a step has no tool", "Name one"}},
		{&workspace.RefusedError{What: "landing was refused", Why: "main is dirty", Next: "commit first"}, []string{"main is dirty", "commit first"}},
		{errors.New("the repository x cannot be used: no such file; name an existing folder with --repo"), []string{"cannot be used", "no such file", "--repo"}},
		{fmt.Errorf("read: %w", disk), []string{"no space", "pawl doctor"}},
	} {
		p := explain(c.err)
		if p.What == "" || p.Why == "" || p.Next == "" {
			t.Errorf("%T: what %q, why %q, next %q: none may be missing", c.err, p.What, p.Why, p.Next)
		}
		all := p.Error()
		for _, name := range c.names {
			if !strings.Contains(all, name) {
				t.Errorf("%T: %q does not name %q", c.err, all, name)
			}
		}
		if !errors.Is(p, c.err) && p != c.err {
			t.Errorf("%T: the cause is lost", c.err)
		}
	}
}
