package machine

import (
	"slices"
	"strconv"
	"strings"
)

func foldWindow(s State, e Event) (State, error) {
	if err := s.current(e); err != nil {
		return s, err
	}
	id := string(s.Charter.ID)
	switch b := e.Body.(type) {
	case TurnHeld:
		if err := GuardFrom.need(s.betweenTurns(b.Turn), b, id, "turn %d is not the next to be asked for", b.Turn); err != nil {
			return s, err
		}
		s.Hold = &Hold{Turn: b.Turn, Until: b.Until, Why: b.Why}
	case WindowOpened:
		return s.turnPage(e, b)
	case MemoryRead:
		if err := GuardFrom.need(s.Memory == nil && s.Turns.Len() == 0, b, id, "a run is told once, before its first turn"); err != nil {
			return s, err
		}
		s.Memory = &Recalled{MemoryRead: b, N: e.N}
	case NoteWritten:
		n := Note{Text: b.Text, N: e.N, At: e.At}
		if t := s.LastTurn(); t != nil {
			n.Turn = t.N
		}
		s.Note = &n
	}
	return s, nil
}

// betweenTurns: nothing is being asked for, and n is what would be next.
func (s *State) betweenTurns(n int) bool {
	t := s.LastTurn()
	switch {
	case t == nil:
		return n == 1
	case t.State == TurnAnswered:
		return n == t.N+1
	default:
		return t.State == TurnBroken && n == t.N
	}
}

func (s State) turnPage(e Event, b WindowOpened) (State, error) {
	id := string(s.Charter.ID)
	if err := GuardNext.need(b.Window == s.Window+1, b, id, "window %d follows %d", b.Window, s.Window); err != nil {
		return s, err
	}
	if err := GuardFrom.need(s.betweenTurns(b.Turn), b, id, "turn %d is not the next to be asked for", b.Turn); err != nil {
		return s, err
	}
	if err := GuardNext.need(b.Keep >= max(s.Keep, 1) && b.Keep <= b.Turn, b, id, "turn %d cannot be the first one kept", b.Keep); err != nil {
		return s, err
	}
	s.Window, s.Keep, s.Output = b.Window, b.Keep, b.Output
	if b.Learned {
		s.Limit = b.Budget
	}
	s.Openings = append(slices.Clip(s.Openings), Opening{
		N: b.Window, Turn: b.Turn, Keep: b.Keep, Output: b.Output, Budget: b.Budget, Before: b.Before, After: b.After, Why: b.Why, Event: e.N, At: e.At,
	})
	if t := s.LastTurn(); t != nil && t.State == TurnBroken && t.Fail == FailContext {
		c := *t
		c.Shrunk = c.Attempts
		s.Turns = s.Turns.set(c.N-1, c)
	}
	return s, nil
}

// Entry is something that binds the run and that the operator may retire.
type Entry struct {
	ID   string // d3: the third decision; i2: the operator's second instruction
	Text string
}

// Entries lists what may be retired when all that binds no longer fits.
func (s *State) Entries() []Entry {
	var out []Entry
	for i := range s.Decisions {
		if d := &s.Decisions[i]; !d.Retired {
			out = append(out, Entry{ID: "d" + strconv.Itoa(i+1), Text: d.Text})
		}
	}
	for i := range s.Told {
		if t := &s.Told[i]; !t.Retired {
			out = append(out, Entry{ID: "i" + strconv.Itoa(i+1), Text: t.Text})
		}
	}
	return out
}

// AnswerRetire takes the named entries out of what binds the run.
const AnswerRetire = "retire"

// retire marks the entries of an answer "retire d3 i2"; unknown ones are none.
func (s *State) retire(answer string) {
	words := strings.Fields(answer)
	has := func(id string) bool { return slices.Contains(words, id) }
	s.Decisions, s.Told = slices.Clone(s.Decisions), slices.Clone(s.Told)
	for i := range s.Decisions {
		s.Decisions[i].Retired = s.Decisions[i].Retired || has("d"+strconv.Itoa(i+1))
	}
	for i := range s.Told {
		s.Told[i].Retired = s.Told[i].Retired || has("i"+strconv.Itoa(i+1))
	}
}
