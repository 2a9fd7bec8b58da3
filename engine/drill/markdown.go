package drill

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes the comparison, and with it what the explorer found, as a
// document. command is what regenerates it; when and where say on which day and
// machine it was made.
func (c *Comparison) Markdown(w io.Writer, rep *Report, command, when, where string) error {
	var b strings.Builder
	b.WriteString(introduction)
	fmt.Fprintf(&b, "\nMade by `%s` on %s (%s): %d runs per cell, %d per point of the sweep, first seed %d, %.0f s.\n", command, when, where, c.Seeds, c.SweepRuns, c.First, c.Took)
	b.WriteString("\n## What each strategy costs\n\nHonest contracts, half of the ambiguous attempts had happened, all eight workloads together.\nRates are per 100 effects whose first attempt left no recorded end, with 95 % intervals.\n\n")
	c.strategyTable(&b, "honest")
	b.WriteString("\n![cost over the price of a wrong outcome](recovery-break-even.svg)\n\n![wrong outcomes over the share that had happened](recovery-sweep.svg)\n")
	b.WriteString("\n## Workload by workload\n\nWrong outcomes / questions, per 100 ambiguous effects, honest contracts.\n\n")
	c.workloadTable(&b)
	b.WriteString("\n## What it takes: the class policy with parts left out or contracts that lie\n\n")
	c.conditionTable(&b)
	b.WriteString("\n## Break-even\n\nA strategy that asks less is cheaper as long as being wrong is cheap. The price of one wrong outcome, in questions, from\nwhich on the class policy costs less:\n\n")
	c.breakEvenTable(&b)
	b.WriteString("\n## Where Pawl loses\n\n")
	c.losses(&b)
	if rep != nil {
		b.WriteString("\n## What the explorer saw\n\n")
		fmt.Fprintf(&b, "%d episodes of the real engine (%d honest, %d with one broken contract each, %d recovered once and twice, %d on a real\nledger file): %d events, %d boundaries, %d processes killed or cut off; **%d violations that no broken contract explains**.\n%.0f episodes a second on %d workers.\n",
			rep.Episodes, rep.Honest, rep.Lying, rep.Twice, rep.OnDisk, rep.Events, rep.Boundaries, rep.Deaths, rep.Violations, rep.PerSecond, rep.Workers)
		b.WriteString("\nBroken contracts that were named when an invariant fell:\n\n| broken contract | episodes |\n|---|---:|\n")
		for l := Honest + 1; l < lies; l++ {
			fmt.Fprintf(&b, "| %s | %d |\n", l, rep.Named[l.String()])
		}
	}
	b.WriteString(method)
	_, err := io.WriteString(w, b.String())
	return err
}

const introduction = `# Recovery strategies, compared

An effect was sent, and no result is on record: the process died, the connection broke, the answer was lost. Then
every runtime bets. It sends again, or goes on as if it had failed, or as if it had happened, or looks, or asks. This
page says what each bet costs under the same faults, where Pawl's class policy wins, and where it loses.
`

const method = `
## Method

Eight of the nine strategies are small models of what runtimes do; Pawl's row is the real engine and the real fold,
run over a simulated world with virtual time. One seed fixes, for each attempt of each effect, whether it lands, how
late, whether its answer arrives and where its sender dies; every strategy meets the same draws. The first attempt of
an effect ends without a recorded end 35 times in a hundred, later ones 15 times. A crash is followed by a new process
after 10 s; a time-out takes 10 s; a person answers after one to nine minutes, having looked at the world.

| workload | effects | class | looks | in-flight bound |
|---|---:|---|---|---|
| payment with a key | 4 | KEYED, 23 h | none | 5 s |
| e-mail, search lags | 4 | PROBEABLE | lags 45 s, settle 60 s | 30 s |
| ticket, list lags | 4 | COMPENSABLE | lags 3 s, settle 5 s | 5 s |
| git push | 4 | PROBEABLE, repeating it changes nothing | reads its own writes | 5 s |
| shell edits | 4 | WORKSPACE | snapshots | – |
| irreversible webhook | 4 | IRREVERSIBLE | none | 5 s |
| fan-out, cancelled | 8 in one turn, cancelled while the fourth is under way | PROBEABLE | reads its own writes | 5 s |
| approval batch | 8 in one turn, each approved | PROBEABLE | reads its own writes | 5 s |

- **duplicate**: something is there once more than it should be, half a change of files included.
- **loss**: it is not there, and the work went on as if it were. A failure that is told as a failure is none.
- **false failure**: it is there, and the model was told that it failed.
- **question**: a decision about an ambiguous effect that a person had to take. Approvals are not counted.
- **recovery**: from the first dispatch of an ambiguous effect to a decided outcome.
- **syncs**: commits that waited for the disk, per effect.

Intervals are bootstrapped over runs. The explorer is a different thing from the comparison: it runs the same engine
through random plans with kills before and after every commit and at every byte, stopped processes that wake late, power
cuts, full disks, lying contracts and two operators, and holds every step against the invariants with the world's own
log as the oracle.

## Limits

- The world is a model. How often answers are lost, how much of what was lost had happened, and how long people take
  are assumptions; the sweep and the break-even prices are there so that you can put in your own.
- The modelled strategies are the plain form of each idea. A real runtime adds time-outs, back-off and alerts.
- Delegated runs are stood for by several effects of one turn.
- The class policy trusts contracts. Where a bound, a horizon or a look is wrong it is wrong too: the table of
  conditions shows by how much.
`

// strategyTable is one row for each strategy, over all workloads.
func (c *Comparison) strategyTable(b *strings.Builder, condition string) {
	b.WriteString("| strategy | wrong / 100 | duplicates | losses | false successes | false failures | left unknown | questions / 100 | contradicted | sent after a cancel | recovery p50 | p99 | syncs / effect |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, st := range Strategies() {
		x := c.over(st, condition)
		if x.Effects == 0 {
			continue
		}
		name := string(st)
		if st == ClassPolicy {
			name = "**" + name + "**"
		}
		fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d | %d | %s | %d | %d | %s | %s | %.2f |\n", name, x.WrongRate, x.Duplicates, x.Losses, x.FalseSuccesses, x.FalseFailures,
			x.Unknown, x.AskedRate, x.Contradictions, x.AfterCancel, seconds(x.P50), seconds(x.P99), x.SyncRate)
	}
}

// String is an estimate with its interval.
func (i Interval) String() string {
	if i.Low == i.High {
		return fmt.Sprintf("%.1f", i.Mean)
	}
	return fmt.Sprintf("%.1f (%.1f–%.1f)", i.Mean, i.Low, i.High)
}

func seconds(s float64) string {
	switch {
	case s >= 100:
		return fmt.Sprintf("%.1f min", s/60)
	case s >= 10:
		return fmt.Sprintf("%.0f s", s)
	}
	return fmt.Sprintf("%.1f s", s)
}

// over is a strategy's cells of one condition as one.
func (c *Comparison) over(st Strategy, condition string) Cell {
	for _, x := range c.Overall {
		if x.Strategy == st && x.Condition == condition {
			return x
		}
	}
	return Cell{}
}

func (c *Comparison) workloadTable(b *strings.Builder) {
	b.WriteString("| workload |")
	var sts []Strategy
	for _, st := range Strategies() {
		if c.over(st, "honest").Effects > 0 {
			sts = append(sts, st)
			fmt.Fprintf(b, " %s |", st)
		}
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(sts)) + "\n")
	for _, w := range Workloads() {
		fmt.Fprintf(b, "| %s |", w.Name)
		for _, st := range sts {
			for _, x := range c.Cells {
				if x.Workload == w.Name && x.Strategy == st && x.Condition == "honest" {
					fmt.Fprintf(b, " %.0f / %.0f |", x.WrongRate.Mean, x.AskedRate.Mean)
				}
			}
		}
		b.WriteByte('\n')
	}
}

func (c *Comparison) conditionTable(b *strings.Builder) {
	b.WriteString("| condition | wrong / 100 | duplicates | losses | false failures | questions / 100 | contradicted | recovery p50 |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, cond := range Conditions() {
		x := c.over(ClassPolicy, cond.Name)
		if x.Effects == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %s | %d | %s |\n", cond.Name, x.WrongRate, x.Duplicates, x.Losses, x.FalseFailures, x.AskedRate, x.Contradictions, seconds(x.P50))
	}
}

func (c *Comparison) breakEvenTable(b *strings.Builder) {
	b.WriteString("| against | honest | operators wrong 20 % | D wrong by ten |\n|---|---|---|---|\n")
	for _, st := range Strategies() {
		var cells []string
		for _, cond := range []string{"honest", "operators wrong 20 %", "D wrong by ten"} {
			for _, x := range c.BreakEven {
				if x.Strategy == st && x.Condition == cond {
					cells = append(cells, x.short())
				}
			}
		}
		if len(cells) == 3 {
			fmt.Fprintf(b, "| %s | %s |\n", st, strings.Join(cells, " | "))
		}
	}
}

func (x BreakEven) short() string {
	switch {
	case x.Ratio < 0:
		return "never"
	case x.Ratio == 0:
		return "always"
	case strings.Contains(x.Verdict, "less than"):
		return fmt.Sprintf("below %.2f", x.Ratio)
	}
	return fmt.Sprintf("above %.2f", x.Ratio)
}

// losses lists where another strategy is better than the class policy at
// something, from the figures themselves.
func (c *Comparison) losses(b *strings.Builder) {
	p := c.over(ClassPolicy, "honest")
	n := 0
	for _, st := range Strategies() {
		x := c.over(st, "honest")
		if st == ClassPolicy || x.Effects == 0 {
			continue
		}
		var better []string
		if x.WrongRate.Mean < p.WrongRate.Mean {
			better = append(better, fmt.Sprintf("is wrong less often (%.1f against %.1f)", x.WrongRate.Mean, p.WrongRate.Mean))
		}
		if x.AskedRate.Mean < p.AskedRate.Mean {
			better = append(better, fmt.Sprintf("asks less (%.1f against %.1f)", x.AskedRate.Mean, p.AskedRate.Mean))
		}
		if x.P50 < p.P50 {
			better = append(better, fmt.Sprintf("decides sooner at the median (%s against %s)", seconds(x.P50), seconds(p.P50)))
		}
		if x.P99 < p.P99 {
			better = append(better, fmt.Sprintf("decides sooner at p99 (%s against %s)", seconds(x.P99), seconds(p.P99)))
		}
		if x.SyncRate < p.SyncRate {
			better = append(better, fmt.Sprintf("syncs less (%.2f against %.2f)", x.SyncRate, p.SyncRate))
		}
		if len(better) > 0 {
			n++
			fmt.Fprintf(b, "- **%s** %s.\n", st, strings.Join(better, ", "))
		}
	}
	if n == 0 {
		b.WriteString("- Nowhere in these figures.\n")
	}
	five, twenty := c.over(ClassPolicy, "operators wrong 5 %"), c.over(ClassPolicy, "operators wrong 20 %")
	late, short := c.over(ClassPolicy, "D wrong by ten"), c.over(ClassPolicy, "key horizon exceeded")
	fmt.Fprintf(b, "- What it asks it gets wrong as often as people are: %.1f wrong outcomes per 100 at 5 %% error, %.1f at 20 %%.\n", five.WrongRate.Mean, twenty.WrongRate.Mean)
	fmt.Fprintf(b, "- A bound that is wrong by ten costs it %.1f wrong outcomes per 100; a key that is forgotten early %.1f.\n", late.WrongRate.Mean, short.WrongRate.Mean)
}
