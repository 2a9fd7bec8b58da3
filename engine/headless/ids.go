package headless

import (
	"fmt"
	"regexp"
	"strings"

	"pawl/engine/machine"
)

// idKind is the sort of thing that an id names.
type idKind string

const (
	idNone     idKind = ""
	idRun      idKind = "run"
	idEffect   idKind = "effect"
	idApproval idKind = "approval"
	idQuestion idKind = "question"
)

var idShape = regexp.MustCompile(`^r[0-9a-z]+(\.[eaq][1-9][0-9]*)?$`)

// kindOf tells what an id names by its shape alone.
func kindOf(id string) idKind {
	if !idShape.MatchString(id) {
		return idNone
	}
	_, short, ok := strings.Cut(id, ".")
	if !ok {
		return idRun
	}
	switch short[0] {
	case 'e':
		return idEffect
	case 'a':
		return idApproval
	default:
		return idQuestion
	}
}

// deciders name the commands that take each kind of id.
var deciders = map[idKind]string{
	idRun: "`pawl show`, `pawl log`, `pawl resume`", idEffect: "`pawl settle`", idApproval: "`pawl approve` and `pawl deny`", idQuestion: "`pawl answer`",
}

// want refuses an id of another kind than the command takes.
func want(kind idKind, id string) error {
	have := kindOf(id)
	if have == kind {
		return nil
	}
	article := map[idKind]string{idRun: "a run", idEffect: "an effect", idApproval: "an approval", idQuestion: "a question"}
	example := map[idKind]string{idRun: "r7k2m9x", idEffect: "r7k2m9x.e3", idApproval: "r7k2m9x.a1", idQuestion: "r7k2m9x.q1"}
	if have == idNone {
		return &Problem{
			What: fmt.Sprintf("there is no %s %q", kind, id), Why: fmt.Sprintf("the id of %s looks like %s", article[kind], example[kind]),
			Next: "`pawl inbox` and `pawl list` show the ids there are",
		}
	}
	return &Problem{
		What: fmt.Sprintf("%s is %s, and this command wants %s", id, article[have], article[kind]),
		Why:  fmt.Sprintf("the id of %s looks like %s", article[kind], example[kind]),
		Next: fmt.Sprintf("for %s use %s", article[have], deciders[have]),
	}
}

// wantRun reads the id of a run.
func wantRun(id string) (machine.RunID, error) { return machine.RunID(id), want(idRun, id) }
