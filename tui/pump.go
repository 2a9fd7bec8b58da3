package tui

import (
	"context"
	"strings"
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
		live    = map[liveKey]engine.LiveText{}
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
			k := liveKey{t.Run, t.Effect}
			if was, ok := live[k]; ok && t.Effect != "" && !t.Done {
				t.Text = was.Text + t.Text // pieces; the model's text is whole each time
			}
			live[k] = t
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

// liveKey tells the model's text from the output of each command.
type liveKey struct {
	run    machine.RunID
	effect machine.EffectID
}

// outputs are the newest lines of commands that run now, as they arrive. What
// they printed before this screen looked is not there; the ledger has it at the end.
type outputs map[machine.RunID]engine.LiveText

const outputKept = 4 << 10 // bytes of a command's output kept while it runs

func (o outputs) take(t engine.LiveText) {
	was, ok := o[t.Run]
	switch {
	case t.Done && was.Effect == t.Effect:
		delete(o, t.Run)
		return
	case t.Done:
		return
	case ok && was.Effect == t.Effect:
		t.Text = was.Text + t.Text
	}
	if cut := len(t.Text) - outputKept; cut > 0 {
		t.Text = t.Text[cut:]
		if i := strings.IndexByte(t.Text, '\n'); i >= 0 {
			t.Text = t.Text[i+1:] // begin with a whole line
		}
	}
	o[t.Run] = t
}

// pumped takes what the pump brings.
func (m *Model) pumped(msg pumpedMsg) tea.Cmd {
	for _, t := range msg.live {
		switch {
		case t.Effect != "":
			m.output.take(t)
		case t.Done:
			delete(m.live, t.Run)
		default:
			m.live[t.Run] = t
		}
	}
	if !msg.changed {
		return nil
	}
	return m.reload()
}
