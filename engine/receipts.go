package engine

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"pawl/engine/machine"
	"pawl/ledger"
)

// Bounds of a report: it stands in an event of the parent's.
const (
	reportFiles    = 200
	reportCommands = 20
	reportLine     = 160
)

// report gathers what a delegated run says of itself, and what its record says.
func (e *Engine) report(ctx context.Context, s *machine.State) (machine.Report, []ledger.Blob) {
	r := machine.Report{Phase: s.Phase, Checked: s.Checked, Claim: s.Summary, Reason: preview(s.Reason, 400), Turns: s.Turns.Len()}
	r.Spent, r.AtMost = s.SpentInAll()
	for _, c := range s.Children.All() {
		if c.Report == nil { // paused with this end; what it may still use stays set aside
			r.AtMost += c.Reserve
		}
	}
	var files []string
	unread := ""
	switch f, ok := e.space.(forks); {
	case !s.Space.Ready:
	case !ok:
		unread = "this process cannot read work trees"
	default:
		ws, err := spaceOf(s)
		if err == nil {
			w, werr := f.WorkOf(context.WithoutCancel(ctx), ws)
			files, r.Tree, err = w.Files, w.Tree, werr
		}
		if err != nil {
			unread = err.Error()
		}
	}
	r.Files, r.More = files, 0
	if len(files) > reportFiles {
		r.Files, r.More = files[:reportFiles], len(files)-reportFiles
	}
	receipts(s, &r)
	r.Flags = flagsOf(s, &r, files)
	if r.Unread = unread != ""; r.Unread {
		r.Flags = append(r.Flags, "its files could not be read: "+preview(unread, 300))
	}
	return r, nil
}

// receipts counts what the record holds.
func receipts(s *machine.State, r *machine.Report) {
	changed := 0 // ordinal of the last effect that changed files
	for _, f := range s.Effects.All() {
		if f.State == machine.StateCompleted && changes(f) {
			changed = f.Ord
		}
	}
	for _, f := range s.Effects.All() {
		switch f.State {
		case machine.StateCompleted, machine.StateHappened, machine.StateForcedHappened:
			if f.State == machine.StateCompleted && !f.Result.OK {
				r.Failed++
			} else {
				r.Done++
				if c := f.Contract.Class; c != machine.ClassRead && c != machine.ClassWorkspace {
					r.Outside++
				}
			}
		case machine.StateRejected, machine.StateNotHappened, machine.StateForcedNot:
			r.Failed++
		case machine.StateDispatched, machine.StateAmbiguous, machine.StateContradicted, machine.StateAbandoned, machine.StateCompensating:
			r.Unknown++
		case machine.StateUnknown, machine.StateProposed, machine.StateRefused, machine.StateIntended, machine.StateCancelled, machine.StateCompensated:
		}
		if f.Tool == "shell" && f.State == machine.StateCompleted {
			r.Ran++
			r.Commands = append(r.Commands, machine.Receipt{Line: preview(f.Summary, reportLine), Code: f.Result.Code, OK: f.Result.OK, Fresh: f.Ord >= changed})
		}
	}
	if n := len(r.Commands); n > reportCommands {
		r.Commands = r.Commands[n-reportCommands:]
	}
}

// changes reports whether an effect left the files other than it found them.
func changes(f *machine.Effect) bool {
	last := f.Last()
	if !f.Contract.Writes || last == nil || f.Tool == machine.ToolFinish {
		return false
	}
	if f.Tool == "shell" {
		return f.Result.Changed || !last.Post.IsZero() && !last.Pre.IsZero() && last.Post.Tree != last.Pre.Tree
	}
	return f.Result.OK
}

// What a claim says, and what would have to be on record for it.
var (
	saysTested  = regexp.MustCompile(`(?i)\b(tests?|suite|specs?|checks?|build|ci|lint(er)?s?)\b[^.;\n]{0,40}\b(pass(es|ed|ing)?|green|succeed(s|ed)?|ok|clean)\b|\b(everything|all) (is |are )?(green|pass(es|ed|ing)?)\b|\btested\b`)
	saysSent    = regexp.MustCompile(`(?i)\b(pushed|published|deployed|released|uploaded|e-?mailed|opened (a |the )?(pull|merge) request|(opened|created|filed) (a |an |the )?(pr|issue|ticket|release))\b`)
	saysChanged = regexp.MustCompile(`(?i)\b(fixed|implemented|added|changed|updated|rewrote|rewritten|refactored|removed|renamed|created|wrote|edited)\b`)
	negated     = regexp.MustCompile(`(?i)(\bnot|\bnever|\bno|n't|\bwithout|\bnothing|\bfailed to|\bcould not)\b[^.;\n]{0,30}$`)
	isTest      = regexp.MustCompile(`(?i)(^|[\s/;&|])(\S*test\S*|pytest|jest|vitest|tox|ctest|rspec|make|mvn|gradle|ninja|go (vet|build)|cargo (check|build|clippy)|npm run \S+|\S*check\S*|\S*lint\S*)`)
)

// flagsOf compares a claim with the receipts.
func flagsOf(s *machine.State, r *machine.Report, files []string) []string {
	var out []string
	claim := s.Summary.Inline
	if says(saysTested, claim) && !s.Checked && !tested(r) {
		out = append(out, "It says that tests or checks pass; no such command has succeeded after its last change.")
	}
	if says(saysSent, claim) && r.Outside == 0 {
		out = append(out, "It says that something was pushed, published or sent; no effect beyond its work tree is on record.")
	}
	if says(saysChanged, claim) && s.Space.Ready && len(files) == 0 && r.Tree != "" {
		out = append(out, "It says that something was changed; no file differs from where it started.")
	}
	for _, f := range files {
		if !underAny(f, s.Charter.Paths) {
			out = append(out, fmt.Sprintf("It changed %s, which lies outside the paths it was given.", preview(f, 200)))
			break
		}
	}
	if r.Unknown > 0 {
		out = append(out, fmt.Sprintf("The outcome of %d of its actions is not known.", r.Unknown))
	}
	return out
}

// says reports whether a claim holds a statement that is not denied at once.
func says(what *regexp.Regexp, claim string) bool {
	for _, at := range what.FindAllStringIndex(claim, -1) {
		if !negated.MatchString(claim[:at[0]]) && !negated.MatchString(claim[at[0]:at[1]]) {
			return true
		}
	}
	return false
}

func tested(r *machine.Report) bool {
	for _, c := range r.Commands {
		if c.OK && c.Fresh && isTest.MatchString(c.Line) {
			return true
		}
	}
	return false
}

// underAny reports whether a file lies in one of the paths; none: anywhere.
func underAny(file string, paths []string) bool {
	if len(paths) == 0 {
		return true
	}
	for _, p := range paths {
		if p = path.Clean(p); p == "." || file == p || strings.HasPrefix(file, p+"/") {
			return true
		}
	}
	return false
}

// reportText is what the model of the parent is shown of its children: each
// claim as a claim, and the receipts beside it.
func reportText(s *machine.State) string {
	var b strings.Builder
	for _, c := range s.Children.All() {
		r := c.Report
		fmt.Fprintf(&b, "run %s: %s\n  goal: %s\n", c.ID, c.Standing(), preview(c.Goal, 300))
		if r == nil {
			continue
		}
		if c.Feedback != "" {
			fmt.Fprintf(&b, "  said at the review: %s\n", c.Feedback)
		}
		switch {
		case r.Empty():
			b.WriteString("  it came back with nothing: no word and no change\n")
		case r.Claim.IsZero():
			fmt.Fprintf(&b, "  it made no claim; it is %s: %s\n", r.Phase, r.Reason)
		default:
			fmt.Fprintf(&b, "  it claims: %s\n", strings.ReplaceAll(r.Claim.Inline, "\n", "\n    "))
		}
		b.WriteString(receiptText(r, "  "))
	}
	if b.Len() == 0 {
		return "Nothing was delegated.\n"
	}
	return b.String()
}

func receiptText(r *machine.Report, indent string) string {
	var b strings.Builder
	check := "no check passed"
	if r.Checked {
		check = "its check passed"
	}
	fmt.Fprintf(&b, "%son record: %s; %d files differ; %d actions done, %d failed, %d beyond its work tree, %d unknown; %d turns, $%.4f\n",
		indent, check, len(r.Files)+r.More, r.Done, r.Failed, r.Outside, r.Unknown, r.Turns, float64(r.Spent)/1e6)
	for i, f := range r.Files {
		if i == 20 {
			fmt.Fprintf(&b, "%s  and %d more files\n", indent, len(r.Files)-i+r.More)
			break
		}
		fmt.Fprintf(&b, "%s  file %s\n", indent, f)
	}
	for _, c := range r.Commands {
		when := ""
		if !c.Fresh {
			when = " (before its last change)"
		}
		fmt.Fprintf(&b, "%s  command %s → %s%s\n", indent, c.Line, c.Code, when)
	}
	for _, f := range r.Flags {
		fmt.Fprintf(&b, "%s  ! %s\n", indent, f)
	}
	return b.String()
}
