package headless

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/engine/window"
	"pawl/views/safe"
)

func (a *app) diffCommand() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "diff RUN",
		Short: "Print what a run has changed so far",
		Long: `Print what a run has changed so far against the commit it started from, committed or not.
Control characters in it are shown as text, so that it is safe to look at; --raw prints the exact bytes, as "git apply" wants them.`,
		Args:              exactly("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantRun(args[0])
			if err != nil {
				return err
			}
			return a.with(cmd, viewing, func(ctx context.Context, s *session) error {
				text, err := s.Diff(ctx, id)
				if err != nil {
					return err
				}
				switch {
				case a.json:
					return object(a.out(), struct {
						Run  machine.RunID `json:"run"`
						Diff string        `json:"diff"`
					}{id, text})
				case raw:
					_, err = io.WriteString(a.out(), text)
				case text == "":
					a.say("Run %s has changed nothing so far.", id)
				default:
					shown, found := safe.Block(text)
					if _, err = io.WriteString(a.out(), shown); err == nil && found.Any() {
						a.say("pawl: %s", found.Warning())
					}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print the exact bytes")
	return cmd
}

func (a *app) landCommand() *cobra.Command {
	var onto string
	var dry bool
	cmd := &cobra.Command{
		Use:   "land RUN",
		Short: "Bring a run's work onto your branch",
		Long: `Bring a run's work onto your branch, once: by fast-forward or merge in your checkout if that branch is checked out and clean, by moving the ref if it is not checked out. Anything else is refused, with what to do.
What would happen is printed first; --dry-run ends there.`,
		Args:              exactly("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantRun(args[0])
			if err != nil {
				return err
			}
			how := deciding
			if dry {
				how = viewing
			}
			return a.with(cmd, how, func(ctx context.Context, s *session) error { return a.land(ctx, s, id, onto, dry) })
		},
	}
	cmd.Flags().StringVar(&onto, "onto", "", "the BRANCH to land on (default: the one the run started from)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only print what would happen")
	return cmd
}

func (a *app) land(ctx context.Context, s *session, id machine.RunID, onto string, dry bool) error {
	v, err := s.LandPreview(ctx, id, onto)
	if err != nil {
		return err
	}
	if !a.json {
		a.tellLanding(v)
	}
	if dry || v.Done {
		if a.json {
			return object(a.out(), v)
		}
		return nil
	}
	done, err := s.Land(ctx, id, onto)
	if err != nil {
		return err
	}
	if a.json {
		return object(a.out(), done)
	}
	fmt.Fprintf(a.out(), "Landed: %s is now at %s.\n", line(done.Onto, 0), line(done.Commit, 0))
	return nil
}

func (a *app) tellLanding(v engine.LandView) {
	w := a.out()
	if v.Done {
		fmt.Fprintf(w, "Run %s has landed on %s as %s.\n", v.Run, line(v.Onto, 0), line(v.Commit, 0))
		return
	}
	fmt.Fprintf(w, "Run %s, branch %s, onto %s: %s\n", v.Run, line(v.Branch, 0), line(v.Onto, 0), v.How)
	for _, part := range []struct {
		title string
		files []string
	}{{"changes", v.Files}, {"not committed yet, committed first", v.Leftovers}, {"conflicts", v.Conflicts}} {
		if len(part.files) == 0 {
			continue
		}
		fmt.Fprintf(w, "  %s:\n", part.title)
		for _, f := range part.files {
			fmt.Fprintf(w, "    %s\n", line(f, 0))
		}
	}
	if v.Blocked != "" {
		fmt.Fprintf(w, "  not now: %s\n", line(v.Blocked, 0))
	}
}

func (a *app) contextCommand() *cobra.Command {
	var section string
	cmd := &cobra.Command{
		Use:   "context RUN",
		Short: "Print what the model would be shown next",
		Long: `Print what the model would be shown next: section by section, with the tokens each costs and the events it comes from. What was shortened or left out is listed with the reason.
It is rebuilt from the ledger each time; nothing of it is kept anywhere else.`,
		Args:              exactly("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantRun(args[0])
			if err != nil {
				return err
			}
			return a.with(cmd, viewing, func(ctx context.Context, s *session) error { return a.context(ctx, s, id, section) })
		},
	}
	cmd.Flags().StringVar(&section, "section", "", "only the section of this NAME")
	return cmd
}

// shownPack is a context pack as --json tells it.
type shownPack struct {
	Run      machine.RunID  `json:"run"`
	Tokens   int            `json:"tokens"`
	Digest   machine.Digest `json:"digest"`
	Sections []shownSection `json:"sections"`
	Left     []leftOut      `json:"left_out"`
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

func (a *app) context(ctx context.Context, s *session, id machine.RunID, only string) error {
	p, err := s.Pack(ctx, id)
	if err != nil {
		return err
	}
	v := shownPack{Run: id, Tokens: p.Tokens, Digest: p.Digest, Sections: []shownSection{}, Left: []leftOut{}}
	var names []string
	for _, x := range p.Sections {
		names = append(names, x.Name)
		if only != "" && x.Name != only {
			continue
		}
		text := x.Text
		if x.Name == window.SectionTurns && text == "" {
			text = p.Transcript()
		}
		prov := x.Provenance
		if prov == nil {
			prov = []string{}
		}
		v.Sections = append(v.Sections, shownSection{Name: x.Name, Tokens: x.Tokens, Provenance: prov, Text: text})
	}
	if only != "" && len(v.Sections) == 0 {
		return usage(fmt.Sprintf("there is no section %q in the context of %s", only, id), "it has: "+strings.Join(names, ", "), "name one of these")
	}
	for _, l := range p.Left {
		v.Left = append(v.Left, leftOut{What: l.What, Why: l.Why, Bytes: l.Bytes, Handle: l.Handle})
	}
	if a.json {
		return object(a.out(), v)
	}
	w := a.out()
	fmt.Fprintf(w, "what the model of %s would be shown next: about %d tokens, digest %s\n", id, v.Tokens, v.Digest.Short())
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
		fmt.Fprintf(w, "%s: %d bytes, %s\n", line(l.What, 0), l.Bytes, line(l.Why, 0))
	}
	return nil
}
