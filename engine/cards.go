package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/policy"
	"pawl/ledger"
)

func wall(us int64) time.Time { return time.UnixMicro(us) }

// EffectCard tells all that is known of one effect. An effect that was in
// flight when its owner died is shown as the ambiguous one it is.
func (e *Engine) EffectCard(ctx context.Context, id machine.EffectID) (EffectCard, error) {
	s, err := e.view(ctx, id.Run())
	if err != nil {
		return EffectCard{}, err
	}
	f := s.Effect(id)
	if f == nil {
		return EffectCard{}, &ledger.NotFoundError{What: "effect", ID: string(id)}
	}
	args, err := e.bytes(ctx, f.Args)
	if err != nil {
		return EffectCard{}, err
	}
	look, how := lookFor(f, args)
	c := EffectCard{
		ID: f.ID, Run: s.Charter.ID, Goal: s.Charter.Goal, Tool: f.Tool, Class: f.Contract.Class, State: f.State, Forced: f.Forced,
		Summary: f.Summary, Sentence: sentence(&s, f), Look: look, LookHow: how, Since: wall(f.Updated),
		Meant: meant(f, args), Known: known(f), Looked: looked(f), Quiet: e.quiet(f), Choices: choicesFor(&s, f, e.o.Mono()), Tail: s.Tail,
	}
	if last := f.Last(); last != nil && f.State == machine.StateAmbiguous {
		c.Since = wall(last.At)
	}
	return c, nil
}

func meant(f *machine.Effect, args []byte) []Field {
	out := []Field{{"tool", f.Tool}}
	out = append(out, argFields(args)...)
	if f.Target != "" {
		out = append(out, Field{"acts on", f.Target})
	}
	out = append(out, Field{"class", f.Contract.Class.String()})
	if f.Contract.Declared {
		out = append(out, Field{"declared", "re-runnable by the operator's word, not measured"})
	}
	if f.Contract.Key != "" {
		out = append(out, Field{"key", f.Contract.Key})
	}
	if f.Level != "" {
		out = append(out, Field{"confinement", f.Level})
	}
	return append(out, Field{"digest", f.Digest.Short()})
}

// argFields shows arguments one a line, in the order of their names.
func argFields(args []byte) []Field {
	var m map[string]json.RawMessage
	if json.Unmarshal(args, &m) != nil {
		return []Field{{"arguments", string(args)}}
	}
	var out []Field
	dec := json.NewDecoder(strings.NewReader(string(args)))
	_, _ = dec.Token()
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			break
		}
		name, _ := k.(string)
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			break
		}
		var text string
		if json.Unmarshal(v, &text) != nil {
			text = string(v)
		}
		out = append(out, Field{name, text})
	}
	return out
}

func known(f *machine.Effect) []Field {
	var out []Field
	out = append(out, Field{"intended", wall(f.At).Format(stamp)})
	for i := range f.Attempts {
		a := &f.Attempts[i]
		name := "attempt " + strconv.Itoa(a.N)
		line := "sent " + wall(a.At).Format(stamp)
		if a.Started {
			line += fmt.Sprintf(", process %d", a.Identity.PID)
		}
		switch a.End {
		case "":
			line += ", under way"
		case machine.EndUnknown:
			line += ", no end observed: " + a.Cause
		case machine.EndCompleted:
			line += ", ended " + wall(a.Ended).Format(stamp) + " with code " + a.Code
		case machine.EndRejected:
			line += ", turned away: " + a.Code
		case machine.EndHappened, machine.EndNotHappened:
			line += ", " + strings.ReplaceAll(string(a.End), "_", " ")
			if a.Forced {
				line += " (the operator's word)"
			} else {
				line += " (proven)"
			}
		}
		out = append(out, Field{name, line})
		for _, k := range []string{effect.ParamURL, effect.ParamRef, effect.ParamOld, effect.ParamOldUnknown, effect.ParamNew} {
			if v := a.Params[k]; v != "" {
				out = append(out, Field{"  " + k, v})
			}
		}
	}
	if f.State == machine.StateAmbiguous {
		out = append(out, Field{"last durable fact", lastFact(f)})
	}
	if f.Reason != "" && f.By != "" {
		out = append(out, Field{"decided", fmt.Sprintf("%s, %s: %s", who(f.By), wall(f.Decided).Format(stamp), f.Reason)})
	}
	return out
}

const stamp = "2006-01-02 15:04:05"

// lastFact names the crash window that the last durable fact leaves.
func lastFact(f *machine.Effect) string {
	last := f.Last()
	if f.Contract.Sender == machine.SenderCommand && !last.Started {
		return "it was about to start; its process is not on record"
	}
	if f.Contract.Sender == machine.SenderCommand {
		return "its process had started; whether and how far it came is not on record"
	}
	return "it was about to be sent; whether a byte left, and what came of it, is not on record"
}

func looked(f *machine.Effect) []Field {
	var out []Field
	for _, v := range f.Evidence {
		verdict := strings.ReplaceAll(v.Verdict.String(), "_", " ")
		label := fmt.Sprintf("%s %s", v.Authority, wall(v.At).Format("15:04:05"))
		out = append(out, Field{label, fmt.Sprintf("%s: %s", verdict, v.Text)})
	}
	if len(out) == 0 && f.Contract.Probe == nil {
		out = append(out, Field{"nobody looked", "the contract of " + f.Contract.Name + " names no way to look"})
	}
	return out
}

func (e *Engine) quiet(f *machine.Effect) Quiet {
	_, left, missing := effect.Quiet(f, e.o.Mono())
	q := Quiet{Needed: time.Duration(f.Contract.InFlight) * time.Microsecond, Proof: missing}
	if f.Quiescence != nil {
		q.Proven, q.Proof = true, f.Quiescence.Detail
		q.Passed = q.Needed - left
	}
	return q
}

// ApprovalCard tells exactly what will run.
func (e *Engine) ApprovalCard(ctx context.Context, id machine.ApprovalID) (ApprovalCard, error) {
	s, err := e.view(ctx, id.Run())
	if err != nil {
		return ApprovalCard{}, err
	}
	a := s.Approval(id)
	if a == nil {
		return ApprovalCard{}, &ledger.NotFoundError{What: "approval", ID: string(id)}
	}
	f := s.Effect(a.Effect)
	args, err := e.bytes(ctx, f.Args)
	if err != nil {
		return ApprovalCard{}, err
	}
	c := ApprovalCard{
		ID: a.ID, Effect: f.ID, Run: s.Charter.ID, Goal: s.Charter.Goal, State: a.State, Tool: f.Tool, Class: f.Contract.Class,
		Summary: f.Summary, Args: string(args), Text: argText(args), Dir: s.Space.Path, Target: f.Target, Files: f.Files, Network: f.Contract.Network,
		Level: f.Level, Why: a.Why, Drift: a.Drift, Digest: a.Digest, Asked: wall(a.Asked),
		Rule: f.Rule, Standing: a.Grant,
	}
	if a.Expires > 0 {
		c.Expires = wall(a.Expires)
	}
	for _, l := range a.Like {
		if o := s.Effect(l); o != nil {
			c.Like = append(c.Like, fmt.Sprintf("%s %s: %s", o.ID.Short(), o.State, o.Summary))
		}
	}
	if t := e.tools.Get(f.Tool); t != nil && e.space != nil && s.Space.Ready {
		r := &run{e: e, id: s.Charter.ID, state: s}
		if err := r.openSpace(); err == nil {
			if p, err := t.Plan(ctx, r.env(&s), args); err == nil {
				c.Text = p.Text
				if len(a.Like) == 0 {
					c.OffersRule = policy.Offer(p.Subject)
				}
			}
		}
	}
	return c, nil
}

func argText(args []byte) string {
	var b strings.Builder
	for _, f := range argFields(args) {
		fmt.Fprintf(&b, "%s: %s\n", f.Label, f.Value)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// QuestionCard tells what is asked and what may be answered.
func (e *Engine) QuestionCard(ctx context.Context, id machine.QuestionID) (QuestionCard, error) {
	s, err := e.view(ctx, id.Run())
	if err != nil {
		return QuestionCard{}, err
	}
	q := s.Question(id)
	if q == nil {
		return QuestionCard{}, &ledger.NotFoundError{What: "question", ID: string(id)}
	}
	c := QuestionCard{ID: q.ID, Run: s.Charter.ID, Goal: s.Charter.Goal, Sort: q.Sort, Text: q.Text, Choices: q.Choices, Asked: wall(q.Asked)}
	if q.Answered {
		c.Answer, c.By, c.Answered = q.Answer, who(q.By), wall(q.At)
	}
	if q.Sort != machine.SortQuestion {
		c.Fields = []Field{
			{"turns", fmt.Sprintf("%d of %d", s.Turns.Len(), s.MaxTurns)},
			{"spent", fmt.Sprintf("$%.2f", float64(s.Spent)/1e6)},
		}
		if s.AtMost > 0 {
			c.Fields = append(c.Fields, Field{"lost calls", fmt.Sprintf("at most $%.2f more", float64(s.AtMost)/1e6)})
		}
	}
	return c, nil
}

// lookFor is a line with which the operator can see for himself, and how.
func lookFor(f *machine.Effect, args []byte) (line, how string) {
	if last := f.Last(); last != nil && f.Contract.Probe != nil && f.Contract.Probe.Kind == effect.ProbeGitRef {
		return "git ls-remote " + effect.HideCredentials(last.Params[effect.ParamURL]) + " " + last.Params[effect.ParamRef], "run"
	}
	var a struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(args, &a) == nil && a.URL != "" {
		return effect.HideCredentials(a.URL), "open"
	}
	return "", ""
}
