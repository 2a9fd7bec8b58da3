package machine

import (
	"fmt"
	"slices"
	"strconv"
)

// Memory is what the operator wants remembered across runs: a chain of events
// of its own, apart from every run's. No run needs it to be recovered: what a
// run was told of it is in that run's events.
type Memory struct {
	Tail    int64
	Entries []MemoryEntry // those that hold, oldest first
	next    int
}

// MemoryEntry is one lasting preference.
type MemoryEntry struct {
	ID   string `json:"id" cbor:"1,keyasint"` // m1, m2 …
	Text string `json:"text" cbor:"2,keyasint"`
	Repo string `json:"repo,omitempty" cbor:"3,keyasint,omitempty"` // directory that it is for; "" for all
	By   string `json:"by,omitempty" cbor:"4,keyasint,omitempty"`
	At   int64  `json:"at,omitempty" cbor:"5,keyasint,omitempty"` // Unix µs
}

// MemoryLimit bounds the entries that hold at once, MemoryBytes each one: they
// stand in every context of every run that they are for.
const (
	MemoryLimit = 50
	MemoryBytes = 500
)

// NextID is the id of the next entry.
func (m *Memory) NextID() string { return "m" + strconv.Itoa(m.next+1) }

// FoldMemory applies one event of the memory's chain. It leaves m as it was.
func FoldMemory(m Memory, e Event) (Memory, error) {
	if err := GuardNext.need(e.N == m.Tail+1, e.Body, "memory", "event %d does not follow %d", e.N, m.Tail); err != nil {
		return m, err
	}
	switch b := e.Body.(type) {
	case MemoryKept:
		if err := GuardNext.need(b.Entry.ID == m.NextID(), b, b.Entry.ID, "the next entry is %s", m.NextID()); err != nil {
			return m, err
		}
		x := b.Entry
		x.By, x.At = e.Actor, e.At
		m.Entries = append(slices.Clip(m.Entries), x)
		m.next++
	case MemoryForgotten:
		i := slices.IndexFunc(m.Entries, func(x MemoryEntry) bool { return x.ID == b.ID })
		if err := GuardFrom.need(i >= 0, b, b.ID, "there is no such entry"); err != nil {
			return m, err
		}
		m.Entries = slices.Delete(slices.Clone(m.Entries), i, i+1)
	default:
		return m, fmt.Errorf("machine: %T is no event of the memory", e.Body)
	}
	m.Tail = e.N
	return m, nil
}

// For lists the entries that hold for a directory.
func (m *Memory) For(repo string) []MemoryEntry {
	var out []MemoryEntry
	for _, x := range m.Entries {
		if x.Repo == "" || x.Repo == repo {
			out = append(out, x)
		}
	}
	return out
}
