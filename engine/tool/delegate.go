package tool

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"pawl/engine/machine"
)

var delegateSpec = Spec{
	Name:    machine.ToolDelegate,
	Version: 1,
	Description: "Give a part of the task to another run, which works at the same time in a work tree of its own that starts from your files as they " +
		"are now. It has your authority at most, and sees nothing of this conversation: say in goal all it must know. Its work comes into your " +
		"branch only after a review. Go on with other work, then call collect. The result names the run.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "goal": {"type": "string", "minLength": 1, "maxLength": 8000, "description": "the part of the task, complete in itself"},
    "check": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "command line that must pass before that run may finish"},
    "paths": {"type": "array", "minItems": 1, "maxItems": 20, "items": {"type": "string", "minLength": 1, "maxLength": 300}, "description": "folders or files that it may change; all of them if left out"},
    "budget_usd": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000000, "description": "set aside from your budget"},
    "max_turns": {"type": "integer", "minimum": 1, "maximum": 1000}
  },
  "required": ["goal"],
  "additionalProperties": false
}`),
}

var collectSpec = Spec{
	Name:    machine.ToolCollect,
	Version: 1,
	Description: "Wait until every run that you delegated to has ended and its work is reviewed, and read their reports. What a run says of itself " +
		"is a claim; the receipts beside it come from the record.",
	Schema: schema(`{"type": "object", "properties": {}, "additionalProperties": false}`),
}

var tellChildSpec = Spec{
	Name:        "tell_child",
	Version:     1,
	Description: "Send a word to a run that you delegated to. It reads it before its next step, once.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "child": {"type": "string", "minLength": 1, "maxLength": 40, "description": "the run, as delegate named it"},
    "text": {"type": "string", "minLength": 1, "maxLength": 2000}
  },
  "required": ["child", "text"],
  "additionalProperties": false
}`),
}

var tellParentSpec = Spec{
	Name:        "tell_parent",
	Version:     1,
	Description: "Send a word to the run that delegated this task to you. It reads it before its next step, once.",
	Schema: schema(`{
  "type": "object",
  "properties": {"text": {"type": "string", "minLength": 1, "maxLength": 2000}},
  "required": ["text"],
  "additionalProperties": false
}`),
}

// Delegate is a part of the task for another run.
type Delegate struct {
	Goal      string   `json:"goal"`
	Check     string   `json:"check"`
	Paths     []string `json:"paths"`
	BudgetUSD float64  `json:"budget_usd"`
	MaxTurns  int      `json:"max_turns"`
}

// ParseDelegate reads the arguments of delegate. Paths come back clean, relative
// to the work tree.
func ParseDelegate(args json.RawMessage) (Delegate, error) {
	d, err := decode[Delegate](args)
	if err != nil {
		return d, err
	}
	if strings.TrimSpace(d.Goal) == "" {
		return d, argErrorf("The goal of delegate is empty: say what that run is to do.")
	}
	for i, p := range d.Paths {
		c := path.Clean(strings.ReplaceAll(p, `\`, "/"))
		if path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../") {
			return d, argErrorf("The path %s lies outside the work tree. Name folders or files in it, relative to its top.", quoteShort(p))
		}
		d.Paths[i] = c
	}
	return d, nil
}

// Word is a message between runs.
type Word struct {
	Child string `json:"child"`
	Text  string `json:"text"`
}

// ParseWord reads the arguments of tell_child and tell_parent.
func ParseWord(args json.RawMessage) (Word, error) {
	w, err := decode[Word](args)
	if err == nil && strings.TrimSpace(w.Text) == "" {
		err = argErrorf("The text is empty.")
	}
	return w, err
}

// Delegates reports whether a tool acts on other runs of the same tree: the
// engine carries it out.
func Delegates(name string) bool {
	switch name {
	case delegateSpec.Name, collectSpec.Name, tellChildSpec.Name, tellParentSpec.Name:
		return true
	}
	return false
}

func checkDelegate(args json.RawMessage) (string, string, error) {
	d, err := ParseDelegate(args)
	text := d.Goal
	if d.Check != "" {
		text += "\ncheck: " + d.Check
	}
	if len(d.Paths) > 0 {
		text += "\npaths: " + strings.Join(d.Paths, ", ")
	}
	if d.BudgetUSD > 0 {
		text += fmt.Sprintf("\nbudget: $%.2f", d.BudgetUSD)
	}
	return "delegate: " + oneLine(d.Goal, 110), text, err
}

func checkCollect(json.RawMessage) (string, string, error) {
	return "collect what was delegated", "", nil
}

func checkWord(args json.RawMessage) (string, string, error) {
	w, err := ParseWord(args)
	to := "parent"
	if w.Child != "" {
		to = w.Child
	}
	return "tell " + to + ": " + oneLine(w.Text, 100), w.Text, err
}
