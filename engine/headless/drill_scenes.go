package headless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"pawl/engine"
	"pawl/fixtures/world"
)

// killScenes are what a crash point cannot play: processes that stop and wake,
// files that are cut or missing, and a disk that is full.
func killScenes() []*killCell {
	return []*killCell{
		{Deed: "payment with a key", Class: "KEYED", Where: "stopped, wakes late", play: zombie("payment with a key", "POST /payments", world.PaymentMade)},
		{Deed: "ticket without a key", Class: "IRREVERSIBLE", Where: "stopped, wakes late", play: zombie("ticket without a key", "POST /tickets", world.TicketCreated)},
		{Deed: "sealed command", Class: "WORKSPACE", Where: "WAL cut off", play: cutWAL},
		{Deed: "sealed command", Class: "WORKSPACE", Where: "head anchor removed", play: noAnchor},
		{Deed: "sealed command", Class: "WORKSPACE", Where: "small file system full", play: fullDisk},
	}
}

// zombie stops the owner while the other side holds its answer back, lets
// another process take over when the lease has run out, and wakes it again.
func zombie(name, endpoint string, kind world.Kind) func(context.Context, *drillStand, *killCell) ([]string, error) {
	return func(ctx context.Context, s *drillStand, c *killCell) ([]string, error) {
		d := deedNamed(name)
		args, err := d.start(s)
		if err != nil {
			return nil, err
		}
		if err := s.world.SetRule(world.Rule{Endpoint: endpoint, Fault: "delay-after:20s", Times: 1}); err != nil {
			return nil, err
		}
		w, err := s.begin(ctx, "", args...)
		if err != nil {
			return nil, err
		}
		for s.happened(kind) == 0 {
			select {
			case <-w.ended: // it asked first
				if _, err := s.answer(ctx, d); err != nil {
					return []string{err.Error()}, nil
				}
				r, err := s.only(ctx)
				if err != nil || r == nil {
					return []string{"the run is not in the ledger"}, err
				}
				if w, err = s.begin(ctx, "", "resume", string(r.ID)); err != nil {
					return nil, err
				}
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err := w.signal(syscall.SIGSTOP); err != nil {
			return nil, err
		}
		r, err := s.only(ctx)
		if err != nil || r == nil {
			return []string{"the run is not in the ledger"}, err
		}
		// The lease is refused as long as it holds.
		if err := until(ctx, "the stopped process's lease runs out", func() (bool, error) {
			l, err := s.only(ctx)
			return err == nil && l != nil && l.Owner == "", err
		}); err != nil {
			return nil, errors.Join(err, w.signal(syscall.SIGKILL))
		}
		c.Asked, err = s.through(ctx, d, []string{"resume", string(r.ID)})
		if werr := w.signal(syscall.SIGCONT); werr != nil {
			return nil, werr
		}
		if err != nil {
			return []string{err.Error()}, nil
		}
		if _, err := w.wait(ctx); err != nil { // what it says does not matter: it has lost the run
			return nil, err
		}
		return s.judge(ctx, d)
	}
}

// cutWAL takes away what was written last. Nothing may run before the loss is
// acknowledged, and what is left must be whole.
func cutWAL(ctx context.Context, s *drillStand, _ *killCell) ([]string, error) {
	run, err := s.killed(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.Truncate(s.ledger+"-wal", 0); err != nil {
		return nil, err
	}
	var out []string
	if _, code, err := s.run(ctx, "resume", run); code == ExitDone || err == nil {
		out = append(out, "a ledger that lost its newest events was used as if nothing had happened")
	}
	if _, code, _ := s.run(ctx, "verify", "--accept-loss"); code != ExitDone {
		out = append(out, fmt.Sprintf("the loss cannot be acknowledged (code %d)", code))
	}
	if _, code, _ := s.run(ctx, "verify"); code != ExitDone {
		out = append(out, fmt.Sprintf("what is left is not whole (code %d)", code))
	}
	return out, nil
}

// noAnchor takes the head anchor away: it is a safeguard, not a record.
func noAnchor(ctx context.Context, s *drillStand, c *killCell) ([]string, error) {
	run, err := s.killed(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(s.ledger + ".head"); err != nil {
		return nil, err
	}
	d := deedNamed("sealed command")
	if c.Asked, err = s.through(ctx, d, []string{"resume", run}); err != nil {
		return []string{err.Error()}, nil
	}
	return s.judge(ctx, d)
}

// killed is a run whose process died after its command had ended, some time
// after the ledger was last synced.
func (s *drillStand) killed(ctx context.Context) (run string, err error) {
	d := deedNamed("sealed command")
	args, err := d.start(s)
	if err != nil {
		return "", err
	}
	w, err := s.begin(ctx, string(engine.PointAfterEffect)+"@"+d.line, args...)
	if err != nil {
		return "", err
	}
	for range 3 {
		code, err := w.wait(ctx)
		if err != nil {
			return "", err
		}
		r, err := s.only(ctx)
		if err != nil || r == nil {
			return "", errors.Join(errors.New("the run is not in the ledger"), err)
		}
		if w.killed() {
			return string(r.ID), nil
		}
		if code != ExitWaits {
			return "", fmt.Errorf("it was not killed: %s", w.end())
		}
		if _, err := s.answer(ctx, d); err != nil {
			return "", err
		}
		if w, err = s.begin(ctx, string(engine.PointAfterEffect)+"@"+d.line, "resume", string(r.ID)); err != nil {
			return "", err
		}
	}
	return "", errors.New("it was not killed")
}

// fullDisk lets the ledger's file system run full while a command runs, and
// makes room again.
func fullDisk(ctx context.Context, s *drillStand, c *killCell) ([]string, error) {
	small, unmount, err := smallDisk(filepath.Join(s.dir, "small"))
	if err != nil {
		c.Left = err.Error()
		return nil, nil
	}
	defer unmount()
	s.state, s.ledger = small, filepath.Join(small, "ledger.db")
	d := deedNamed("sealed command")
	args, err := d.start(s)
	if err != nil {
		return nil, err
	}
	w, err := s.begin(ctx, "", args...)
	if err != nil {
		return nil, err
	}
	running := func() (bool, error) {
		select {
		case <-w.ended:
			return true, nil
		default:
		}
		found, err := filepath.Glob(filepath.Join(small, "*", "*", "a.txt"))
		if err != nil {
			return false, err
		}
		more, err := filepath.Glob(filepath.Join(small, "*", "*", "*", "a.txt"))
		for _, path := range append(found, more...) {
			if b, rerr := os.ReadFile(path); rerr == nil && strings.Contains(string(b), "one") {
				return true, err
			}
		}
		return false, err
	}
	if err := until(ctx, "the command has begun", running); err != nil {
		return nil, err
	}
	filler := filepath.Join(small, "filler")
	if err := fill(filler); err != nil {
		return nil, err
	}
	wait := time.NewTimer(4 * time.Second) // long enough that its end is reached, and has to be written
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-w.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := os.Remove(filler); err != nil {
		return nil, err
	}
	code, err := w.wait(ctx)
	if err != nil {
		return nil, err
	}
	noticed := strings.Contains(w.stderr.String(), "space")
	if code != ExitDone {
		r, err := s.only(ctx)
		if err != nil || r == nil {
			return []string{"the run is not in the ledger"}, err
		}
		if _, err := s.answer(ctx, d); err != nil {
			return []string{err.Error()}, nil
		}
		if c.Asked, err = s.through(ctx, d, []string{"resume", string(r.ID)}); err != nil {
			return []string{err.Error()}, nil
		}
	}
	out, err := s.judge(ctx, d)
	if !noticed {
		out = append(out, "the full disk was in nobody's way: "+w.end())
	}
	return out, err
}

// fill writes a file until there is no space left.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for n := len(block); n > 0; {
		if _, err := f.Write(block[:n]); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				return errors.Join(err, f.Close())
			}
			n /= 2
		}
	}
	return f.Close()
}
