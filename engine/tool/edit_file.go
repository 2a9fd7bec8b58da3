package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"pawl/engine/machine"
)

var editFileSpec = Spec{
	Name:    "edit_file",
	Version: 1,
	Description: "Replace a text in a file of the workspace. old must occur exactly once, white space included, without line numbers; " +
		"set all to true to replace every occurrence. Write line ends as plain new lines: a file with CRLF line ends keeps them. " +
		"If somebody else changed the file meanwhile nothing is written and the answer says so.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "file, relative to the workspace"},
    "old": {"type": "string", "minLength": 1, "description": "text to replace"},
    "new": {"type": "string", "description": "text to put there; empty deletes"},
    "all": {"type": "boolean", "description": "replace every occurrence; default false"}
  },
  "required": ["path", "old", "new"],
  "additionalProperties": false
}`),
}

type editFile struct{}

type editFileArgs struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	All  bool   `json:"all"`
}

func (a editFileArgs) path() string { return a.Path }

func (a editFileArgs) next(old []byte, exists bool) ([]byte, string, error) {
	if !exists {
		return nil, "", &noMatchError{"The file does not exist; write_file creates one."}
	}
	b, n, err := replacement{old: a.Old, new: a.New, all: a.All}.apply(old)
	if err != nil {
		return nil, "", err
	}
	return b, fmt.Sprintf("replaced %s", count(n, "occurrence")), nil
}

func (a editFileArgs) check() error {
	if a.Old == a.New {
		return argErrorf("The old and the new text of edit_file are the same: there is nothing to do.")
	}
	return nil
}

func (*editFile) Spec() Spec { return editFileSpec }

// Plan shows the file's difference.
func (*editFile) Plan(_ context.Context, env Env, args json.RawMessage) (Plan, error) {
	a, err := decode[editFileArgs](args)
	if err != nil {
		return Plan{}, err
	}
	if err := a.check(); err != nil {
		return Plan{}, err
	}
	return planEdit(env, editFileSpec, a, "edit ", args)
}

// Measure reads the hashes of the content before and after.
func (*editFile) Measure(_ context.Context, env Env, _ machine.Contract, args json.RawMessage) (Measured, error) {
	a, err := decode[editFileArgs](args)
	if err != nil {
		return Measured{}, err
	}
	return measureEdit(env, a)
}

// Run edits the file.
func (*editFile) Run(ctx context.Context, env Env, c Call) Outcome {
	a, err := decode[editFileArgs](c.Args)
	if err != nil {
		return badArgs(err)
	}
	return runEdit(ctx, env, a, c)
}
