package engine

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pawl/engine/machine"
	"pawl/engine/model/scripted"
	"pawl/engine/policy"
	"pawl/engine/tool"
	"pawl/engine/window"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// NewRun is what the operator asks for.
type NewRun struct {
	Goal        string
	Repo        string // directory; "" is the current one
	InPlace     bool
	WithChanges bool   // bring the checkout's uncommitted changes along
	Model       string // provider/name
	Script      string // path of a script for the scripted model; then Model may be ""
	Vars        map[string]string
	Check       string // acceptance command line
	Allow       []string
	MaxTokens   int64
	MaxWall     time.Duration
	BudgetUSD   float64
	MaxTurns    int
	Context     int // tokens that one request may take; 0: as many as the model takes
}

// MinContext is the least context that a run may be given, in tokens: the
// standing instructions and the tools alone take about two thirds of it.
const MinContext = 4500

// Create writes a run into the ledger. Nothing of it moves before it is driven.
func (e *Engine) Create(ctx context.Context, n NewRun) (machine.RunID, error) {
	c, blobs, err := e.charter(ctx, n)
	if err != nil {
		return "", err
	}
	b := batch{bodies: []machine.Body{machine.RunCreated{Charter: c}}, blobs: blobs, actor: e.operator}
	if _, err := e.commit(ctx, ledger.Full, machine.State{}, b); err != nil {
		return "", err
	}
	e.broadcast()
	return c.ID, nil
}

func (e *Engine) charter(ctx context.Context, n NewRun) (machine.Charter, []ledger.Blob, error) {
	var c machine.Charter
	goal := strings.TrimSpace(n.Goal)
	if goal == "" {
		return c, nil, errors.New("a run needs a goal: say in a sentence what is to be done")
	}
	if len(goal) > 16<<10 {
		return c, nil, fmt.Errorf("the goal is %d bytes long, at most %d fit: put details into a file of the repository and name it", len(goal), 16<<10)
	}
	repo, err := e.repo(ctx, n)
	if err != nil {
		return c, nil, err
	}
	for _, rule := range n.Allow {
		if _, err := policy.ParseRule(rule); err != nil {
			return c, nil, err
		}
	}
	if n.Context != 0 && n.Context < MinContext {
		return c, nil, fmt.Errorf("a context of %d tokens is too small to work in: give at least %d, or leave it to the model", n.Context, MinContext)
	}
	if n.BudgetUSD < 0 || n.MaxTurns < 0 || n.MaxTokens < 0 || n.MaxWall < 0 {
		return c, nil, errors.New("a budget and a number of turns are not negative: leave the flag away for no limit")
	}
	c = machine.Charter{
		Goal: goal, Check: strings.TrimSpace(n.Check), Repo: repo, InPlace: n.InPlace, Changes: n.WithChanges, Model: n.Model, Vars: n.Vars,
		MaxTokens: n.MaxTokens, MaxWall: n.MaxWall.Microseconds(),
		Allow: n.Allow, Budget: int64(n.BudgetUSD * 1e6), MaxTurns: n.MaxTurns, Context: n.Context, Prompt: window.PromptVersion,
	}
	var blobs []ledger.Blob
	if blob, err := projectPolicy(repo); err != nil {
		return c, nil, err
	} else if blob != nil {
		blobs, c.Policy = append(blobs, *blob), machine.Digest(blob.Hash)
	}
	var script []byte
	if n.Script != "" {
		if script, err = os.ReadFile(n.Script); err != nil {
			return c, nil, fmt.Errorf("read the script: %w", err)
		}
		if _, err := scripted.Parse(filepath.Base(n.Script), script); err != nil {
			return c, nil, err
		}
		blob := ledger.NewBlob(script)
		blobs, c.Script = append(blobs, blob), machine.Digest(blob.Hash)
		if c.Model == "" {
			c.Model = "script/" + strings.TrimSuffix(filepath.Base(n.Script), filepath.Ext(n.Script))
		}
	}
	if c.Model == "" {
		return c, nil, errors.New("no model is named: give --model PROVIDER/MODEL (say openai/gpt-5), or --script FILE to play a script without a key")
	}
	_, _, limits, err := e.o.Models.Resolve(ctx, c.Model, script)
	if err != nil {
		return c, nil, err
	}
	if c.Budget > 0 && !limits.Priced && script == nil {
		return c, nil, fmt.Errorf("a budget in dollars cannot be kept: the price of %s is not known here; limit the run with --budget-tokens, --max-turns or --max-wall instead", c.Model)
	}
	id, err := e.newID()
	if err != nil {
		return c, nil, err
	}
	c.ID, c.Root = id, id
	return c, blobs, nil
}

func (e *Engine) repo(ctx context.Context, n NewRun) (string, error) {
	dir := n.Repo
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", dir, err)
	}
	st, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("the repository %s cannot be used: %w; name an existing folder with --repo", dir, err)
	}
	if !st.IsDir() {
		return "", fmt.Errorf("the repository %s is a file: name its folder with --repo", dir)
	}
	if state := e.o.StateDir; state != "" && n.InPlace && within(state, abs) {
		return "", fmt.Errorf("pawl keeps its ledger and snapshots in %s, inside the folder that the run would work in: name a ledger elsewhere with --ledger, or leave --in-place away", state)
	}
	if e.space != nil {
		if err := e.space.Check(ctx, workspace.Request{Repo: abs, InPlace: n.InPlace, WithChanges: n.WithChanges}); err != nil {
			return "", err
		}
	}
	return abs, nil
}

// within reports whether path lies in dir.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// newID makes a short, typeable run id: "r" and six characters of 32.
func (e *Engine) newID() (machine.RunID, error) {
	var b [5]byte
	if _, err := e.o.Rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	return machine.RunID("r" + base32.NewEncoding(alphabet).WithPadding(base32.NoPadding).EncodeToString(b[:])[:6]), nil
}

// prepare makes the run's workspace ready, or finds it again.
func (r *run) prepare(ctx context.Context) error {
	c := &r.state.Charter
	var ws workspace.Workspace
	var err error
	// made here: the state may move while the workspace is prepared
	ask := workspace.Request{Run: string(r.id), Repo: c.Repo, InPlace: c.InPlace, WithChanges: c.Changes, Title: c.Goal}
	if c.Parent != "" {
		parent, perr := r.e.state(ctx, c.Parent)
		if perr != nil {
			return perr
		}
		from, perr := spaceOf(&parent)
		if perr != nil {
			return r.spaceTrouble(ctx, perr)
		}
		ask.From, ask.Ref, ask.WithChanges = &from, c.Start, false
	}
	lost := r.during(ctx, ended, func(ctx context.Context, _ *job) {
		ws, err = r.e.space.Prepare(ctx, ask)
	})
	if lost != nil {
		return lost
	}
	if err != nil {
		return r.spaceTrouble(ctx, err)
	}
	data, err := machine.Encode(ws)
	if err != nil {
		return err
	}
	level := r.e.level()
	body := machine.WorkspaceReady{Path: ws.Path, Branch: ws.Branch, Base: ws.Base, Mode: string(ws.Kind), Level: level.Level.String(), Data: data, Note: strings.Join(ws.Notes, "; ")}
	r.space = &ws
	b := batch{bodies: []machine.Body{body}}
	if r.state.Memory == nil && r.state.Turns.Len() == 0 {
		told, blobs, err := r.e.recall(ctx, r.state.Charter.Repo, ws.Path)
		if err != nil { // no run needs it
			r.e.o.Log("run %s is not told what is remembered: %v", r.id, err)
		} else if told != nil {
			b.bodies, b.blobs = append(b.bodies, told), blobs
		}
	}
	return r.decide(ctx, ledger.Full, b)
}

// openSpace finds the workspace of a run that had one.
func (r *run) openSpace() error {
	if !r.state.Space.Ready || r.space != nil {
		return nil
	}
	var ws workspace.Workspace
	if err := machine.DecodeValue(r.state.Space.Data, &ws); err != nil {
		return fmt.Errorf("the record of the workspace of %s: %w", r.id, err)
	}
	r.space = &ws
	return nil
}

// summary is the text with which a run ends.
func (r *run) summary(ctx context.Context, f *machine.Effect) (machine.Text, error) {
	args, err := r.e.bytes(ctx, f.Args)
	if err != nil {
		return machine.Text{}, err
	}
	fin, err := tool.ParseFinish(args)
	if err != nil {
		return machine.Text{}, err
	}
	return machine.Text{Inline: preview(fin.Summary, machine.MaxInline)}, nil
}
