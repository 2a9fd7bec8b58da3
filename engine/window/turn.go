package window

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"pawl/engine/machine"
)

// CallID is our own id of a call: unique in a run and legal for every
// provider, whatever the provider called it. call counts from 0.
func CallID(turn, call int) string { return fmt.Sprintf("c%d_%d", turn, call+1) }

// turnView is one answered turn as it stands in a request.
type turnView struct {
	msgs   []Message
	left   []LeftOut
	tokens int
}

// viewTurn renders turn n: the answer, one result for each call, and what the
// operator and the workspace said before the next turn.
func viewTurn(s *machine.State, n int, notes []string, src Source, limit int) (turnView, error) {
	var v turnView
	t := s.Turn(n)
	text, err := legibleText(t.Text, src)
	if err != nil {
		return v, err
	}
	answer := Message{Role: RoleAssistant, Text: text}
	var results []Message
	first := map[machine.EffectID]string{}
	for i := range t.Calls {
		c := &t.Calls[i]
		id := CallID(n, i)
		args, err := callArgs(c.Args, src)
		if err != nil {
			return v, err
		}
		answer.Calls = append(answer.Calls, Call{ID: id, Name: legalName(c.Tool), Args: args})
		if was, ok := first[c.Effect]; ok && c.Effect != "" {
			results = append(results, Message{Role: RoleTool, CallID: id, Text: "This is the same call as " + was + ", in the same answer. It was run once; see the result of " + was + "."})
			continue
		}
		first[c.Effect] = id
		e := s.Effect(c.Effect)
		if e != nil && e.Turn != n {
			e = nil // an id that another turn's effect got: this call has none
		}
		res, left, err := resultText(s, e, src, limit)
		if err != nil {
			return v, err
		}
		if left != nil {
			left.What = fmt.Sprintf("output of %s (%s)", id, legalName(c.Tool))
			v.left = append(v.left, *left)
		}
		results = append(results, Message{Role: RoleTool, CallID: id, Text: res})
	}
	if answer.Text == "" && len(answer.Calls) == 0 {
		answer.Text = "(an empty answer)"
	}
	v.msgs = append(append(v.msgs, answer), results...)
	if len(t.Calls) == 0 {
		notes = append([]string{nudge(t.Stop)}, notes...)
	}
	if len(notes) > 0 {
		v.msgs = append(v.msgs, Message{Role: RoleUser, Text: strings.Join(notes, "\n\n")})
	}
	for i := range v.msgs {
		v.tokens += MessageTokens(&v.msgs[i])
	}
	return v, nil
}

// nudge answers an answer without a call.
func nudge(stop machine.StopReason) string {
	if stop == machine.StopLength {
		return "Your answer was cut off at the length limit and held no call. Go on in smaller steps, each with a tool call."
	}
	return "Your answer held no tool call, so nothing was done. Go on with a tool call. If the task is done, call finish; if you need the operator, call ask_operator."
}

// callArgs gives a call's arguments as the JSON object that providers demand.
func callArgs(t machine.Text, src Source) (json.RawMessage, error) {
	b, err := whole(t, src)
	if err != nil {
		return nil, err
	}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '{' && json.Valid(b) {
		return json.RawMessage(clean(string(b))), nil
	}
	out, err := json.Marshal(map[string]string{"invalid_arguments": clean(string(b))})
	if err != nil {
		return nil, fmt.Errorf("window: arguments: %w", err)
	}
	return out, nil
}

// legalName makes a tool's name one that every provider accepts.
func legalName(s string) string {
	const most = 64
	ok := len(s) > 0 && len(s) <= most
	for i := 0; ok && i < len(s); i++ {
		ok = legalByte(s[i])
	}
	if ok {
		return s
	}
	if s == "" {
		return "unnamed"
	}
	b := []byte(s[:min(len(s), most)])
	for i := range b {
		if !legalByte(b[i]) {
			b[i] = '_'
		}
	}
	return string(b)
}

func legalByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}
