package ledger

import (
	"fmt"
	"sync"
)

// words turns the numbers that stand for repeated words and run ids back into
// text. What a number stands for never changes once it is committed.
type words struct {
	mu   sync.RWMutex
	word map[int64]string
	run  map[int64]string
}

func (w *words) name(c *conn, e *rawEvent) (err error) {
	if e.Kind, err = w.text(c, e.kind); err != nil {
		return err
	}
	if e.Actor, err = w.text(c, e.actor); err != nil {
		return err
	}
	e.Run, err = w.runID(c, e.run)
	return err
}

func (w *words) text(c *conn, id int64) (string, error) {
	return w.find(c, &w.word, id, "SELECT text FROM word WHERE id = ?", "word")
}

func (w *words) runID(c *conn, k int64) (string, error) {
	return w.find(c, &w.run, k, "SELECT id FROM chain WHERE k = ?", "run")
}

func (w *words) find(c *conn, m *map[int64]string, id int64, q, what string) (string, error) {
	w.mu.RLock()
	s, ok := (*m)[id]
	w.mu.RUnlock()
	if ok {
		return s, nil
	}
	v, err := c.one(q, id)
	if err != nil {
		return "", err
	}
	if v == nil {
		return "", fmt.Errorf("it refers to %s number %d, which is missing", what, id)
	}
	s = text(v)
	w.mu.Lock()
	defer w.mu.Unlock()
	if *m == nil {
		*m = map[int64]string{}
	}
	(*m)[id] = s
	return s, nil
}
