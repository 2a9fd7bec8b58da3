package tui

import "time"

// Input safety. A key that decides counts only if the operator can have read
// what it decides and meant the key for it: what is decided must have been on
// screen, unchanged, for a while, no other key may have come shortly before,
// and none may follow at once. Typing and pasting, with or without the
// terminal's help in telling a paste from typing, fail all three.
const (
	// grace is how long a card must have been drawn, and how long the keyboard
	// must have been quiet, before a single letter decides.
	grace = 400 * time.Millisecond
	// breath is the same for the keyboard where the deciding key is a chord that
	// no text contains, in a dialog that was opened on purpose and typed into.
	breath = 150 * time.Millisecond
	// settle is how long a deciding key is held back; another key within it
	// means that a burst is coming in, and nothing is decided.
	settle = 150 * time.Millisecond
)

// guard knows what is on screen since when, and when a key came last. It
// belongs to the Update goroutine.
type guard struct {
	what  string    // what could be decided, with a print of its content
	drawn time.Time // when it was first drawn
	key   time.Time // last key or paste
}

// drew is told at each frame what could be decided on it; empty for nothing.
func (g *guard) drew(what string, now time.Time) {
	if what != g.what {
		g.what, g.drawn = what, now
	}
}

// touched notes a key or a paste.
func (g *guard) touched(now time.Time) { g.key = now }

// open reports whether a deciding key counts now for what is on screen. It must
// be asked before touched is told of that key.
func (g *guard) open(what string, quiet time.Duration, now time.Time) bool {
	return what != "" && what == g.what && now.Sub(g.drawn) >= grace && now.Sub(g.key) >= quiet
}
