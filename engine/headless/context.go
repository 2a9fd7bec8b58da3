package headless

import (
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"pawl/engine/machine"
	"pawl/engine/window"
)

func (a *app) contextCommand() *cobra.Command {
	var f contextFlags
	cmd := &cobra.Command{
		Use:   "context RUN",
		Short: "Print what the model would be shown next",
		Long: `Print what the model would be shown next: section by section, with the tokens each costs and the events it comes from. What was shortened or left out is listed with the reason.
It is rebuilt from the ledger each time; nothing of it is kept anywhere else.
When a request no longer fits, the run goes on in a new window. --window N prints what the model was shown first in window N (window 1: what it was shown last there), and --against M what differs from window M.`,
		Example: `pawl context r7k2qd
pawl context r7k2qd --section charter
pawl context r7k2qd --window 2 --against 1`,
		Args:              exactly("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantRun(args[0])
			if err != nil {
				return err
			}
			return a.with(cmd, viewing, func(ctx context.Context, s *session) error { return a.context(ctx, s, id, f) })
		},
	}
	cmd.Flags().StringVar(&f.section, "section", "", "only the section of this NAME")
	cmd.Flags().IntVar(&f.window, "window", 0, "as it was in window N of the run")
	cmd.Flags().IntVar(&f.against, "against", 0, "with --window: print what differs from window M")
	return cmd
}

// shownPack is a context pack as --json tells it.
type shownPack struct {
	Run      machine.RunID  `json:"run"`
	Window   int            `json:"window"`
	Windows  []shownWindow  `json:"windows"` // all of the run's
	Budget   int            `json:"budget"`  // tokens; 0: not known
	Tokens   int            `json:"tokens"`
	Digest   machine.Digest `json:"digest"`
	Sections []shownSection `json:"sections"`
	Left     []leftOut      `json:"left_out"`
}

// shownWindow is one context window of a run.
type shownWindow struct {
	N      int    `json:"n"`
	Turn   int    `json:"turn"` // first turn asked for in it
	Keep   int    `json:"keep"` // first turn that it shows word for word
	Before int    `json:"before"`
	After  int    `json:"after"`
	Why    string `json:"why"`
	Event  int64  `json:"event"`
}

type shownSection struct {
	Name       string   `json:"name"`
	Tokens     int      `json:"tokens"`
	Provenance []string `json:"provenance"`
	Text       string   `json:"text"`
}

type leftOut struct {
	What   string `json:"what"`
	Why    string `json:"why"`
	Bytes  int64  `json:"bytes"`
	Handle string `json:"handle,omitempty"`
}

type contextFlags struct {
	section         string
	window, against int
}

func (a *app) context(ctx context.Context, s *session, id machine.RunID, f contextFlags) error {
	if f.window < 0 || f.against < 0 || f.against > 0 && f.window == 0 {
		return usage("--against goes with --window, and windows are counted from 1", "two windows are compared, or one is shown", "write for example --window 2 --against 1")
	}
	p, err := s.pack(ctx, id, f.window)
	if err != nil {
		return err
	}
	if f.against > 0 {
		return a.compare(ctx, s, id, p, f)
	}
	v := shownPack{Run: id, Window: p.Window, Windows: []shownWindow{}, Budget: p.Budget, Tokens: p.Tokens, Digest: p.Digest, Sections: []shownSection{}, Left: []leftOut{}}
	st, err := s.State(ctx, id)
	if err != nil {
		return err
	}
	v.Windows = append(v.Windows, shownWindow{N: 1, Turn: 1, Keep: 1, Why: "the run began", Event: 1})
	for _, o := range st.Openings {
		v.Windows = append(v.Windows, shownWindow{N: o.N, Turn: o.Turn, Keep: o.Keep, Before: o.Before, After: o.After, Why: o.Why, Event: o.Event})
	}
	var names []string
	for _, x := range shownSections(&p) {
		names = append(names, x.Name)
		if f.section == "" || x.Name == f.section {
			v.Sections = append(v.Sections, x)
		}
	}
	if f.section != "" && len(v.Sections) == 0 {
		return usage(fmt.Sprintf("there is no section %q in the context of %s", f.section, id), "it has: "+strings.Join(names, ", "), "name one of these")
	}
	for _, l := range p.Left {
		v.Left = append(v.Left, leftOut{What: l.What, Why: l.Why, Bytes: l.Bytes, Handle: l.Handle})
	}
	if a.json {
		return object(a.out(), v)
	}
	a.tellContext(v, f, p.Over)
	return nil
}

// pack is the context of a run now, or as it was in a window.
func (s *session) pack(ctx context.Context, id machine.RunID, n int) (window.Pack, error) {
	if n == 0 {
		return s.Pack(ctx, id)
	}
	return s.PackAt(ctx, id, n)
}

func shownSections(p *window.Pack) []shownSection {
	var out []shownSection
	for _, x := range p.Sections {
		text := x.Text
		if x.Name == window.SectionTurns && text == "" {
			text = p.Transcript()
		}
		prov := x.Provenance
		if prov == nil {
			prov = []string{}
		}
		out = append(out, shownSection{Name: x.Name, Tokens: x.Tokens, Provenance: prov, Text: text})
	}
	return out
}

func (a *app) tellContext(v shownPack, f contextFlags, over bool) {
	w := a.out()
	what := "would be shown next"
	if f.window > 0 {
		what = fmt.Sprintf("was shown in window %d", f.window)
	}
	of := ""
	switch {
	case over:
		of = fmt.Sprintf(", %d over the %d that fit: a new window opens before the next request", v.Tokens-v.Budget, v.Budget)
	case v.Budget > 0:
		of = fmt.Sprintf(" of %d (%d %%)", v.Budget, v.Tokens*100/v.Budget)
	}
	fmt.Fprintf(w, "what the model of %s %s: about %d tokens%s, window %d of %d, digest %s\n", v.Run, what, v.Tokens, of, v.Window, len(v.Windows), v.Digest.Short())
	for _, x := range v.Sections {
		fmt.Fprintf(w, "\n── %s (%d tokens", x.Name, x.Tokens)
		if len(x.Provenance) > 0 {
			fmt.Fprintf(w, "; from %s", line(strings.Join(x.Provenance, ", "), 0))
		}
		fmt.Fprintf(w, ")\n%s", block(x.Text, ""))
	}
	for i, l := range v.Left {
		if i == 0 {
			fmt.Fprintln(w, "\n── left out")
		}
		size := ""
		if l.Bytes > 0 {
			size = fmt.Sprintf("%d bytes, ", l.Bytes)
		}
		fmt.Fprintf(w, "%s: %s%s\n", line(l.What, 0), size, line(l.Why, 0))
	}
	if len(v.Windows) == 1 || f.section != "" {
		return
	}
	fmt.Fprintln(w, "\n── windows")
	for _, x := range v.Windows {
		if x.N == 1 {
			fmt.Fprintln(w, "1: from turn 1")
			continue
		}
		fmt.Fprintf(w, "%d: from turn %d, word for word from turn %d; %d tokens became %d (event %d): %s\n", x.N, x.Turn, x.Keep, x.Before, x.After, x.Event, line(x.Why, 0))
	}
}

// compare prints what differs between two windows of a run, as a diff of their
// sections.
func (a *app) compare(ctx context.Context, s *session, id machine.RunID, p window.Pack, f contextFlags) error {
	old, err := s.pack(ctx, id, f.against)
	if err != nil {
		return err
	}
	text := func(p *window.Pack) string {
		var b strings.Builder
		for _, x := range shownSections(p) {
			fmt.Fprintf(&b, "── %s\n%s\n", x.Name, strings.TrimRight(x.Text, "\n"))
		}
		return b.String()
	}
	diff := udiff.Unified(fmt.Sprintf("window %d", f.against), fmt.Sprintf("window %d", f.window), text(&old), text(&p))
	if a.json {
		return object(a.out(), map[string]any{"run": id, "window": f.window, "against": f.against, "diff": diff})
	}
	if diff == "" {
		diff = "no difference\n"
	}
	fmt.Fprint(a.out(), block(diff, ""))
	return nil
}
