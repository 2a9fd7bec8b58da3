package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"pawl/engine/machine"
	"pawl/ledger"
)

// An export is a list of named files: one of runs, and of each run its events,
// its blobs and its packed workspace. Events keep their hashes, so that a run
// that was carried elsewhere is the same run.

// exportFormat is the version of the list's layout.
const exportFormat = 1

// Exported is the list's head, its first file.
type Exported struct {
	Format int           `json:"format"`
	At     int64         `json:"at"` // Unix µs
	Host   string        `json:"host"`
	Boot   string        `json:"boot"` // of the machine that it comes from
	Runs   []ExportedRun `json:"runs"`
}

// ExportedRun is one run in an export.
type ExportedRun struct {
	ID     machine.RunID `json:"id"`
	Goal   string        `json:"goal"`
	Events int64         `json:"events"`
	Hash   ledger.Hash   `json:"hash"` // of the chain's head
	Phase  machine.Phase `json:"phase"`
}

// ExportHead is the name of the first file.
const ExportHead = "export.json"

// PutFile takes one file of an export and reads it to its end.
type PutFile func(name string, r io.Reader) error

// Export writes runs with everything that another machine needs to go on with
// them. A run that is driven is refused: its files are moving.
func (e *Engine) Export(ctx context.Context, ids []machine.RunID, put PutFile) (Exported, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	head := Exported{Format: exportFormat, At: e.now(), Host: host, Boot: e.o.Mono().Boot}
	states := map[machine.RunID]machine.State{}
	for _, id := range ids {
		leases, err := e.store.Leases(ctx, string(id))
		if err != nil {
			return head, fmt.Errorf("read the lease of %s: %w", id, err)
		}
		if len(leases) > 0 && leases[0].Live {
			return head, fmt.Errorf("run %s cannot be exported while %s drives it: stop that process, or wait for the run to rest", id, leases[0].Owner)
		}
		s, err := e.state(ctx, id)
		if err != nil {
			return head, err
		}
		states[id] = s
		evs, err := e.store.Events(ctx, string(id), s.Tail-1, 1)
		if err != nil || len(evs) != 1 {
			return head, errors.Join(fmt.Errorf("read the last event of %s", id), err)
		}
		head.Runs = append(head.Runs, ExportedRun{ID: id, Goal: s.Charter.Goal, Events: s.Tail, Hash: evs[0].Hash, Phase: s.Phase})
	}
	b, err := json.Marshal(head)
	if err != nil {
		return head, err
	}
	if err := put(ExportHead, strings.NewReader(string(b))); err != nil {
		return head, err
	}
	blobs := map[machine.Digest]bool{}
	for _, id := range ids {
		s := states[id]
		if err := e.exportRun(ctx, id, s.Tail, blobs, put); err != nil {
			return head, err
		}
		if !s.Space.Ready {
			continue
		}
		ws, err := spaceOf(&s)
		if err != nil {
			return head, err
		}
		if err := e.manager.Pack(ctx, ws, func(name string, r io.Reader) error { return put("runs/"+string(id)+"/workspace/"+name, r) }); err != nil {
			return head, err
		}
	}
	return head, nil
}

// exportRun writes a run's events, and the blobs that they name.
func (e *Engine) exportRun(ctx context.Context, id machine.RunID, tail int64, blobs map[machine.Digest]bool, put PutFile) error {
	const page = 512
	for from := int64(0); from < tail; from += page {
		evs, err := e.store.Events(ctx, string(id), from, int(min(page, tail-from)))
		if err != nil {
			return fmt.Errorf("read run %s: %w", id, err)
		}
		b, err := machine.Encode(evs)
		if err != nil {
			return err
		}
		if err := put(fmt.Sprintf("runs/%s/events/%09d", id, from), strings.NewReader(string(b))); err != nil {
			return err
		}
		for _, raw := range evs {
			body, err := machine.Decode(raw.Kind, raw.Payload)
			if err != nil {
				return err
			}
			for _, d := range digestsIn(reflect.ValueOf(body), nil) {
				if blobs[d] {
					continue
				}
				blobs[d] = true
				plain, err := e.store.Blob(ctx, ledger.Hash(d))
				var missing *ledger.NotFoundError
				if errors.As(err, &missing) {
					continue // a digest of something that is no blob
				}
				if err != nil {
					return err
				}
				if err := put("blobs/"+ledger.Hash(d).String(), strings.NewReader(string(plain))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// digestsIn collects every digest in a value.
func digestsIn(v reflect.Value, out []machine.Digest) []machine.Digest {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			out = digestsIn(v.Elem(), out)
		}
	case reflect.Array:
		if d, ok := v.Interface().(machine.Digest); ok && !d.IsZero() {
			out = append(out, d)
		}
	case reflect.Slice:
		for i := range v.Len() {
			out = digestsIn(v.Index(i), out)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out = digestsIn(v.Field(i), out)
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			out = digestsIn(it.Value(), out)
		}
	default:
	}
	return out
}

// Files are those of an export.
type Files struct {
	Names []string // in the order in which they were put
	Open  func(name string) (io.ReadCloser, error)
}

func (f Files) read(name string, most int64) ([]byte, error) {
	r, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return b, err
}

var (
	eventsName = regexp.MustCompile(`^runs/([a-z0-9]{1,64})/events/[0-9]{9}$`)
	blobName   = regexp.MustCompile(`^blobs/([0-9a-f]{64})$`)
)

// Head reads what an export holds.
func (f Files) Head() (Exported, error) {
	var head Exported
	b, err := f.read(ExportHead, 1<<20)
	if err != nil {
		return head, fmt.Errorf("this is no export of pawl: %w", err)
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return head, fmt.Errorf("this is no export of pawl: %w", err)
	}
	if head.Format != exportFormat {
		return head, fmt.Errorf("the export has format %d, and this pawl knows %d: use the pawl that wrote it, or a newer one", head.Format, exportFormat)
	}
	return head, nil
}

// Import brings the runs of an export into this ledger, and makes their
// workspaces here. Everything is checked before anything is written. What an
// interrupted import has brought already is found and gone on from.
func (e *Engine) Import(ctx context.Context, f Files, repo string) (Exported, error) {
	head, err := f.Head()
	if err != nil {
		return head, err
	}
	runs := map[machine.RunID][]ledger.Event{}
	for _, r := range head.Runs {
		evs, err := f.events(r)
		if err != nil {
			return head, err
		}
		have, err := e.store.Events(ctx, string(r.ID), 0, 1)
		if err != nil {
			return head, err
		}
		if len(have) > 0 {
			tail, err := e.store.Tail(ctx, string(r.ID))
			if err != nil {
				return head, err
			}
			if tail > r.Events {
				return head, fmt.Errorf("run %s is in this ledger already, with %d events of which the export has %d: nothing was changed; import into another ledger, with --ledger", r.ID, tail, r.Events)
			}
		}
		runs[r.ID] = evs
	}
	for _, n := range f.Names {
		m := blobName.FindStringSubmatch(n)
		if m == nil {
			continue
		}
		plain, err := f.read(n, 1<<30)
		if err != nil {
			return head, err
		}
		blob := ledger.NewBlob(plain)
		if blob.Hash.String() != m[1] {
			return head, fmt.Errorf("the export is damaged: what is stored as blob %s is something else; nothing was imported", m[1][:12])
		}
		if err := e.store.PutBlob(ctx, blob); err != nil {
			return head, err
		}
	}
	for _, r := range head.Runs {
		if err := e.importRun(ctx, f, r.ID, runs[r.ID], repo, head); err != nil {
			return head, err
		}
	}
	e.broadcast()
	return head, nil
}

// events reads a run's events and checks their chain.
func (f Files) events(r ExportedRun) ([]ledger.Event, error) {
	var all []ledger.Event
	var hash ledger.Hash
	for _, n := range f.Names {
		m := eventsName.FindStringSubmatch(n)
		if m == nil || m[1] != string(r.ID) {
			continue
		}
		b, err := f.read(n, 256<<20)
		if err != nil {
			return nil, err
		}
		var evs []ledger.Event
		if err := machine.DecodeValue(b, &evs); err != nil {
			return nil, fmt.Errorf("the export is damaged: %s: %w", n, err)
		}
		all = append(all, evs...)
	}
	for i, ev := range all {
		if hash = ledger.Link(hash, ev); hash != ev.Hash || ev.Run != string(r.ID) || ev.N != int64(i+1) {
			return nil, fmt.Errorf("the export is damaged: event %d of run %s is not what was recorded; nothing was imported", i+1, r.ID)
		}
	}
	if int64(len(all)) != r.Events || hash != r.Hash {
		return nil, fmt.Errorf("the export is damaged: it has %d of the %d events of run %s; nothing was imported", len(all), r.Events, r.ID)
	}
	return all, nil
}

// importRun commits events as they were committed, command by command, so that
// the chain is the same, and then where the run works now.
func (e *Engine) importRun(ctx context.Context, f Files, id machine.RunID, evs []ledger.Event, repo string, head Exported) error {
	s, err := e.catchUp(ctx, machine.State{}, id)
	if err != nil {
		return err
	}
	for i := s.Tail; i < int64(len(evs)); {
		first := evs[i]
		p := ledger.Part{Run: string(id), Cmd: first.Cmd, Epoch: first.Epoch, Tail: i}
		next := s
		for ; i < int64(len(evs)) && evs[i].Cmd == first.Cmd; i++ {
			ev, err := decode(evs[i])
			if err != nil {
				return err
			}
			_, claims := ev.Body.(machine.RunClaimed)
			p.Claim = p.Claim || claims
			if next, err = machine.Fold(next, ev); err != nil {
				return fmt.Errorf("run %s, event %d: %w", id, ev.N, err)
			}
			p.Events = append(p.Events, ledger.NewEvent{Kind: evs[i].Kind, At: evs[i].At, Actor: evs[i].Actor, Payload: evs[i].Payload})
		}
		if p.Epoch > 0 {
			p.Holder = e.o.Holder
		}
		p.Rows = project(&s, &next)
		done, err := e.store.Commit(ctx, ledger.Lazy, p)
		var fenced *ledger.FencedError
		if errors.As(err, &fenced) {
			return fmt.Errorf("run %s is in this ledger in part: an import of it was interrupted in the middle; import into another ledger, with --ledger", id)
		}
		if err != nil {
			return fmt.Errorf("import run %s: %w", id, err)
		}
		if done[0].Hash != evs[i-1].Hash {
			return fmt.Errorf("import run %s: event %d has another hash here: the ledger and the export do not fit together", id, i)
		}
		s = next
	}
	return e.settleHere(ctx, f, s, repo, head)
}

// settleHere makes the workspace of an imported run, and says so in the ledger.
func (e *Engine) settleHere(ctx context.Context, f Files, s machine.State, repo string, head Exported) error {
	id := s.Charter.ID
	leases, err := e.store.Leases(ctx, string(id))
	if err != nil {
		return fmt.Errorf("read the lease of %s: %w", id, err)
	}
	b := batch{bodies: claimBodies(&s, e.o.Owner, e.self, e.o.Mono().Boot), claim: true, epoch: s.Epoch + 1, free: true}
	if len(leases) > 0 {
		b.epoch = leases[0].Epoch + 1
	}
	if s.Space.Ready {
		ws, err := spaceOf(&s)
		if err != nil {
			return err
		}
		prefix := "runs/" + string(id) + "/workspace/"
		var names []string
		for _, n := range f.Names {
			if rel, ok := strings.CutPrefix(n, prefix); ok {
				names = append(names, rel)
			}
		}
		from, after := s.Newest()
		here, err := e.manager.Unpack(ctx, ws, unpackSnapshot(from), repo, names, func(name string) (io.ReadCloser, error) { return f.Open(prefix + name) })
		if err != nil {
			return err
		}
		if d := lastIgnored(&s); !d.IsZero() {
			if _, _, err := e.manager.PutBackIgnored(ctx, here, d); err != nil {
				return err
			}
		}
		data, err := machine.Encode(here)
		if err != nil {
			return err
		}
		why := fmt.Sprintf("it was brought here from %s, where it was in %s", head.Host, filepath.Clean(ws.Path))
		b.bodies = append(b.bodies, machine.WorkspaceRebuilt{
			Why: why, From: from, After: after, Path: here.Path, Branch: here.Branch, Level: e.level().Level.String(), Data: data,
		})
	}
	_, err = e.commit(ctx, ledger.Full, s, b)
	return err
}
