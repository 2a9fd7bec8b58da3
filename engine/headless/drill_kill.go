package headless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"pawl/engine"
)

// killCell is one row of the matrix.
type killCell struct {
	Deed   string   `json:"deed"`
	Class  string   `json:"class"`
	Where  string   `json:"where"` // crash point, or what else is broken
	Asked  int      `json:"asked"` // decisions about what became of it
	Found  []string `json:"found"` // what is wrong
	Passed bool     `json:"passed"`
	Left   string   `json:"left_out,omitempty"` // why it was not played
	Millis int64    `json:"ms"`

	play func(ctx context.Context, s *drillStand, c *killCell) ([]string, error)
}

// patience bounds one cell; none takes nearly as long.
const cellPatience = 3 * time.Minute

// drillKill plays the matrix with real processes.
func (a *app) drillKill(ctx context.Context) error {
	for _, program := range []string{"git", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			return &Problem{What: "the drill with real processes needs " + program, Why: err.Error(), Next: "install it, or leave --kill away", Err: err}
		}
	}
	dir, err := os.MkdirTemp("", "pawl-drill-")
	if err != nil {
		return &Problem{What: "no directory could be made for the drill", Why: err.Error(), Next: "set TMPDIR to one that can be written", Err: err}
	}
	defer func() { _ = os.RemoveAll(dir) }() // of no use to anybody any more
	cells := append(killMatrix(), killScenes()...)
	begin := time.Now()
	if err := a.playCells(ctx, dir, cells); err != nil {
		return err
	}
	sum := drillSum{Seconds: time.Since(begin).Seconds()}
	for _, c := range cells {
		if c.Left != "" {
			continue
		}
		sum.Episodes++
		if !c.Passed {
			sum.Violations++
		}
	}
	if a.json {
		for _, c := range cells {
			if err := object(a.out(), c); err != nil {
				return err
			}
		}
		if err := object(a.out(), sum); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.out(), "%s, %s\n", count(sum.Episodes, "cell"), count(sum.Violations, "violation"))
	}
	if sum.Violations > 0 {
		return codeError(ExitError)
	}
	return nil
}

// killMatrix is every crash point of every deed.
func killMatrix() []*killCell {
	var out []*killCell
	for _, d := range killDeeds() {
		for _, p := range d.points {
			at := string(p) + "@" + d.line
			if p == engine.PointBeforeIntent {
				at = string(p) + "@turn 1"
			}
			out = append(out, &killCell{Deed: d.name, Class: d.class, Where: "kill -9 " + string(p), play: func(ctx context.Context, s *drillStand, c *killCell) ([]string, error) {
				return s.killAt(ctx, &d, at, c)
			}})
		}
	}
	return out
}

// killAt kills the first process that passes a point, and has others finish.
func (s *drillStand) killAt(ctx context.Context, d *killDeed, at string, c *killCell) ([]string, error) {
	args, err := d.start(s)
	if err != nil {
		return nil, err
	}
	const most = 4 // what asks first is armed again after the answer
	for range most {
		w, err := s.begin(ctx, at, args...)
		if err != nil {
			return nil, err
		}
		code, err := w.wait(ctx)
		if err != nil {
			return nil, err
		}
		if w.killed() {
			r, err := s.only(ctx)
			if err != nil || r == nil {
				return []string{"the run is not in the ledger"}, err
			}
			c.Asked, err = s.through(ctx, d, []string{"resume", string(r.ID)})
			if err != nil {
				return []string{err.Error()}, nil
			}
			return s.judge(ctx, d)
		}
		if code != ExitWaits {
			return []string{fmt.Sprintf("it was not killed at %s: %s", at, w.end())}, nil
		}
		n, err := s.answer(ctx, d)
		if err != nil {
			return []string{err.Error()}, nil
		}
		c.Asked += n
		r, err := s.only(ctx)
		if err != nil || r == nil {
			return []string{"the run is not in the ledger"}, err
		}
		args = []string{"resume", string(r.ID)}
	}
	return []string{"it was not killed at " + at}, nil
}

// playCells plays cells side by side, each in a directory of its own.
func (a *app) playCells(ctx context.Context, dir string, cells []*killCell) error {
	next := make(chan int)
	var group sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	done := 0
	for range max(1, runtime.NumCPU()) {
		group.Go(func() {
			for i := range next {
				err := a.playCell(ctx, filepath.Join(dir, fmt.Sprint(i)), cells[i])
				mu.Lock()
				if err != nil {
					errs = append(errs, fmt.Errorf("%s, %s: %w", cells[i].Deed, cells[i].Where, err))
				}
				done++
				a.tellCell(cells[i], done, len(cells))
				mu.Unlock()
			}
		})
	}
feed:
	for i := range cells {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	group.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(errs...)
}

func (a *app) playCell(ctx context.Context, dir string, c *killCell) error {
	ctx, cancel := context.WithTimeout(ctx, cellPatience)
	defer cancel()
	begin := time.Now()
	s, err := a.newStand(ctx, dir)
	if err != nil {
		return err
	}
	c.Found, err = c.play(ctx, s, c)
	if c.Found == nil {
		c.Found = []string{}
	}
	c.Passed = err == nil && len(c.Found) == 0 && c.Left == ""
	c.Millis = time.Since(begin).Milliseconds()
	err = errors.Join(err, s.world.Close())
	_ = os.RemoveAll(dir) // room for the next; the whole is removed at the end
	return err
}

func (a *app) tellCell(c *killCell, done, of int) {
	if a.json {
		return
	}
	verdict := "once"
	switch {
	case c.Left != "":
		verdict = "left out: " + c.Left
	case !c.Passed:
		verdict = "WRONG: " + strings.Join(c.Found, "; ")
	case c.Asked > 0:
		verdict = fmt.Sprintf("once, after %s", count(c.Asked, "question"))
	}
	fmt.Fprintf(a.out(), "%3d/%d  %-22s %-13s %-28s %5.1f s  %s\n", done, of, c.Deed, c.Class, c.Where, float64(c.Millis)/1000, line(verdict, 0))
}
