package engine

import "sync"

// ownEvents remembers which events this engine appended, by their sequence
// numbers: a count could not tell an own event that is visible but not yet
// counted from somebody else's.
type ownEvents struct {
	mu    sync.Mutex
	spans []span // ascending, apart from each other
}

type span struct{ first, last int64 }

func (o *ownEvents) add(first, n int64) {
	if n == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	i := len(o.spans)
	for i > 0 && o.spans[i-1].first > first {
		i--
	}
	o.spans = append(o.spans, span{})
	copy(o.spans[i+1:], o.spans[i:])
	o.spans[i] = span{first, first + n - 1}
	if i+1 < len(o.spans) && o.spans[i].last+1 == o.spans[i+1].first {
		o.spans[i].last = o.spans[i+1].last
		o.spans = append(o.spans[:i+1], o.spans[i+2:]...)
	}
	if i > 0 && o.spans[i-1].last+1 == o.spans[i].first {
		o.spans[i-1].last = o.spans[i].last
		o.spans = append(o.spans[:i], o.spans[i+1:]...)
	}
}

// cover reports whether every event after seq up to head is known to be our
// own, and forgets what lies before.
func (o *ownEvents) cover(seq, head int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.spans) > 0 && o.spans[0].last <= seq {
		o.spans = o.spans[1:]
	}
	if head <= seq {
		return true
	}
	return len(o.spans) > 0 && o.spans[0].first <= seq+1 && o.spans[0].last >= head
}
