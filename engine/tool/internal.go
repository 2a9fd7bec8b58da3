package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

// MaxDecision is the size in bytes of one recorded decision: decisions stand in
// every later context in full, so they are small by rule.
const MaxDecision = 500

// maxPlanText is the size in bytes of one line of the plan, for the same reason.
const maxPlanText = 200

var askSpec = Spec{
	Name:    "ask_operator",
	Version: 1,
	Description: "Ask the operator one question and wait for the answer, as long as it takes. Ask when the goal is unclear, when a choice is " +
		"theirs, or when you are stuck; not for permission, which is asked for by itself. choices, if given, are the answers to pick from.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "question": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "the question, with what is needed to answer it"},
    "choices": {"type": "array", "minItems": 2, "maxItems": 9, "uniqueItems": true, "items": {"type": "string", "minLength": 1, "maxLength": 200}, "description": "answers to pick from"}
  },
  "required": ["question"],
  "additionalProperties": false
}`),
}

var planSpec = Spec{
	Name:    "update_plan",
	Version: 1,
	Description: "Replace the plan, which the operator sees and which stays in your context. Keep it short, and bring it up to date when a " +
		"step begins or ends.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "items": {
      "type": "array", "maxItems": 50, "description": "the whole plan, in order",
      "items": {
        "type": "object",
        "properties": {
          "text": {"type": "string", "minLength": 1, "maxLength": 200, "description": "one step"},
          "state": {"enum": ["todo", "doing", "done"]}
        },
        "required": ["text", "state"],
        "additionalProperties": false
      }
    }
  },
  "required": ["items"],
  "additionalProperties": false
}`),
}

var decisionSpec = Spec{
	Name:    "record_decision",
	Version: 1,
	Description: "Keep one decision or finding that later work rests on, in at most 500 bytes. It stays in your context word for word when " +
		"older turns no longer fit, and the operator sees it.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "text": {"type": "string", "minLength": 1, "maxLength": 500, "description": "the decision and its reason"}
  },
  "required": ["text"],
  "additionalProperties": false
}`),
}

// Internal reports whether a tool touches the ledger and nothing else: the
// engine itself carries it out. finish is not among them, since it may run a
// check.
func Internal(name string) bool {
	switch name {
	case askSpec.Name, planSpec.Name, decisionSpec.Name, noteSpec.Name:
		return true
	}
	return false
}

// Ask is a question of the model to the operator.
type Ask struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices"`
}

// ParseAsk reads the arguments of ask_operator.
func ParseAsk(args json.RawMessage) (Ask, error) {
	a, err := decode[Ask](args)
	if err == nil && strings.TrimSpace(a.Question) == "" {
		err = argErrorf("The question of ask_operator is empty.")
	}
	return a, err
}

// ParsePlan reads the arguments of update_plan.
func ParsePlan(args json.RawMessage) ([]machine.PlanItem, error) {
	p, err := decode[struct {
		Items []machine.PlanItem `json:"items"`
	}](args)
	if err != nil {
		return nil, err
	}
	for i, it := range p.Items {
		switch {
		case strings.TrimSpace(it.Text) == "":
			return nil, argErrorf("Entry %d of the plan has no text.", i+1)
		case len(it.Text) > maxPlanText:
			return nil, argErrorf("Entry %d of the plan is %d bytes long; at most %d are kept. Say it shorter.", i+1, len(it.Text), maxPlanText)
		}
	}
	return p.Items, nil
}

// ParseDecision reads the arguments of record_decision.
func ParseDecision(args json.RawMessage) (string, error) {
	d, err := decode[struct {
		Text string `json:"text"`
	}](args)
	switch {
	case err != nil:
		return "", err
	case strings.TrimSpace(d.Text) == "":
		return "", argErrorf("The text of record_decision is empty.")
	case len(d.Text) > MaxDecision:
		return "", argErrorf("The decision is %d bytes long; at most %d are kept. Say it shorter, or record two.", len(d.Text), MaxDecision)
	}
	return d.Text, nil
}

// internalPlan is the plan of what touches the ledger only.
func internalPlan(s Spec) Plan {
	return Plan{
		Contract: readContract(s.Name, s.Version),
		Summary:  s.Name,
		Subject:  policy.Subject{Tool: s.Name, Class: machine.ClassRead, Internal: true},
	}
}

// internalTool is a tool that the engine carries out by events of its own.
type internalTool struct {
	spec  Spec
	check func(json.RawMessage) (summary, text string, err error)
	// done words the answer once the engine has committed; nil if the answer is
	// not the tool's to give.
	done func(json.RawMessage) string
}

func (t *internalTool) Spec() Spec { return t.spec }

// Plan checks what the schema cannot say.
func (t *internalTool) Plan(_ context.Context, _ Env, args json.RawMessage) (Plan, error) {
	summary, text, err := t.check(args)
	if err != nil {
		return Plan{}, err
	}
	p := internalPlan(t.spec)
	p.Summary, p.Text, p.Args = summary, text, args
	return p, nil
}

// Measure has nothing to record.
func (*internalTool) Measure(context.Context, Env, machine.Contract, json.RawMessage) (Measured, error) {
	return Measured{}, nil
}

// Run words the answer that goes with the engine's own event. The answer to a
// question is the operator's: there it proves that nothing was done.
func (t *internalTool) Run(_ context.Context, _ Env, c Call) Outcome {
	if _, _, err := t.check(c.Args); err != nil {
		return badArgs(err)
	}
	if t.done == nil {
		return notStarted("The question waits for the operator.")
	}
	return done(true, "0", t.done(c.Args))
}

func checkAsk(args json.RawMessage) (string, string, error) {
	a, err := ParseAsk(args)
	text := a.Question
	for i, c := range a.Choices {
		text += fmt.Sprintf("\n%d. %s", i+1, c)
	}
	return "ask: " + oneLine(a.Question, 110), text, err
}

func checkPlan(args json.RawMessage) (string, string, error) {
	items, err := ParsePlan(args)
	var b strings.Builder
	for _, it := range items {
		fmt.Fprintf(&b, "%-5s %s\n", it.State, it.Text)
	}
	return "plan: " + planCount(items), b.String(), err
}

func planCount(items []machine.PlanItem) string {
	ready := 0
	for _, it := range items {
		if it.State == "done" {
			ready++
		}
	}
	return fmt.Sprintf("%d of %s done", ready, count(len(items), "step"))
}

func planDone(args json.RawMessage) string {
	items, err := ParsePlan(args)
	if err != nil {
		return err.Error()
	}
	return "The plan is updated: " + planCount(items) + ".\n"
}

func checkDecision(args json.RawMessage) (string, string, error) {
	text, err := ParseDecision(args)
	return "decision: " + oneLine(text, 110), text, err
}

func decisionDone(json.RawMessage) string { return "The decision is recorded.\n" }
