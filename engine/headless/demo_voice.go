package headless

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"pawl/engine"
	"pawl/engine/machine"
)

// voice tells what the demo does while it does it: on standard output, or, if
// that is kept for the JSON object at the end, on standard error.
type voice struct {
	w     io.Writer
	width int
	after int64 // number of the run's last event that was told
}

// demoWidth is the width of the story where there is no terminal to ask.
const demoWidth = 100

func (a *app) voice(headless bool) *voice {
	v := &voice{w: a.out(), width: a.o.Width}
	if a.json && headless {
		v.w = a.err()
	}
	if v.width <= 0 {
		v.width = demoWidth
	}
	return v
}

func (v *voice) title(s string) { fmt.Fprintf(v.w, "%s\n\n", line(s, 0)) }

func (v *voice) idea(lines ...string) {
	for _, l := range lines {
		fmt.Fprintf(v.w, "  %s\n", line(l, 0))
	}
	fmt.Fprintln(v.w)
}

func (v *voice) step(s string) { fmt.Fprintf(v.w, "\n%s\n", line(s, 0)) }

// line wraps a sentence under its step.
func (v *voice) line(s string) {
	const indent = "   "
	for _, l := range wrap(line(s, 0), max(v.width-len(indent), 20)) {
		fmt.Fprintf(v.w, "%s%s\n", indent, l)
	}
}

// wrap breaks text at blanks only, so that names and numbers stay whole; a
// word that is wider than a line has one of its own, cut where it must be.
func wrap(s string, width int) []string {
	var lines []string
	at := ""
	for _, word := range strings.Fields(s) {
		if at != "" && ansi.StringWidth(at)+1+ansi.StringWidth(word) <= width {
			at += " " + word
			continue
		}
		if at != "" {
			lines = append(lines, at)
		}
		pieces := strings.Split(ansi.Hardwrap(word, width, false), "\n")
		lines = append(lines, pieces[:len(pieces)-1]...)
		at = pieces[len(pieces)-1]
	}
	return append(lines, at)
}

// pair sets a fact beside its label, so that two of them can be compared.
func (v *voice) pair(label, s string) { fmt.Fprintf(v.w, "     %-16s %s\n", label, line(s, 0)) }

// facts tells a sentence and then labels with values.
func (v *voice) facts(s string, pairs ...string) {
	fmt.Fprintln(v.w, line(s, 0))
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(v.w, "  %-13s %s\n", pairs[i], line(pairs[i+1], 0))
	}
}

// worth reports whether an event is told: what the model says and does, and
// what became of it. The rest is in `pawl log`.
func worth(r engine.TimelineRow) bool {
	switch r.Kind {
	case machine.EffectIntended{}.Kind(), machine.EffectDispatched{}.Kind(), machine.RunCreated{}.Kind(),
		machine.ApprovalGranted{}.Kind(), machine.ApprovalRequested{}.Kind(), machine.PlanUpdated{}.Kind(), machine.DecisionRecorded{}.Kind():
		return false
	}
	return r.Tone != "dim"
}

// follow tells the run's events since the last time.
func (d *demo) follow(ctx context.Context) error {
	const page = 200
	for {
		rows, err := d.look.Timeline(ctx, d.run, d.tell.after, false, page)
		if err != nil {
			return err
		}
		for _, r := range rows {
			d.tell.after = r.N
			if worth(r) {
				fmt.Fprintf(d.tell.w, "     %s\n", line(r.Sign+" "+r.Title, max(d.tell.width-5, 20)))
			}
		}
		if len(rows) < page {
			return nil
		}
	}
}

// state is the run as a reader sees it who knows that its worker is dead.
func (d *demo) state(ctx context.Context) (machine.State, error) {
	return d.look.State(ctx, d.run)
}
