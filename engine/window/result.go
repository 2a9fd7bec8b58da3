package window

import (
	"fmt"
	"slices"
	"strings"

	"pawl/engine/machine"
)

// ResultText returns the exact text that the model gets for a call whose
// effect is e, as things stand. e may be nil: no effect was ever recorded. The
// error is that of a blob that cannot be read.
func ResultText(s *machine.State, e *machine.Effect, src Source) (string, error) {
	text, _, err := resultText(s, e, src, OutputLimit)
	return text, err
}

// The reason that stands in the preview of a choice, where the operator has
// not given one yet.
const yourReason = "(your reason)"

// ResultIf returns what the model would get for e after the operator's choice.
// For wait, probe and retry, after which nothing is settled yet, it says so.
func ResultIf(s *machine.State, e *machine.Effect, choice machine.Choice) string {
	f := *e
	f.Attempts = slices.Clone(e.Attempts)
	switch choice {
	case machine.ChooseHappened:
		f.State, f.Forced, f.Reason = machine.StateForcedHappened, true, yourReason
	case machine.ChooseAbandon:
		if f.State == machine.StateNotHappened || f.State == machine.StateForcedNot {
			f.GivenUp = true
		} else {
			f.State = machine.StateAbandoned
		}
		f.Reason = yourReason
	case machine.ChooseCompensate:
		f.Before, f.State, f.Compensation = f.State, machine.StateCompensated, ""
	case machine.ChooseRetry:
		how := "stated by you not to have happened"
		if f.State == machine.StateNotHappened {
			how = "proven not to have happened"
		}
		return fmt.Sprintf("Nothing yet. It is run again as attempt %d, and the model gets that attempt's result, with the remark that what was tried before was %s.", len(f.Attempts)+1, how)
	case machine.ChooseWait:
		return "Nothing yet. The run waits until this is settled."
	case machine.ChooseProbe:
		return "Nothing yet. Pawl looks now; the model is told what that proves, and nothing if it proves nothing."
	}
	text, _, err := resultText(s, &f, noBlobs{}, OutputLimit)
	if err != nil {
		return err.Error()
	}
	return text
}

// noBlobs stands for outputs that a preview does not show.
type noBlobs struct{}

func (noBlobs) Blob(machine.Digest) ([]byte, error) { return []byte("(output)"), nil }

// resultText is the one place where a result is worded.
func resultText(s *machine.State, e *machine.Effect, src Source, limit int) (string, *LeftOut, error) {
	if e == nil {
		return unknown("No effect is recorded for this call", whoDecides), nil, nil
	}
	edited := ""
	for hops := 0; e.ReplacedBy != "" && hops < 64; hops++ {
		next := s.Effect(e.ReplacedBy)
		if next == nil {
			break
		}
		e = next
		args, err := legibleText(e.Args, src)
		if err != nil {
			return "", nil, err
		}
		edited = fmt.Sprintf("The operator changed this call before it ran. Instead of it: %s %s\n", e.Tool, args)
	}
	text, left, err := stateText(s, e, src, limit)
	if err != nil {
		return "", nil, err
	}
	if e.Failed != "" && e.State != machine.StateCompensated && e.State != machine.StateCompensating {
		text += "\nAn attempt to undo it did not succeed: " + clean(e.Failed)
	}
	return edited + text, left, nil
}

func stateText(s *machine.State, e *machine.Effect, src Source, limit int) (string, *LeftOut, error) {
	switch e.State {
	case machine.StateRefused:
		return refused(s, e), nil, nil
	case machine.StateCancelled:
		return "cancelled before it started: " + sentence(e.Reason, "no reason was given") + " Nothing was done.", nil, nil
	case machine.StateProposed, machine.StateIntended:
		if e.Asks {
			return "not started: it waits for the operator's approval. Nothing was done.", nil, nil
		}
		return "not started. Nothing was done.", nil, nil
	case machine.StateCompleted:
		return withOutput(completed(e), e, src, limit)
	case machine.StateRejected:
		return withOutput(fmt.Sprintf("did not happen: %s, before anything was sent. Nothing was done.", clean(e.Result.Code))+history(e), e, src, limit)
	case machine.StateHappened:
		return happened(e, src, limit)
	case machine.StateForcedHappened:
		return fmt.Sprintf("The operator states that this happened; it is not proven. Reason: %s\n"+
			"Its output is not known. Go on as if it is done, and do not repeat it.", sentence(e.Reason, "none was given")), nil, nil
	case machine.StateNotHappened:
		return notHappened(e, "did not happen, by proof: "+sentence(evidenceText(e, machine.VerdictNotHappened), "it was looked for and is not there")), nil, nil
	case machine.StateForcedNot:
		return notHappened(e, "The operator states that this did not happen; it is not proven."), nil, nil
	case machine.StateUnknown, machine.StateDispatched:
		return unknownOutput("It was started, and no end of it is recorded", whoDecides, e, src, limit)
	case machine.StateAmbiguous:
		return unknownOutput(cause(e), whoDecides, e, src, limit)
	case machine.StateAbandoned:
		return unknownOutput(cause(e), "The operator leaves it open: "+sentence(e.Reason, "no reason was given")+" Go on with what does not depend on it.", e, src, limit)
	case machine.StateContradicted:
		return unknown("What was recorded and what was seen later contradict each other: "+strings.TrimSuffix(sentence(e.Reason, "no details"), "."), whoDecides), nil, nil
	case machine.StateCompensating:
		return "being undone: " + before(e) + " Pawl is undoing it, and whether that worked is not known yet. Do not undo it yourself.", nil, nil
	case machine.StateCompensated:
		return compensated(s, e), nil, nil
	}
	return unknown("Its state is not one that this pawl knows", whoDecides), nil, nil
}

const whoDecides = "Pawl looks into the world and the operator decides; this result changes when it is settled."

// unknown words a result that is missing. It never says failed and never
// invites to try again.
func unknown(why, next string) string {
	return "unknown: it is not known whether this happened. " + why +
		". It may have happened wholly, partly or not at all. " +
		"Do not repeat it, do not seek the same end through another tool, command or address, and do not undo it. " + next
}

// unknownOutput adds what was seen before the record ends.
func unknownOutput(why, next string, e *machine.Effect, src Source, limit int) (string, *LeftOut, error) {
	text := unknown(why, next)
	a := e.Last()
	if a == nil || a.Partial.IsZero() {
		return text, nil, nil
	}
	out, left, err := showOutput(a.Partial, src, limit)
	return text + "\noutput, as far as it was seen:\n" + out, left, err
}

func cause(e *machine.Effect) string {
	why := ""
	for i := range e.Attempts {
		if a := &e.Attempts[i]; a.Cause != "" && (a.End == machine.EndUnknown || why == "") {
			why = a.Cause
		}
	}
	if why == "" {
		return "It was started, and no end of it was observed"
	}
	return "It was started, and no end of it was observed: " + strings.TrimRight(clean(why), ". \n")
}

func refused(s *machine.State, e *machine.Effect) string {
	if a := s.Approval(e.Approval); a != nil && a.State == machine.ApprovalDeniedS {
		return "denied by the operator: " + sentence(a.Feedback, "no reason was given") +
			" Nothing was done. Do not seek the same end another way; ask the operator if you need it."
	}
	return "refused: " + sentence(e.Reason, "no reason was given") + " Nothing was done."
}

// completed is the line of an observed end. The code is always in it.
func completed(e *machine.Effect) string {
	if e.Tool == "ask_operator" {
		return "answered by the operator"
	}
	r := &e.Result
	line := "completed"
	switch code := clean(r.Code); {
	case code == "" && r.OK:
	case code == "":
		line += ", without success"
	case e.Tool == "http_request":
		line += ": status " + code
	case e.Tool == "shell" || e.Contract.Sender == machine.SenderCommand:
		line += ": exit code " + code
	default:
		line += ": " + code
	}
	if r.Note != "" {
		line += "\n" + clean(r.Note)
	}
	return line + history(e)
}

// history tells of the attempts before the last one, where they matter.
func history(e *machine.Effect) string {
	if len(e.Attempts) < 2 {
		return ""
	}
	var forced, proven, again int
	for _, a := range e.Attempts[:len(e.Attempts)-1] {
		switch {
		case a.Forced && a.End == machine.EndNotHappened:
			forced++
		case a.End == machine.EndNotHappened || a.End == machine.EndRejected:
			proven++
		default:
			again++
		}
	}
	var out string
	if forced > 0 {
		out += fmt.Sprintf("\n%s before this had no observed end; the operator states that it did not happen, which is not proven.", attempts(forced))
	}
	if proven > 0 {
		out += fmt.Sprintf("\n%s before this did not happen, by proof.", attempts(proven))
	}
	if again > 0 {
		switch e.Contract.Class {
		case machine.ClassWorkspace:
			out += fmt.Sprintf("\n%s before this was interrupted; the files were restored, and this ran from the start.", attempts(again))
		case machine.ClassKeyed:
			out += fmt.Sprintf("\n%s before this had no observed end; it was sent again under the same key, which counts once.", attempts(again))
		case machine.ClassRead, machine.ClassUnknown, machine.ClassProbeable, machine.ClassCompensable, machine.ClassIrreversible:
			out += fmt.Sprintf("\n%s before this was interrupted.", attempts(again))
		}
	}
	return out
}

func attempts(n int) string {
	if n == 1 {
		return "One attempt"
	}
	return fmt.Sprintf("Each of %d attempts", n)
}

func happened(e *machine.Effect, src Source, limit int) (string, *LeftOut, error) {
	by := "a look into the world"
	for _, v := range e.Evidence {
		if v.Verdict != machine.VerdictHappened {
			continue
		}
		switch v.Authority {
		case machine.AuthLateAck, machine.AuthAck:
			by = "its own answer, which came late"
		case machine.AuthReplay:
			by = "the answer to a second sending under the same key"
		case machine.AuthOperator:
			by = "what the operator has shown"
		case machine.AuthProbe, machine.AuthGate, machine.AuthDeath, machine.AuthHorizon:
			by = "a look into the world"
		}
	}
	line := fmt.Sprintf("confirmed by %s: this happened. %s Do not repeat it.", by, sentence(evidenceText(e, machine.VerdictHappened), ""))
	line = strings.ReplaceAll(line, ".  ", ". ")
	if e.Result.Output.IsZero() && e.Result.Code == "" {
		return line + "\nIts output was not recorded.", nil, nil
	}
	if e.Result.Code != "" {
		line += "\ncode: " + clean(e.Result.Code)
	}
	return withOutput(line, e, src, limit)
}

func notHappened(e *machine.Effect, line string) string {
	if e.GivenUp {
		return line + " It is not tried again: " + sentence(e.Reason, "the operator decided so")
	}
	if e.State == machine.StateForcedNot && e.Reason != "" {
		line += " Reason: " + sentence(e.Reason, "")
	}
	return line + " It is Pawl's and the operator's to run it again; do not repeat it yourself."
}

// before says what was known of an effect when its undoing began.
func before(e *machine.Effect) string {
	switch e.Before {
	case machine.StateCompleted, machine.StateHappened:
		return "it happened."
	case machine.StateForcedHappened:
		return "the operator states that it happened."
	case machine.StateUnknown, machine.StateProposed, machine.StateRefused, machine.StateIntended, machine.StateCancelled,
		machine.StateDispatched, machine.StateRejected, machine.StateAmbiguous, machine.StateNotHappened,
		machine.StateForcedNot, machine.StateAbandoned, machine.StateCompensating, machine.StateCompensated, machine.StateContradicted:
	}
	return "it was not known whether it happened."
}

func compensated(s *machine.State, e *machine.Effect) string {
	how, sure := "", "This is proven."
	if c := s.Effect(e.Compensation); c != nil {
		if c.Summary != "" {
			how = " by " + clean(c.Summary)
		}
		if c.State == machine.StateForcedHappened {
			sure = "That it was undone is the operator's word, not proven."
		}
	} else if c := e.Contract.Compensation; c != nil {
		how = " by " + clean(c.Tool)
	}
	return "undone: " + before(e) + " It has been undone" + how + ". " + sure + " Do not count on it, and do not repeat it unless the operator asks for it."
}

// withOutput puts an output below a status line.
func withOutput(line string, e *machine.Effect, src Source, limit int) (string, *LeftOut, error) {
	out, left, err := showOutput(e.Result.Output, src, limit)
	if err != nil {
		return "", nil, err
	}
	return line + "\noutput:\n" + out, left, nil
}

// evidenceText joins what the evidence of one verdict says.
func evidenceText(e *machine.Effect, v machine.Verdict) string {
	var out []string
	for _, x := range e.Evidence {
		if x.Verdict == v && x.Text != "" && !slices.Contains(out, x.Text) {
			out = append(out, x.Text)
		}
	}
	return strings.Join(out, "; ")
}

// sentence ends a text with a full stop, or stands in for an empty one.
func sentence(s, none string) string {
	s = strings.TrimSpace(clean(s))
	if s == "" {
		s = none
	}
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}
