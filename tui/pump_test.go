package tui

import (
	"context"
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
)

func TestPumpSendsAtMostOneMessageAFrame(t *testing.T) {
	f := newFake()
	f.live = make(chan engine.LiveText) // unbuffered: a send returns once the pump has it
	f.changes = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan tea.Msg, 1000)
	frame := make(chan time.Time)
	done := make(chan struct{})
	died := make(chan error)
	go func() {
		defer close(done)
		pump(ctx, f, make(chan crash), died, func(m tea.Msg) { sent <- m }, func(time.Duration) <-chan time.Time { return frame })
	}()
	f.changes <- struct{}{}
	first, ok := (<-sent).(pumpedMsg) // at once
	if !ok || !first.changed {
		t.Fatalf("got %+v", first)
	}
	for i := range 100 {
		f.live <- engine.LiveText{Run: "r1", Text: fmt.Sprint(i)}
		f.changes <- struct{}{}
	}
	if len(sent) != 0 {
		t.Errorf("%d messages within a frame", len(sent))
	}
	frame <- time.Time{}
	second := (<-sent).(pumpedMsg)
	if !second.changed || len(second.live) != 1 || second.live[0].Text != "99" {
		t.Errorf("got %+v, want the newest of all", second)
	}
	frame <- time.Time{} // nothing came: nothing is sent
	died <- context.Canceled
	if c, ok := (<-sent).(crash); !ok || c.where != "the engine" {
		t.Errorf("got %+v", c)
	}
	if len(sent) != 0 {
		t.Errorf("%d messages too many", len(sent))
	}
	cancel()
	<-done
}
