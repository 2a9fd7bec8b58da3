package headless

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"pawl/engine"
)

// note appends a line to pawl.log beside the ledger: what cannot be printed
// while the screen is up, and decisions that came too late or for nothing.
func (a *app) note(text string) {
	path, _, err := a.ledgerPath()
	if err != nil {
		return
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), "pawl.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return // a view-only place: there is nowhere to keep it
	}
	fmt.Fprintf(f, "%s %s\n", a.o.Now().UTC().Format(time.RFC3339), line(text, 0))
	_ = f.Close()
}

// late keeps a note of a decision about something that is not open, so that
// nobody has to wonder later whether it counted. It returns err.
func (a *app) late(word, id string, err error) error {
	var closed *engine.NotPendingError
	if p := (*Problem)(nil); errors.As(err, &closed) || errors.As(err, &p) && p.late {
		a.note(fmt.Sprintf("%s %s did not count: %v", word, id, err))
	}
	return err
}
