package engine

import (
	"context"
	"net/url"
	"runtime"
	"strings"
	"sync"

	"pawl/engine/effect"
	"pawl/engine/machine"
)

// A thousand runs may come back at once. What they do to the machine and to
// other hosts is bounded; a run that waits for a slot holds nothing else.
const (
	looksPerHost = 4
	modelCalls   = 64
)

// commands is how many commands may run at once: a few for each processor,
// since most of them wait for something.
var commands = 4 * runtime.NumCPU()

// slots are counted places, by name.
type slots struct {
	mu     sync.Mutex
	places map[string]chan struct{}
}

// take waits for a place under a name and returns how to give it back.
func (s *slots) take(ctx context.Context, name string, most int) (func(), error) {
	s.mu.Lock()
	if s.places == nil {
		s.places = map[string]chan struct{}{}
	}
	c := s.places[name]
	if c == nil {
		c = make(chan struct{}, most)
		s.places[name] = c
	}
	s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err // not left to chance where there is a place as well
	}
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hostOf names where a look at an effect goes.
func hostOf(f *machine.Effect) string {
	for _, s := range []string{paramOf(f, effect.ParamURL), paramOf(f, "url"), f.Target} {
		if u, err := url.Parse(s); err == nil && u.Host != "" {
			return u.Host
		}
		if host, _, ok := strings.Cut(s, ":"); ok && strings.Contains(host, "@") {
			return host[strings.IndexByte(host, '@')+1:] // git@host:path
		}
	}
	return "this machine"
}

func paramOf(f *machine.Effect, name string) string {
	if last := f.Last(); last != nil && last.Params[name] != "" {
		return last.Params[name]
	}
	return f.Contract.Params[name]
}
