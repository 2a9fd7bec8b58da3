package ledger

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"sort"
	"sync"
	"time"
)

// Mem is a ledger in memory, for tests and simulations: what DB promises,
// without a file. Open gives handles on it, each of which stands for a process;
// a handle that is closed is a process that died.
//
// It plays power cuts too: PowerCut forgets what no full commit and no Sync had
// covered. Nothing syncs lazy commits by itself, so a simulation decides when.
type Mem struct {
	o Options

	mu      sync.Mutex
	tables  memTables
	journal []func(*memTables) // one per transaction
	synced  int                // how many of them survive a power cut
	alive   map[string]bool
	commits map[string]int64 // transactions by handle
}

// memTables is all that is stored.
type memTables struct {
	log       []Event // by Seq-1
	chains    map[string]*memChain
	cmds      map[CommandID]Committed
	blobs     map[Hash]Blob
	runs      map[string]RunRow
	effects   map[string]EffectRow
	ords      map[effectKey]string // id of an effect by its number
	approvals map[string]ApprovalRow
	inbox     map[string]InboxRow
	windows   map[string]map[int64]WindowRow
}

type effectKey struct {
	run string
	ord int64
}

type memChain struct {
	events []Event
	lease  leaseRow
}

func newTables() memTables {
	return memTables{
		chains: map[string]*memChain{}, cmds: map[CommandID]Committed{}, blobs: map[Hash]Blob{},
		runs: map[string]RunRow{}, effects: map[string]EffectRow{}, approvals: map[string]ApprovalRow{},
		ords: map[effectKey]string{}, inbox: map[string]InboxRow{}, windows: map[string]map[int64]WindowRow{},
	}
}

// NewMem returns an empty ledger. Of o it uses Mono, Boot, Rand and LeaseFor.
func NewMem(o Options) (*Mem, error) {
	o.Path = "memory"
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	o.Path = ":memory:"
	return &Mem{o: o, tables: newTables(), alive: map[string]bool{}, commits: map[string]int64{}}, nil
}

// Open returns a handle, known to people as owner.
func (m *Mem) Open(owner string) (*MemHandle, error) {
	raw := make([]byte, 16)
	if _, err := io.ReadFull(m.o.Rand, raw); err != nil {
		return nil, err
	}
	h := &MemHandle{m: m, id: hex.EncodeToString(raw), owner: owner, held: map[string]bool{}, changed: make(chan struct{}, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alive[h.id] = true
	return h, nil
}

// PowerCut ends every handle and forgets what was not synced; boot names the
// next boot of the machine.
func (m *Mem) PowerCut(boot string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alive = map[string]bool{}
	m.journal = m.journal[:m.synced]
	m.tables = newTables()
	for _, tx := range m.journal {
		tx(&m.tables)
	}
	m.o.Boot = boot
}

// MemHandle is one process's view of a Mem.
type MemHandle struct {
	m       *Mem
	id      string
	owner   string
	held    map[string]bool // under m.mu
	changed chan struct{}
	stats   Stats // under m.mu
}

var _ Store = (*MemHandle)(nil)

// Process is the id that this handle's leases are held under.
func (h *MemHandle) Process() string { return h.id }

func (h *MemHandle) lock(ctx context.Context) (*memTables, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.m.mu.Lock()
	if !h.m.alive[h.id] {
		h.m.mu.Unlock()
		return nil, ErrClosed
	}
	return &h.m.tables, nil
}

// run makes tx a transaction of the journal. The caller holds the lock.
func (h *MemHandle) run(d Durability, tx func(*memTables)) {
	tx(&h.m.tables)
	h.m.journal = append(h.m.journal, tx)
	h.stats.Commits++
	h.m.commits[h.id]++
	if d == Full {
		h.m.synced = len(h.m.journal)
		h.stats.Syncs++
	}
	poke(h.changed)
}

func (h *MemHandle) live(l *leaseRow) bool {
	return l.holder != "" && l.boot == h.m.o.Boot && h.left(l) > 0 && h.m.alive[l.holder]
}

func (h *MemHandle) left(l *leaseRow) time.Duration {
	if l.boot != h.m.o.Boot {
		return 0
	}
	return time.Duration(l.until)*time.Microsecond - h.m.o.Mono()
}

// Commit is Store's.
func (h *MemHandle) Commit(ctx context.Context, d Durability, parts ...Part) ([]Committed, error) {
	ps, err := prepareParts(parts)
	if err != nil {
		return nil, err
	}
	for i := range ps {
		p := &ps[i]
		if p.Epoch > 0 && p.Holder == "" {
			p.Holder = h.id
		}
		for j := range p.Blobs {
			if p.Blobs[j], err = p.Blobs[j].whole(); err != nil {
				return nil, err
			}
		}
	}
	t, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.m.mu.Unlock()
	var refused error
	for i := range ps {
		if err := h.check(t, &ps[i]); err != nil && refused == nil {
			refused = err
		}
	}
	out, err := t.recorded(ps)
	if err != nil || out != nil {
		for i := range ps {
			h.hold(&ps[i])
		}
		return out, err
	}
	if refused == nil {
		refused = t.foreignRows(ps)
	}
	if refused != nil {
		return nil, refused
	}
	until := (h.m.o.Mono() + h.m.o.LeaseFor).Microseconds()
	boot, owner := h.m.o.Boot, h.owner
	h.run(d, func(t *memTables) {
		out = make([]Committed, len(ps))
		for i := range ps {
			out[i] = t.apply(&ps[i], leaseRow{there: true, holder: ps[i].Holder, epoch: ps[i].Epoch, boot: boot, until: until, owner: owner})
		}
	})
	for i := range ps {
		h.hold(&ps[i])
		h.stats.Parts++
		h.stats.Events += int64(len(ps[i].Events))
	}
	return out, nil
}

func (h *MemHandle) hold(p *prepared) {
	if p.Claim && p.Holder == h.id {
		h.held[p.Run] = true
	}
	if p.Release {
		delete(h.held, p.Run)
	}
}

func (h *MemHandle) check(t *memTables, p *prepared) error {
	var l leaseRow
	var tail int64
	if c := t.chains[p.Run]; c != nil {
		l, tail = c.lease, int64(len(c.events))
	}
	if p.Claim {
		if l.holder != "" && l.holder != p.Holder && h.live(&l) {
			return &HeldError{Run: p.Run, Owner: l.owner, Left: h.left(&l)}
		}
		if p.Epoch != l.epoch+1 {
			return &FencedError{Run: p.Run, Epoch: p.Epoch, Current: l.epoch, Owner: l.owner}
		}
	} else if p.Epoch > 0 && (l.epoch != p.Epoch || l.holder != p.Holder) {
		e := &FencedError{Run: p.Run, Epoch: p.Epoch, Current: l.epoch}
		if l.holder != "" {
			e.Owner = l.owner
		}
		return e
	}
	if p.Tail != tail {
		return &TailError{Run: p.Run, Want: p.Tail, Have: tail}
	}
	return nil
}

// recorded is what the commands of ps did before; nil if they did nothing yet.
func (t *memTables) recorded(ps []prepared) ([]Committed, error) {
	var out []Committed
	for i := range ps {
		c, found := t.cmds[ps[i].Cmd]
		if found && c.Run != ps[i].Run || found && len(out) != i || !found && len(out) > 0 {
			return nil, fmt.Errorf("commit to run %q: command %x was used before for something else", ps[i].Run, ps[i].Cmd)
		}
		if found {
			out = append(out, c)
		}
	}
	return out, nil
}

// foreignRows refuses rows whose ids another run has.
func (t *memTables) foreignRows(ps []prepared) error {
	for i := range ps {
		p := &ps[i]
		for _, e := range p.Rows.Effects {
			if old, ok := t.effects[e.ID]; ok && (old.Run != e.Run || old.Ord != e.Ord) {
				return fmt.Errorf("effect %q is another one", e.ID)
			}
			if id, ok := t.ords[effectKey{e.Run, e.Ord}]; ok && id != e.ID {
				return fmt.Errorf("effect %q has the number of %q", e.ID, id)
			}
		}
		for _, a := range p.Rows.Approvals {
			if old, ok := t.approvals[a.ID]; ok && old.Run != a.Run {
				return fmt.Errorf("approval %q belongs to another run", a.ID)
			}
		}
		for _, b := range p.Rows.Inbox {
			if old, ok := t.inbox[b.ID]; ok && old.Run != b.Run {
				return fmt.Errorf("inbox item %q belongs to another run", b.ID)
			}
		}
	}
	return nil
}

// apply carries one checked part out; l is the lease if it claims.
func (t *memTables) apply(p *prepared, l leaseRow) Committed {
	c := t.chains[p.Run]
	if c == nil {
		c = &memChain{}
		t.chains[p.Run] = c
	}
	if p.Claim {
		c.lease = l
	}
	for _, b := range p.Blobs {
		t.blobs[b.Hash] = b
	}
	out := Committed{Run: p.Run}
	hash := c.hash()
	for i, e := range p.Events {
		hash = link(hash, p.canon[i])
		ev := Event{
			Seq: int64(len(t.log)) + 1, Run: p.Run, N: int64(len(c.events)) + 1, Cmd: p.Cmd, Kind: e.Kind, At: e.At,
			Actor: e.Actor, Epoch: p.Epoch, Payload: append([]byte{}, e.Payload...), Hash: hash,
		}
		if i == 0 {
			out.FirstSeq = ev.Seq
		}
		t.log = append(t.log, ev)
		c.events = append(c.events, ev)
	}
	out.Tail, out.Hash = int64(len(c.events)), hash
	t.cmds[p.Cmd] = out
	t.put(p.Run, &p.Rows)
	if p.Release {
		c.lease.holder, c.lease.until = "", 0
	}
	return out
}

func (c *memChain) hash() Hash {
	if n := len(c.events); n > 0 {
		return c.events[n-1].Hash
	}
	return Hash{}
}

func (t *memTables) put(run string, r *Rows) {
	if r.Run != nil {
		t.runs[r.Run.ID] = *r.Run
	}
	for _, e := range r.Effects {
		t.effects[e.ID] = e
		t.ords[effectKey{e.Run, e.Ord}] = e.ID
	}
	for _, a := range r.Approvals {
		t.approvals[a.ID] = a
	}
	for _, id := range r.Gone {
		if t.inbox[id].Run == run {
			delete(t.inbox, id)
		}
	}
	for _, b := range r.Inbox {
		t.inbox[b.ID] = b
	}
	for _, w := range r.Windows {
		if t.windows[w.Run] == nil {
			t.windows[w.Run] = map[int64]WindowRow{}
		}
		t.windows[w.Run][w.N] = w
	}
}

// Renew is Store's.
func (h *MemHandle) Renew(ctx context.Context) (lost []string, err error) {
	t, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.m.mu.Unlock()
	for run := range h.held {
		if c := t.chains[run]; c == nil || c.lease.holder != h.id {
			lost = append(lost, run)
			delete(h.held, run)
		}
	}
	until := (h.m.o.Mono() + h.m.o.LeaseFor).Microseconds()
	h.run(Lazy, func(t *memTables) {
		for _, c := range t.chains {
			if c.lease.holder == h.id {
				c.lease.until = max(c.lease.until, until)
			}
		}
	})
	sort.Strings(lost)
	return lost, nil
}

// Leases is Store's.
func (h *MemHandle) Leases(ctx context.Context, runs ...string) ([]Lease, error) {
	t, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.m.mu.Unlock()
	all := len(runs) == 0
	if all {
		for run := range t.chains {
			runs = append(runs, run)
		}
		sort.Strings(runs)
	}
	var out []Lease
	for _, run := range runs {
		c := t.chains[run]
		if c == nil || !c.lease.there || all && c.lease.holder == "" {
			continue
		}
		l := &c.lease
		out = append(out, Lease{Run: run, Holder: l.holder, Epoch: l.epoch, Boot: l.boot, Left: h.left(l), Live: h.live(l), Owner: l.owner})
	}
	return out, nil
}

// PutBlob is Store's.
func (h *MemHandle) PutBlob(ctx context.Context, bs ...Blob) error {
	for i := range bs {
		b, err := bs[i].whole()
		if err != nil {
			return err
		}
		bs[i] = b
	}
	_, err := h.lock(ctx)
	if err != nil {
		return err
	}
	defer h.m.mu.Unlock()
	h.run(Lazy, func(t *memTables) {
		for _, b := range bs {
			t.blobs[b.Hash] = b
		}
	})
	return nil
}

// Blob is Store's.
func (h *MemHandle) Blob(ctx context.Context, hash Hash) ([]byte, error) {
	t, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.m.mu.Unlock()
	b, ok := t.blobs[hash]
	if !ok {
		return nil, &NotFoundError{What: "blob", ID: hash.String()}
	}
	return b.Plain()
}

// BlobRange is Store's.
func (h *MemHandle) BlobRange(ctx context.Context, hash Hash, off int64, n int) ([]byte, int64, error) {
	p, err := h.Blob(ctx, hash)
	if err != nil {
		return nil, 0, err
	}
	size := int64(len(p))
	off = min(max(0, off), size)
	return bytes.Clone(p[off:min(size, off+int64(max(0, n)))]), size, nil
}

// Sync is Store's.
func (h *MemHandle) Sync(ctx context.Context) error {
	if _, err := h.lock(ctx); err != nil {
		return err
	}
	defer h.m.mu.Unlock()
	h.m.synced = len(h.m.journal)
	h.stats.LazySyncs++
	return nil
}

// Changed is Store's.
func (h *MemHandle) Changed() <-chan struct{} { return h.changed }

// DataVersion is Store's.
func (h *MemHandle) DataVersion(ctx context.Context) (int64, error) {
	if _, err := h.lock(ctx); err != nil {
		return 0, err
	}
	defer h.m.mu.Unlock()
	var n int64
	for id, c := range h.m.commits {
		if id != h.id {
			n += c
		}
	}
	return n, nil
}

// Stats is Store's.
func (h *MemHandle) Stats() Stats {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return h.stats
}

// Path is Store's.
func (h *MemHandle) Path() string { return h.m.o.Path }

// ReadOnly is Store's.
func (h *MemHandle) ReadOnly() (bool, string) { return false, "" }

// Close ends the process that h stands for: it syncs, and others may claim its runs.
func (h *MemHandle) Close() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.m.alive[h.id] {
		delete(h.m.alive, h.id)
		h.m.synced = len(h.m.journal)
	}
	return nil
}

// Kill ends the process that h stands for without a sync, as kill -9 does.
func (h *MemHandle) Kill() {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	delete(h.m.alive, h.id)
}
