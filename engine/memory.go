package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/engine/machine"
	"pawl/ledger"
)

// memoryChain is the chain of the operator's memory. No run has such an id.
const memoryChain = "memory"

// Memories lists what the operator wants remembered.
func (e *Engine) Memories(ctx context.Context) (machine.Memory, error) {
	var m machine.Memory
	const page = 512
	for {
		evs, err := e.store.Events(ctx, memoryChain, m.Tail, page)
		if err != nil {
			return m, fmt.Errorf("read the memory: %w", err)
		}
		for _, raw := range evs {
			ev, err := decode(raw)
			if err == nil {
				m, err = machine.FoldMemory(m, ev)
			}
			if err != nil {
				return m, fmt.Errorf("the memory, event %d: %w", raw.N, err)
			}
		}
		if len(evs) < page {
			return m, nil
		}
	}
}

// Remember keeps a lasting preference for every run, or with repo for those on
// one directory. Runs that have begun do not see it; `pawl tell` reaches them.
func (e *Engine) Remember(ctx context.Context, text, repo string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", errors.New("there is nothing to remember: the text is empty")
	case len(text) > machine.MemoryBytes:
		return "", fmt.Errorf("the text is %d bytes long, at most %d are kept: it stands in every context; put details into a file of the project", len(text), machine.MemoryBytes)
	}
	if repo != "" {
		abs, err := filepath.Abs(repo)
		if err != nil {
			return "", fmt.Errorf("find %s: %w", repo, err)
		}
		if st, err := os.Stat(abs); err != nil || !st.IsDir() {
			return "", fmt.Errorf("%s is no folder: name the project's folder with --repo, or leave it away for all projects", repo)
		}
		repo = abs
	}
	id := ""
	err := e.appendMemory(ctx, func(m *machine.Memory) (machine.Body, error) {
		if len(m.Entries) >= machine.MemoryLimit {
			return nil, fmt.Errorf("%d things are remembered already, which is the most: forget one first (`pawl memories` lists them)", machine.MemoryLimit)
		}
		id = m.NextID()
		return machine.MemoryKept{Entry: machine.MemoryEntry{ID: id, Text: text, Repo: repo}}, nil
	})
	return id, err
}

// Forget takes a preference back. The ledger keeps that it once held.
func (e *Engine) Forget(ctx context.Context, id string) error {
	return e.appendMemory(ctx, func(m *machine.Memory) (machine.Body, error) {
		if !slices.ContainsFunc(m.Entries, func(x machine.MemoryEntry) bool { return x.ID == id }) {
			return nil, fmt.Errorf("nothing called %q is remembered: `pawl memories` lists what is", id)
		}
		return machine.MemoryForgotten{ID: id}, nil
	})
}

// appendMemory appends one event; what others appended meanwhile is read first.
func (e *Engine) appendMemory(ctx context.Context, make func(*machine.Memory) (machine.Body, error)) error {
	for {
		m, err := e.Memories(ctx)
		if err != nil {
			return err
		}
		body, err := make(&m)
		if err != nil {
			return err
		}
		payload, err := machine.Encode(body)
		if err != nil {
			return err
		}
		now := e.now()
		if _, err := machine.FoldMemory(m, machine.Event{N: m.Tail + 1, At: now, Actor: e.operator, Body: body}); err != nil {
			return err
		}
		_, err = e.store.Commit(ctx, ledger.Full, ledger.Part{
			Run: memoryChain, Cmd: e.command(), Tail: m.Tail, Events: []ledger.NewEvent{{Kind: body.Kind(), At: now, Actor: e.operator, Payload: payload}},
		})
		var moved *ledger.TailError
		if !errors.As(err, &moved) {
			return err
		}
	}
}

// projectNotes are the files in which projects speak to agents, the first that
// is there.
var projectNotes = []string{"AGENTS.md", "CLAUDE.md"}

// maxNotes is how many bytes of such a file are read.
const maxNotes = 64 << 10

// recall is what a run is told at its start of memory and the project's own
// notes; nil if there is nothing. Later changes of either do not reach it.
func (e *Engine) recall(ctx context.Context, repo, workspace string) (machine.Body, []ledger.Blob, error) {
	m, err := e.Memories(ctx)
	if err != nil {
		return nil, nil, err
	}
	read := machine.MemoryRead{Entries: m.For(repo)}
	var blobs []ledger.Blob
	root, err := os.OpenRoot(workspace) // a link must not lead out of the project
	if err == nil {
		defer func() { _ = root.Close() }()
		for _, name := range projectNotes {
			f, err := root.Open(name)
			if err != nil {
				continue
			}
			b, err := io.ReadAll(io.LimitReader(f, maxNotes))
			_ = f.Close()
			if err != nil || len(b) == 0 {
				continue
			}
			read.Path = name
			read.Notes, blobs = e.text(b)
			break
		}
	}
	if len(read.Entries) == 0 && read.Path == "" {
		return nil, nil, nil
	}
	return read, blobs, nil
}
