package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"pawl/engine/machine"
	"pawl/ledger"
)

// The tones of a timeline row.
const (
	tonePlain = "plain"
	toneGood  = "good"
	toneBad   = "bad"
	toneWarn  = "warn"
	toneDim   = "dim"
)

// Timeline returns a keyset page of a run's events, told for people: after an
// event number, or with back the ones before it (0: the newest).
func (e *Engine) Timeline(ctx context.Context, id machine.RunID, after int64, back bool, limit int) ([]TimelineRow, error) {
	evs, err := e.store.EventsPage(ctx, string(id), ledger.Page{After: after, Back: back, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]TimelineRow, 0, len(evs))
	summaries := map[machine.EffectID]string{}
	for _, raw := range evs {
		ev, err := decode(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, e.tell(ctx, ev, summaries))
	}
	return out, nil
}

// tell words one event.
func (e *Engine) tell(ctx context.Context, ev machine.Event, summaries map[machine.EffectID]string) TimelineRow {
	row := TimelineRow{N: ev.N, At: wall(ev.At), Kind: ev.Body.Kind(), Actor: who(ev.Actor), Epoch: ev.Epoch, Sign: "·", Tone: tonePlain}
	sum := func(id machine.EffectID) string {
		row.Effect = id
		if s, ok := summaries[id]; ok {
			return s
		}
		s := id.Short()
		if r, err := e.store.Effect(ctx, string(id)); err == nil {
			s = r.Summary
		}
		summaries[id] = s
		return s
	}
	set := func(sign, tone, title string, detail ...string) {
		row.Sign, row.Tone, row.Title = sign, tone, title
		for _, d := range detail {
			if d != "" {
				row.Detail = append(row.Detail, d)
			}
		}
	}
	switch b := ev.Body.(type) {
	case machine.EffectIntended:
		summaries[b.Effect] = b.Summary
		row.Effect = b.Effect
		asks := ""
		if b.Asks {
			asks = "asks first: " + b.Rule
		}
		set("○", tonePlain, toCome(b.Tool, b.Summary), "class "+b.Contract.Class.String(), asks, inline(b.Args))
	case machine.EffectRefused:
		row.Effect = b.Effect
		set("⊘", toneWarn, b.Tool+" refused", b.Reason)
	case machine.EffectCancelled:
		set("⊘", toneDim, "cancelled, never sent: "+sum(b.Effect), b.Reason)
	case machine.EffectDispatched:
		again := ""
		if b.Attempt > 1 {
			again = fmt.Sprintf(" (attempt %d)", b.Attempt)
		}
		set("→", tonePlain, "sent"+again+": "+sum(b.Effect), levelOf(b.Level))
	case machine.AttemptStarted:
		set("·", toneDim, fmt.Sprintf("process %d started: %s", b.Identity.PID, sum(b.Effect)))
	case machine.EffectCompleted:
		tone, sign := toneGood, "✓"
		if !b.Result.OK {
			tone, sign = toneBad, "✗"
		}
		title := sum(b.Effect)
		if b.Result.Code != "" && b.Result.Code != "0" {
			title += " → " + b.Result.Code
		}
		set(sign, tone, title, b.Result.Note, inline(b.Result.Output))
	case machine.EffectRejected:
		set("✗", toneBad, "turned away before it took effect: "+sum(b.Effect), b.Code, inline(b.Result.Output))
	case machine.EffectAmbiguous:
		set("?", toneWarn, "no result on record: "+sum(b.Effect), b.Cause, inline(b.Output))
	case machine.SnapshotTaken:
		left := unpackSnapshot(b.Snapshot).Left
		if len(left) > 0 {
			set("!", toneWarn, "snapshot after "+sum(b.Effect)+", not all of it", append([]string{b.Snapshot.Tree}, left...)...)
		} else {
			set("·", toneDim, "snapshot after "+sum(b.Effect), b.Snapshot.Tree)
		}
	case machine.QuiescenceProven:
		set("·", toneDim, "every sender of it is dead: "+sum(b.Effect), b.Quiescence.Detail)
	case machine.EvidenceAdded:
		set("◇", toneWarn, fmt.Sprintf("looked (%s): %s", b.Evidence.Authority, strings.ReplaceAll(b.Evidence.Verdict.String(), "_", " ")), sum(b.Effect), b.Evidence.Text)
	case machine.EffectSettled:
		tone := toneGood
		if b.State == machine.StateContradicted {
			tone = toneBad
		}
		set("◆", tone, "settled as "+strings.ReplaceAll(b.State.String(), "_", " ")+": "+sum(b.Effect), b.Text)
	case machine.EffectForced:
		set("◆", toneWarn, fmt.Sprintf("%s decided “%s”: %s", who(ev.Actor), b.Choice, sum(b.Effect)), b.Reason)
	case machine.EffectAbandoned:
		set("◆", toneWarn, who(ev.Actor)+" left it unknown: "+sum(b.Effect), b.Reason)
	case machine.ProbeAsked:
		set("·", toneDim, fmt.Sprintf("%s chose “%s”: %s", who(ev.Actor), b.Choice, sum(b.Effect)))
	case machine.CompensationAsked:
		set("↶", toneWarn, who(ev.Actor)+" asked to undo: "+sum(b.Effect), b.Reason)
	case machine.CompensationEnded:
		if b.OK {
			set("↶", toneGood, "undone: "+sum(b.Effect))
		} else {
			set("↶", toneBad, "could not be undone: "+sum(b.Effect), b.Text)
		}
	default:
		tellRun(ev, set)
	}
	if row.Title == "" {
		row.Title = row.Kind
	}
	return row
}

// tellRun words the events that are not about one effect.
func tellRun(ev machine.Event, set func(sign, tone, title string, detail ...string)) {
	switch b := ev.Body.(type) {
	case machine.RunCreated:
		set("▶", tonePlain, "run created: "+b.Charter.Goal, "model "+b.Charter.Model, labelled("check: ", b.Charter.Check), labelled("rules: ", strings.Join(b.Charter.Allow, "; ")))
	case machine.RunClaimed:
		set("·", toneDim, fmt.Sprintf("driven by %s (epoch %d)", b.Owner, ev.Epoch))
	case machine.WorkspaceReady:
		where, tone := "works in "+b.Path, toneDim
		if b.Mode != "worktree" {
			where, tone = "works in your own folder "+b.Path+": changes are made there directly", toneWarn
		}
		set("·", tone, where, labelled("branch ", b.Branch), labelled("base ", b.Base), "confinement "+b.Level, labelled("note: ", b.Note))
	case machine.WorkspaceChanged:
		set("±", toneWarn, fmt.Sprintf("changed by someone else: %d files, kept", len(b.Files)), b.Files...)
	case machine.WorkspaceRestored:
		set("↺", toneWarn, fmt.Sprintf("restored %d files to the snapshot before the interrupted command", len(b.Files)), b.Files...)
	case machine.WorkspaceRebuilt:
		set("↺", toneWarn, rebuiltTitle(b), rebuiltDetail(b)...)
	case machine.TurnRequested:
		again := ""
		if b.Attempt > 1 {
			again = fmt.Sprintf(", try %d", b.Attempt)
		}
		set("·", toneDim, fmt.Sprintf("turn %d asked%s", b.Turn, again))
	case machine.TurnResponded:
		calls := make([]string, 0, len(b.Calls))
		for _, c := range b.Calls {
			calls = append(calls, c.Tool)
		}
		title := fmt.Sprintf("turn %d", b.Turn)
		if t := firstLine(b.Text.Inline); t != "" {
			title += ": " + t
		}
		set("◉", tonePlain, title, b.Text.Inline, labelled("calls ", strings.Join(calls, ", ")), usage(b.Usage))
	case machine.TurnHeld:
		set("…", toneWarn, fmt.Sprintf("turn %d waits until %s", b.Turn, clock(b.Until)), b.Why)
	case machine.WindowOpened:
		what := fmt.Sprintf("turns from %d on stay word for word", b.Keep)
		if b.Keep >= b.Turn {
			what = "no turn stays word for word"
		}
		set("▤", tonePlain, fmt.Sprintf("window %d opened: %d tokens became %d", b.Window, b.Before, b.After), what, b.Why)
	case machine.MemoryRead:
		var told []string
		for _, x := range b.Entries {
			told = append(told, x.ID+" "+x.Text)
		}
		set("≡", toneDim, fmt.Sprintf("told at the start: %d preferences of yours", len(b.Entries)), append(told, labelled("and the project's notes: ", b.Path))...)
	case machine.NoteWritten:
		set("≡", tonePlain, "the model's note for the next window (claimed)", b.Text)
	case machine.TurnFailed:
		set("!", toneWarn, fmt.Sprintf("turn %d: no answer (%s)", b.Turn, b.Class), b.Message, again(ev.At, b.RetryAt))
	case machine.ApprovalRequested:
		set("!", toneWarn, "asks for approval "+string(b.Approval), b.Why, labelled("changed since: ", b.Drift))
	case machine.ApprovalGranted:
		set("✓", toneGood, who(ev.Actor)+" approved "+string(b.Approval), labelled("and from now on, as grant ", b.Grant))
	case machine.ApprovalDenied:
		set("⊘", toneWarn, who(ev.Actor)+" denied "+string(b.Approval), b.Feedback)
	case machine.ApprovalClosed:
		set("·", toneDim, fmt.Sprintf("approval %s is %s", b.Approval, b.State), b.Reason)
	case machine.QuestionAsked:
		set("?", toneWarn, string(b.Sort)+": "+b.Text)
	case machine.QuestionAnswered:
		set("✓", toneGood, who(ev.Actor)+" answered: "+b.Answer)
	case machine.PlanUpdated:
		var items []string
		for _, i := range b.Items {
			items = append(items, i.State+"  "+i.Text)
		}
		set("≡", tonePlain, fmt.Sprintf("plan: %d items", len(b.Items)), items...)
	case machine.DecisionRecorded:
		set("≡", tonePlain, "decision: "+b.Text)
	case machine.Told:
		set("»", tonePlain, who(ev.Actor)+": "+b.Text)
	case machine.RunPaused:
		set("‖", toneWarn, who(ev.Actor)+" paused the run", b.Reason)
	case machine.RunUnpaused:
		set("▶", tonePlain, who(ev.Actor)+" let it go on")
	case machine.RunCancelled:
		set("■", toneBad, who(ev.Actor)+" cancelled the run", b.Reason)
	case machine.RunFinished:
		how := "done (unchecked)"
		if b.Checked {
			how = "done, checked"
		}
		set("■", toneGood, how, b.Summary.Inline)
	case machine.RunFailed:
		set("■", toneBad, "failed: "+b.Reason)
	case machine.RollbackAsked:
		set("↶", toneWarn, who(ev.Actor)+" asked to undo the whole run", b.Reason)
	case machine.RollbackEnded:
		set("↶", toneGood, fmt.Sprintf("undoing ended: %d undone, %d left", b.Undone, b.Left))
	case machine.ChildSpawned:
		set("⑂", tonePlain, fmt.Sprintf("delegated to run %s: %s", b.Child, b.Goal), labelled("set aside for it: ", money(b.Reserve)))
	case machine.ChildReported:
		tone := tonePlain
		if len(b.Report.Flags) > 0 || b.Report.Phase == machine.PhaseFailed {
			tone = toneWarn
		}
		set("⑂", tone, fmt.Sprintf("run %s is %s: %d files differ, %d commands, %d unknown", b.Child, b.Report.Phase, len(b.Report.Files)+b.Report.More, b.Report.Ran, b.Report.Unknown),
			append([]string{labelled("claims: ", b.Report.Claim.Inline), b.Report.Reason}, b.Report.Flags...)...)
	case machine.ChildReviewed:
		set("◆", tonePlain, fmt.Sprintf("%s: %s the work of %s", cmp.Or(b.Rule, who(ev.Actor)), b.Verdict, b.Child), b.Feedback, labelled("only ", strings.Join(b.Files, ", ")))
	case machine.ChildResumed:
		set("⑂", tonePlain, fmt.Sprintf("run %s works again", b.Child))
	case machine.ChildFunded:
		set("·", toneDim, fmt.Sprintf("%s more for run %s", money(b.By), b.Child))
	case machine.MessageReceived:
		set("»", tonePlain, fmt.Sprintf("%s run %s: %s", b.Sender, b.From, b.Text))
	case machine.LandAsked:
		set("»", tonePlain, who(ev.Actor)+" asked to land it on "+b.Onto)
	}
}

// toCome words what an effect is going to do. Most summaries begin with what is
// done (“read retry.go”); those that begin with what they are about (“plan: …”)
// are only announced.
func toCome(tool, summary string) string {
	switch tool {
	case "shell":
		return "will run " + summary
	case "http_request":
		return "will send " + summary
	}
	first, _, _ := strings.Cut(summary, " ")
	if first == "" || strings.HasSuffix(first, ":") {
		return "next: " + summary
	}
	return "will " + summary
}

func inline(t machine.Text) string { return strings.TrimRight(t.Inline, "\n") }

func labelled(label, s string) string {
	if s == "" {
		return ""
	}
	return label + s
}

func levelOf(level string) string { return labelled("confinement ", level) }

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

func usage(u machine.Usage) string {
	s := fmt.Sprintf("%d tokens in, %d out", u.Input, u.Output)
	if u.Cached > 0 {
		s += fmt.Sprintf(", %d cached", u.Cached)
	}
	if u.Cost > 0 {
		s += fmt.Sprintf(", $%.4f", float64(u.Cost)/1e6)
	}
	return s
}

// clock is a time of the record as its readers everywhere see it.
func clock(us int64) string { return time.UnixMicro(us).UTC().Format("15:04:05") + " UTC" }

// again says when a request is made again; "" if it is not.
func again(now, at int64) string {
	if at <= now {
		return ""
	}
	wait := time.Duration(at-now) * time.Microsecond
	if wait > time.Second {
		wait = wait.Round(time.Second)
	}
	return fmt.Sprintf("asks again in %s, at %s", wait, clock(at))
}

// money words an amount in micro-USD, "" for none.
func money(micro int64) string {
	if micro == 0 {
		return ""
	}
	return fmt.Sprintf("$%.4f", float64(micro)/1e6)
}
