package headless_test

import (
	"fmt"
	"strings"
	"testing"

	"pawl/fixtures/world"
)

// While a run works as fast as it can, it is paused and let go from other
// processes, and cancelled in the end. Nothing that its model proposed is
// dispatched between a pause and the word that ends it, nor after the cancel,
// and the world saw no more than what was dispatched.
func TestPauseAndCancelAreBarriers(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	// Each post differs, so that the run is not taken to go in circles.
	var text strings.Builder
	for i := range 400 {
		text.WriteString("[[step]]\nsay = \"on\"\n" + post(fmt.Sprintf("number %d", i)))
	}
	text.WriteString(finishStep)
	p := s.start(nil, s.run(s.script(text.String()), "--max-turns", "500", "--allow", "http POST "+s.world.URL()+"/tickets")...)
	until(t, "the run posts", func() bool { return s.happened(world.TicketCreated) > 0 })
	run := string(s.only().ID)
	for range 2 {
		s.must(0, "pause", run)
		n := s.happened(world.TicketCreated)
		s.must(0, "unpause", run)
		until(t, "the run goes on", func() bool {
			select {
			case <-p.done:
				// It rests when paused, and ends; whoever resumes it goes on.
				p = s.start(nil, "resume", run)
			default:
			}
			return s.happened(world.TicketCreated) > n
		})
	}
	s.must(0, "cancel", run, "--reason", "enough")
	p.wait()

	held, dispatched, pauses := "", 0, 0
	for _, row := range s.log(run) {
		switch row.Kind {
		case "RunPaused", "RunCancelled":
			held, pauses = row.Kind, pauses+1
		case "RunUnpaused":
			held = ""
		case "EffectDispatched", "TurnRequested":
			if row.Kind == "EffectDispatched" {
				dispatched++
			}
			if held != "" {
				t.Errorf("event %d: %s after %s", row.N, row.Kind, held)
			}
		}
	}
	if pauses != 3 {
		t.Errorf("%d barriers on record, want 3", pauses)
	}
	if n := s.happened(world.TicketCreated); n > dispatched {
		t.Errorf("the world saw %d, dispatched were %d", n, dispatched)
	}
	s.must(0, "verify")
}
