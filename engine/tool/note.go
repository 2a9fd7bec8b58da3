package tool

import (
	"encoding/json"
	"strings"
)

// MaxNote is the size in bytes of a handoff note: it opens the next window.
const MaxNote = 2000

var noteSpec = Spec{
	Name:    "handoff_note",
	Version: 1,
	Description: "Keep a note, in at most 2000 bytes, for whoever goes on with this task when the conversation no longer fits and a new window " +
		"opens: where you are, what you tried, what you would do next. A new note replaces the old one. It is shown as your claim, not as fact.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "text": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "the note"}
  },
  "required": ["text"],
  "additionalProperties": false
}`),
}

// ParseNote reads the arguments of handoff_note.
func ParseNote(args json.RawMessage) (string, error) {
	d, err := decode[struct {
		Text string `json:"text"`
	}](args)
	switch {
	case err != nil:
		return "", err
	case strings.TrimSpace(d.Text) == "":
		return "", argErrorf("The text of handoff_note is empty.")
	case len(d.Text) > MaxNote:
		return "", argErrorf("The note is %d bytes long; at most %d are kept. Say it shorter.", len(d.Text), MaxNote)
	}
	return d.Text, nil
}

func checkNote(args json.RawMessage) (string, string, error) {
	text, err := ParseNote(args)
	return "note: " + oneLine(text, 110), text, err
}

func noteDone(json.RawMessage) string { return "The note is kept.\n" }
