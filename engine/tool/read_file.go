package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"pawl/engine/machine"
)

const (
	maxFile      = 32 << 20 // bytes of a file that is read in one piece
	defaultLines = 2000     // lines of one read_file
	maxLines     = 20000
	maxLine      = 4000 // bytes of one line that are shown
)

var readFileSpec = Spec{
	Name:    "read_file",
	Version: 1,
	Description: "Read a text file of the workspace. Lines are shown with their numbers and a tab before them; neither is part of the file. " +
		"offset is the first line (from 1) and limit the number of lines (default 2000). The first line of the answer gives size, line ends " +
		"and what else an edit must know. Binary files are described by size and hash.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "file, relative to the workspace"},
    "offset": {"type": "integer", "minimum": 1, "description": "first line; default 1"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 20000, "description": "number of lines; default 2000"}
  },
  "required": ["path"],
  "additionalProperties": false
}`),
}

type readFile struct{}

type readFileArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (*readFile) Spec() Spec { return readFileSpec }

// Plan says which file will be read.
func (*readFile) Plan(_ context.Context, env Env, args json.RawMessage) (Plan, error) {
	a, err := decode[readFileArgs](args)
	if err != nil {
		return Plan{}, err
	}
	return planRead(env, readFileSpec, a.Path, "read ", args)
}

// Measure has nothing to record for a look.
func (*readFile) Measure(context.Context, Env, machine.Contract, json.RawMessage) (Measured, error) {
	return Measured{}, nil
}

// Run reads the file.
func (*readFile) Run(_ context.Context, env Env, c Call) Outcome {
	a, err := decode[readFileArgs](c.Args)
	if err != nil {
		return badArgs(err)
	}
	pl, refused := still(env, a.Path, c.Contract)
	if refused != nil {
		return *refused
	}
	b, st, err := pl.readAll(maxFile)
	if err != nil {
		return readFault(pl, st, err)
	}
	k := inspect(b)
	if !k.text() {
		return done(true, "0", describeBytes(pl.show(), b, k)+"\n")
	}
	if a.Offset == 0 {
		a.Offset = 1
	}
	if a.Limit == 0 {
		a.Limit = defaultLines
	}
	text, ok := showLines(pl.show(), b, k, a.Offset, min(a.Limit, maxLines))
	if !ok {
		return done(false, CodeNotFound, text)
	}
	return done(true, "0", text)
}

// showLines renders a window of a text with line numbers.
func showLines(name string, b []byte, k textKind, offset, limit int) (string, bool) {
	lines := lineSplit(string(b))
	head := strings.Join(append([]string{
		name + ": " + count(len(lines), "line"), count(len(b), "byte"),
	}, k.notes()...), ", ")
	if len(lines) == 0 {
		return name + " is empty.\n", true
	}
	if offset > len(lines) {
		return fmt.Sprintf("%s has %s; there is no line %d.", name, count(len(lines), "line"), offset), false
	}
	last := min(offset-1+limit, len(lines))
	markCR := k.cr > 0 || (k.crlf > 0 && k.lf > 0)
	var out strings.Builder
	out.WriteString(head + "\n")
	for i := offset - 1; i < last; i++ {
		line := strings.TrimSuffix(lines[i], "\n")
		if i == 0 {
			line = strings.TrimPrefix(line, bom)
		}
		if markCR {
			line = strings.ReplaceAll(line, "\r", "␍")
		} else {
			line = strings.TrimSuffix(line, "\r")
		}
		fmt.Fprintf(&out, "%6d\t%s\n", i+1, cutLine(line))
	}
	if offset > 1 || last < len(lines) {
		fmt.Fprintf(&out, "[lines %d to %d of %d", offset, last, len(lines))
		if last < len(lines) {
			fmt.Fprintf(&out, "; go on with offset %d", last+1)
		}
		out.WriteString("]\n")
	}
	return out.String(), true
}

// cutLine shortens a very long line and says so.
func cutLine(s string) string {
	if len(s) <= maxLine {
		return s
	}
	cut := maxLine
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return fmt.Sprintf("%s [%s of this line left out]", s[:cut], count(len(s)-cut, "byte"))
}
