package engine

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"pawl/engine/machine"
)

// meters is the budget of retries: one for each provider, shared by all runs
// of this process that ask it. When one of them is told to wait, all wait; and
// when they have failed often enough together, nobody goes on trying by itself.
// What it decides is written to each run's events, so that a restarted process
// obeys the same waits.
type meters struct {
	mu sync.Mutex
	by map[string]*meter
}

type meter struct {
	until  int64 // Unix µs; nobody asks before
	why    string
	rounds int   // failures one after the other; those of one round count once
	began  int64 // Unix µs; requests sent before belong to the round already counted
	failed int   // failures since the last answer, each counted
}

// sharedTries is how many requests to a provider may fail, of all runs
// together, before an answer comes. Then the operator is asked.
const sharedTries = 40

// meterOf names the budget that a run draws on. Each scripted run has its own:
// its failures are its script's.
func meterOf(s *machine.State) string {
	provider, _, _ := strings.Cut(s.Charter.Model, "/")
	if provider == "script" || provider == "" {
		return "script/" + string(s.Charter.ID)
	}
	return provider
}

func (m *meters) at(name string) *meter {
	if m.by == nil {
		m.by = map[string]*meter{}
	}
	x := m.by[name]
	if x == nil {
		x = &meter{}
		m.by[name] = x
	}
	return x
}

// held says until when, in Unix µs, a provider must not be asked, and why; 0
// means now.
func (m *meters) held(name string, now int64) (until int64, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x := m.at(name); x.until > now {
		return x.until, x.why
	}
	return 0, ""
}

// fail counts a failed request that was sent at a time, and says how long to
// wait before the next one and whether the budget is used up. given is the wait
// that the provider asked for; it is obeyed, however long it is.
func (m *meters) fail(name string, class machine.FailClass, sent, now int64, given time.Duration) (wait time.Duration, spent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.at(name)
	x.failed++
	if sent >= x.began {
		x.rounds++
		x.began = now
	}
	wait = backoff(max(x.rounds, 1))
	if given > 0 {
		wait = given
	}
	switch class {
	case machine.FailRate, machine.FailOverload, machine.FailServer, machine.FailNetwork:
		if until := now + wait.Microseconds(); until > x.until {
			x.until = until
			x.why = fmt.Sprintf("%s: %s, told to another request", name, strings.ReplaceAll(string(class), "_", " "))
		}
		wait = time.Duration(x.until-now) * time.Microsecond
	case machine.FailLost, machine.FailCut, machine.FailEmpty, machine.FailQuota, machine.FailAuth, machine.FailNotFound,
		machine.FailBadRequest, machine.FailContext, machine.FailScript:
		// These say nothing about how busy the provider is.
	}
	return wait, x.failed >= sharedTries
}

// answered forgets the failures: the provider answers again.
func (m *meters) answered(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, name)
}

// spread is this run's share of a quarter of a wait, five seconds at most, so
// that runs that waited together do not come back at once.
func spread(id machine.RunID, wait time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return time.Duration(int64(min(wait/4, 5*time.Second)) * int64(h.Sum32()%64) / 64)
}
