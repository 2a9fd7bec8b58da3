package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/engine/machine"
)

// frameTime is the shortest time between two messages of the pump.
const frameTime = 16 * time.Millisecond

// pump carries what the engine signals to the program: the first at once, then
// at most one message per frame, however fast they come. It is the only
// goroutine that sends to the program on behalf of others. It returns when ctx ends.
func pump(ctx context.Context, b Backend, crashes <-chan crash, engineDied <-chan error, send func(tea.Msg), after func(time.Duration) <-chan time.Time) {
	var (
		changed bool
		live    = map[machine.RunID]engine.LiveText{}
		rest    <-chan time.Time // until then nothing is sent
		changes = b.Changes()
		texts   = b.Live()
	)
	flush := func() {
		if rest != nil || !changed && len(live) == 0 {
			return
		}
		msg := pumpedMsg{changed: changed}
		for _, t := range live {
			msg.live = append(msg.live, t)
		}
		changed = false
		clear(live)
		send(msg)
		rest = after(frameTime)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-changes:
			if !ok {
				changes = nil
				continue
			}
			changed = true
		case t, ok := <-texts:
			if !ok {
				texts = nil
				continue
			}
			live[t.Run] = t
		case c := <-crashes:
			send(c)
		case err, ok := <-engineDied:
			if !ok {
				engineDied = nil
				continue
			}
			send(crash{where: "the engine", what: err.Error()})
		case <-rest:
			rest = nil
		}
		flush()
	}
}

// pumped takes what the pump brings.
func (m *Model) pumped(msg pumpedMsg) tea.Cmd {
	for _, t := range msg.live {
		if t.Done {
			delete(m.live, t.Run)
		} else {
			m.live[t.Run] = t
		}
	}
	if !msg.changed {
		return nil
	}
	return m.reload()
}
