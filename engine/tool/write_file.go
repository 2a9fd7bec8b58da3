package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/policy"
	"pawl/engine/workspace"
)

var writeFileSpec = Spec{
	Name:    "write_file",
	Version: 1,
	Description: "Write a whole file of the workspace: content becomes all of it, byte for byte; directories are made as needed. " +
		"To change a part of a file, use edit_file.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "file, relative to the workspace"},
    "content": {"type": "string", "description": "the whole new content"}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`),
}

// edit is one wish to change a file: given the bytes on disk, what they become.
type edit interface {
	// path as the model gave it.
	path() string
	// next returns the new bytes and one line that says what changed. A
	// *noMatchError means that nothing is to be written.
	next(old []byte, exists bool) (new []byte, note string, err error)
}

// current is what lies at a place before an edit.
type current struct {
	bytes  []byte
	exists bool
	mode   fs.FileMode
	digest machine.Digest // zero if it does not exist
}

// look reads what lies at a place.
func look(pl place) (current, error) {
	b, st, err := pl.readAll(maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return current{mode: 0o644}, nil
	}
	if err != nil {
		return current{}, &lookError{readFault(pl, st, err)}
	}
	return current{bytes: b, exists: true, mode: st.Mode().Perm(), digest: machine.DigestOf(b)}, nil
}

// lookError carries the outcome that tells why a file could not be read.
type lookError struct{ outcome Outcome }

func (e *lookError) Error() string { return string(e.outcome.Output.Bytes) }

// writable finds the place that an edit may write to: inside the workspace and
// not in git's own directory, links followed.
func writable(env Env, p string) (place, error) {
	pl, err := locate(env, p)
	if err != nil {
		return place{}, err
	}
	switch {
	case !pl.inside:
		return place{}, argErrorf("The path %s leads to %s, outside the workspace. Files are written inside the workspace only.",
			quoteShort(p), quoteName(pl.abs))
	case pl.rel == ".":
		return place{}, argErrorf("The path %s is the workspace itself, not a file.", quoteShort(p))
	case inGit(pl.rel):
		return place{}, argErrorf("The path %s lies in git's own directory, which is written by git alone. Use a git command.", quoteShort(p))
	case strings.HasSuffix(p, "/"):
		return place{}, argErrorf("The path %s ends with a slash: it names a directory, not a file.", quoteShort(p))
	}
	return pl, nil
}

// editContract is what an edit inside the workspace promises: it is recovered
// by comparing what is on disk with the hashes recorded before.
func editContract(s Spec, pl place) machine.Contract {
	return machine.Contract{
		Name: s.Name, Version: s.Version, Class: machine.ClassWorkspace, Sender: machine.SenderLocal, Writes: true,
		BeforeEffect: []string{CodeNotStarted},
		Params:       map[string]string{paramPath: pl.abs},
	}
}

// planEdit plans a change of a file. Whether the change fits the file is found
// out when it runs, since an earlier call of the same response may prepare it.
func planEdit(env Env, s Spec, e edit, verb string, args json.RawMessage) (Plan, error) {
	pl, err := writable(env, e.path())
	if err != nil {
		return Plan{}, err
	}
	text := ""
	cur, err := look(pl)
	if err != nil {
		text = err.Error()
	} else {
		if !cur.exists && verb == "write " {
			verb = "create "
		}
		text = previewEdit(pl, e, cur)
	}
	return Plan{
		Contract: editContract(s, pl),
		Summary:  verb + pl.show(),
		Target:   pl.target(),
		Text:     text,
		Subject: policy.Subject{
			Tool: s.Name, Class: machine.ClassWorkspace, Sealed: true, Writes: []policy.Access{pl.access()},
		},
		Args: args,
	}, nil
}

// previewEdit shows the hashes and the difference that an edit would make now.
func previewEdit(pl place, e edit, cur current) string {
	next, _, err := e.next(cur.bytes, cur.exists)
	if err != nil {
		return "As the file stands now: " + err.Error()
	}
	was := "does not exist"
	if cur.exists {
		was = fmt.Sprintf("%s, sha256 %s", count(len(cur.bytes), "byte"), cur.digest)
	}
	head := fmt.Sprintf("before: %s\nafter:  %s, sha256 %s\n\n", was, count(len(next), "byte"), machine.DigestOf(next))
	return head + showDiff(pl, cur, next)
}

// showDiff is the difference of two contents, or what they are if they are no text.
func showDiff(pl place, cur current, next []byte) string {
	ok, nk := inspect(cur.bytes), inspect(next)
	if !ok.text() || !nk.text() {
		out := ""
		if cur.exists && !ok.text() {
			out += "before: " + describeBytes(pl.show(), cur.bytes, ok) + "\n"
		}
		if !nk.text() {
			out += "after: " + describeBytes(pl.show(), next, nk) + "\n"
		}
		return out
	}
	return unifiedDiff(pl.rel, string(cur.bytes), string(next), cur.exists)
}

// measureEdit reads the hashes before and after. An edit that does not fit the
// file measures the same hash twice; Run then says why.
//
// When an interrupted edit is repeated, the hashes of its first dispatch hold:
// the engine hands them on and does not measure again.
func measureEdit(env Env, e edit) (Measured, error) {
	pl, err := writable(env, e.path())
	if err != nil {
		return Measured{}, err
	}
	cur, err := look(pl)
	var le *lookError
	if errors.As(err, &le) {
		return Measured{}, nil
	}
	if err != nil {
		return Measured{}, err
	}
	next, _, err := e.next(cur.bytes, cur.exists)
	if err != nil {
		return Measured{Old: cur.digest, New: cur.digest}, nil
	}
	return Measured{Old: cur.digest, New: machine.DigestOf(next)}, nil
}

// runEdit writes, if the file on disk is what was measured, and adopts what is
// already written.
func runEdit(ctx context.Context, env Env, e edit, c Call) Outcome {
	pl, refused := still(env, e.path(), c.Contract)
	if refused != nil {
		return *refused
	}
	if _, err := writable(env, e.path()); err != nil {
		return done(false, CodeMoved, err.Error())
	}
	cur, err := look(pl)
	var le *lookError
	if errors.As(err, &le) {
		return le.outcome
	}
	if err != nil {
		return done(false, CodeUnreadable, plain(err))
	}
	m := c.Measured
	if cur.exists && cur.digest == m.New && m.Old != m.New {
		// Written again all the same: an interrupted exchange is brought to its end.
		return writeEdit(ctx, env, pl, cur, cur.bytes, "already has the new content", c)
	}
	if cur.digest != m.Old {
		return drifted(pl, m.Old, cur.digest)
	}
	next, note, err := e.next(cur.bytes, cur.exists)
	var nm *noMatchError
	if errors.As(err, &nm) {
		code := CodeNoMatch
		if !cur.exists {
			code = CodeNotFound
		}
		return done(false, code, pl.show()+": "+nm.text)
	}
	if err != nil {
		return done(false, CodeUnreadable, plain(err))
	}
	if got := machine.DigestOf(next); got != m.New {
		return notStarted(fmt.Sprintf("%s was not written: what would be written now is not what was recorded before.", pl.show()))
	}
	return writeEdit(ctx, env, pl, cur, next, note, c)
}

func writeEdit(ctx context.Context, env Env, pl place, cur current, next []byte, note string, c Call) Outcome {
	if c.Before != nil {
		c.Before()
	}
	_, err := env.Manager.Write(ctx, env.Space, pl.abs, c.Measured.Old, c.Measured.New, next, cur.mode)
	if c.After != nil {
		c.After()
	}
	var drift *workspace.DriftError
	switch {
	case errors.As(err, &drift):
		return drifted(pl, c.Measured.Old, machine.Digest(drift.Disk))
	case err != nil:
		return afterFailedWrite(pl, c.Measured, err)
	}
	diff := showDiff(pl, cur, next)
	added, removed := diffStat(diff)
	text := fmt.Sprintf("%s: %s (+%d -%d lines)\n", pl.show(), note, added, removed)
	if cur.exists {
		text += diff
	}
	o := done(true, "0", text)
	o.Result.Changed = true
	return o
}

// afterFailedWrite looks at the disk, which alone tells whether a failed write
// left the old content or the new one.
func afterFailedWrite(pl place, m Measured, cause error) Outcome {
	cur, err := look(pl)
	switch {
	case err != nil:
		return Outcome{Cause: fmt.Sprintf("writing %s ended with %q and the file cannot be read back: %v", pl.show(), plain(cause), err)}
	case cur.digest == m.New:
		o := done(true, "0", fmt.Sprintf("%s has the new content, although writing it ended with %q.\n", pl.show(), plain(cause)))
		o.Result.Changed = true
		return o
	case cur.digest == m.Old:
		return done(false, CodeUnreadable, fmt.Sprintf("%s could not be written: %v. It is as it was before.", pl.show(), plain(cause)))
	}
	return drifted(pl, m.Old, cur.digest)
}

// drifted words a file that somebody else has changed meanwhile.
func drifted(pl place, known, disk machine.Digest) Outcome {
	was, is := "did not exist", "does not exist"
	if !known.IsZero() {
		was = "had sha256 " + known.Short()
	}
	if !disk.IsZero() {
		is = "has sha256 " + disk.Short()
	}
	return done(false, CodeDrift, fmt.Sprintf(
		"Nothing was written: somebody else changed %s meanwhile. It %s when this edit was prepared and now %s. Read it again before you decide what to do.",
		pl.show(), was, is))
}

type writeFile struct{}

type writeFileArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (a writeFileArgs) path() string { return a.Path }

func (a writeFileArgs) next(_ []byte, exists bool) ([]byte, string, error) {
	if exists {
		return []byte(a.Content), "written", nil
	}
	return []byte(a.Content), "created", nil
}

func (*writeFile) Spec() Spec { return writeFileSpec }

// Plan shows the file's difference.
func (*writeFile) Plan(_ context.Context, env Env, args json.RawMessage) (Plan, error) {
	a, err := decode[writeFileArgs](args)
	if err != nil {
		return Plan{}, err
	}
	return planEdit(env, writeFileSpec, a, "write ", args)
}

// Measure reads the hashes of the content before and after.
func (*writeFile) Measure(_ context.Context, env Env, _ machine.Contract, args json.RawMessage) (Measured, error) {
	a, err := decode[writeFileArgs](args)
	if err != nil {
		return Measured{}, err
	}
	return measureEdit(env, a)
}

// Run writes the file.
func (*writeFile) Run(ctx context.Context, env Env, c Call) Outcome {
	a, err := decode[writeFileArgs](c.Args)
	if err != nil {
		return badArgs(err)
	}
	return runEdit(ctx, env, a, c)
}
