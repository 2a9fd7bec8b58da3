package headless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pawl/engine/drill"
)

// drillFlags are what the operator asks of a drill.
type drillFlags struct {
	seeds      int
	seed       uint64
	strategies []string
	markdown   bool
	kill       bool
	pictures   string
}

// The seeds of a drill: what fits into a minute, and the explorer's share.
const (
	drillSeeds   = 60
	exploreShare = 20 // explored seeds for each run per cell
	drillOnDisk  = 250
)

func (a *app) drillCommand() *cobra.Command {
	var f drillFlags
	cmd := &cobra.Command{
		Use:   "drill",
		Short: "Break recovery on purpose, and compare it with other strategies",
		Long: `Break recovery on purpose: play the real engine over a simulated world in which processes are killed before and after every commit and byte, stop and wake late, lose power, run out of disk, and are lied to; and hold every step against the invariants. Then meet the same faults with eight other strategies, and say what each costs.
Nothing outside a temporary directory is touched. It ends with 1 if an invariant fell that no broken contract explains.
With --kill it does so with real processes: pawl itself, killed at every point in every class of effect, against a real ledger, a real git remote and a real server on this machine.`,
		Example: `pawl drill
# play one seed again, line by line
pawl drill --seed 1616
# the whole table as a document, with its pictures
pawl drill --seeds 10000 --markdown --pictures docs > docs/recovery-strategies.md
# real processes
pawl drill --kill`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.drill(cmd.Context(), f) },
	}
	cmd.Flags().IntVar(&f.seeds, "seeds", drillSeeds, fmt.Sprintf("runs per cell of the comparison; the explorer plays %d times as many episodes", exploreShare))
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "play one seed of the explorer again, line by line")
	cmd.Flags().StringArrayVar(&f.strategies, "strategy", nil, "compare only this strategy (may be repeated)")
	cmd.Flags().BoolVar(&f.markdown, "markdown", false, "print the comparison as a document")
	cmd.Flags().StringVar(&f.pictures, "pictures", "", "write the curves as SVG files into this directory")
	cmd.Flags().BoolVar(&f.kill, "kill", false, "kill real processes instead")
	return cmd
}

// drillSum is the last object that `pawl drill --json` prints.
type drillSum struct {
	Episodes   int     `json:"episodes"`
	Violations int     `json:"violations"`
	Seconds    float64 `json:"seconds,omitempty"`
	PerSecond  float64 `json:"episodes_per_second,omitempty"`
}

func (a *app) drill(ctx context.Context, f drillFlags) error {
	switch {
	case f.seeds < 1:
		return usage("--seeds must be at least 1", "there is nothing to play otherwise", "leave the flag away for what fits into a minute")
	case f.kill && (f.markdown || f.seed > 0 || len(f.strategies) > 0):
		return usage("--kill stands alone", "it kills real processes, and compares nothing", "give two commands")
	case f.kill:
		return a.drillKill(ctx)
	case f.seed > 0:
		return a.drillReplay(f.seed)
	}
	var chosen []drill.Strategy
	for _, name := range f.strategies {
		st := drill.Strategy(name)
		if strings.EqualFold(name, string(drill.ClassPolicy)) {
			st = drill.ClassPolicy
		}
		if !slices.Contains(drill.Strategies(), st) {
			var known []string
			for _, s := range drill.Strategies() {
				known = append(known, quote(string(s)))
			}
			return usage(fmt.Sprintf("there is no strategy %q", name), "the strategies are "+strings.Join(known, ", "), "name one of them")
		}
		chosen = append(chosen, st)
	}
	rep, err := drill.Explore(ctx, drill.ExploreOptions{Seeds: f.seeds * exploreShare, Disk: drillOnDisk, Progress: a.drillProgress})
	if err != nil {
		return fmt.Errorf("the explorer: %w", err)
	}
	c, err := drill.Compare(ctx, drill.CompareOptions{Seeds: f.seeds, Strategies: chosen, Progress: func(done, of int, _ drill.Cell) {
		if a.o.Width > 0 && done%16 == 0 {
			a.say("compared: %d of %d cells", done, of)
		}
	}})
	if err != nil {
		return fmt.Errorf("the comparison: %w", err)
	}
	if f.pictures != "" {
		for name, svg := range c.Pictures() {
			if err := os.WriteFile(filepath.Join(f.pictures, name), []byte(svg), 0o644); err != nil {
				return &Problem{What: "the curves cannot be written", Why: err.Error(), Next: "name a directory that exists with --pictures", Err: err}
			}
		}
	}
	if err := a.tellDrill(&rep, &c, f); err != nil {
		return err
	}
	if rep.Violations+c.Fell() > 0 {
		return codeError(ExitError)
	}
	return nil
}

func (a *app) drillProgress(p drill.Progress) {
	if p.Failure != nil {
		a.say("seed %d (%s) fails: %s", p.Failure.Seed, p.Failure.Kind, line(p.Failure.Violations[0], 0))
		return
	}
	if a.o.Width > 0 && p.Episodes%1024 == 0 {
		a.say("explored: %s", count(p.Episodes, "episode"))
	}
}

// drillReplay plays the episodes of one seed line by line.
func (a *app) drillReplay(seed uint64) error {
	episodes, err := drill.Replay(seed)
	if err != nil {
		return err
	}
	bad := 0
	for _, e := range episodes {
		open := e.Open()
		bad += min(len(open), 1)
		if a.json {
			texts := []string{}
			for _, v := range e.Violations {
				texts = append(texts, v.String())
			}
			if err := object(a.out(), struct {
				Seed       uint64   `json:"seed"`
				Plan       string   `json:"plan"`
				Trace      []string `json:"trace"`
				Violations []string `json:"found"`
			}{seed, e.Plan.String(), e.Trace, texts}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.out(), "%s\n\n", e.Plan)
		for _, l := range e.Trace {
			fmt.Fprintln(a.out(), line(l, a.o.Width))
		}
		fmt.Fprintf(a.out(), "\n%s\n\n", e)
	}
	if a.json {
		if err := object(a.out(), drillSum{Episodes: len(episodes), Violations: bad}); err != nil {
			return err
		}
	}
	if bad > 0 {
		return codeError(ExitError)
	}
	return nil
}

func (a *app) tellDrill(rep *drill.Report, c *drill.Comparison, f drillFlags) error {
	switch {
	case a.json:
		for _, x := range rep.Failures {
			if err := object(a.out(), x); err != nil {
				return err
			}
		}
		for _, x := range append(append(c.Cells[:len(c.Cells):len(c.Cells)], c.Overall...), c.Sweep...) {
			if err := object(a.out(), x); err != nil {
				return err
			}
		}
		for _, x := range c.BreakEven {
			if err := object(a.out(), x); err != nil {
				return err
			}
		}
		return object(a.out(), drillSum{Episodes: rep.Episodes, Violations: rep.Violations + c.Fell(), Seconds: c.Took, PerSecond: rep.PerSecond})
	case f.markdown:
		command := fmt.Sprintf("pawl drill --seeds %d --markdown --pictures docs", f.seeds)
		where := fmt.Sprintf("%s/%s, %s", runtime.GOOS, runtime.GOARCH, count(runtime.NumCPU(), "core"))
		return c.Markdown(a.out(), rep, command, a.o.Now().UTC().Format("2006-01-02"), where)
	}
	return a.tellTable(rep, c)
}

// tellTable is a drill for a person.
func (a *app) tellTable(rep *drill.Report, c *drill.Comparison) error {
	w := a.out()
	fmt.Fprintf(w, "Explored %s (%d on a real ledger file, %d recovered twice): %d processes died at %d boundaries.\n", count(rep.Episodes, "episode"), rep.OnDisk, rep.Twice, rep.Deaths, rep.Boundaries)
	if rep.Violations == 0 {
		fmt.Fprintln(w, "No invariant fell that no broken contract explains.")
	}
	for _, x := range rep.Failures {
		fmt.Fprintf(w, "seed %d (%s) fails; `pawl drill --seed %d` plays it again\n", x.Seed, x.Kind, x.Seed)
		for _, v := range x.Violations {
			fmt.Fprintf(w, "  %s\n", line(v, 0))
		}
		for _, l := range x.Trace {
			fmt.Fprintf(w, "    %s\n", line(l, a.o.Width))
		}
	}
	if n := c.Fell(); n > 0 {
		fmt.Fprintf(w, "In the comparison %s fell.\n", count(n, "invariant"))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nper 100 effects without a recorded end\twrong\tduplicates\tlosses\tfalse failures\tquestions\trecovery p50\tp99")
	for _, x := range c.Overall {
		if x.Condition != "honest" {
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%s\t%.1f s\t%.1f s\n", x.Strategy, x.WrongRate, x.Duplicates, x.Losses, x.FalseFailures, x.AskedRate, x.P50, x.P99)
	}
	fmt.Fprintln(t, "\nPawl when …\twrong\tduplicates\tlosses\tfalse failures\tquestions\trecovery p50\tp99")
	for _, x := range c.Overall {
		if x.Strategy == drill.ClassPolicy {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%s\t%.1f s\t%.1f s\n", x.Condition, x.WrongRate, x.Duplicates, x.Losses, x.FalseFailures, x.AskedRate, x.P50, x.P99)
		}
	}
	if err := t.Flush(); err != nil {
		return errors.Join(errors.New("print the table"), err)
	}
	fmt.Fprintln(w)
	for _, x := range c.BreakEven {
		if x.Condition == "honest" {
			fmt.Fprintf(w, "against %s: %s\n", x.Strategy, x.Verdict)
		}
	}
	return nil
}
