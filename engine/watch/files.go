package watch

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// still is how long a file must be left alone before its change is told: an
// editor writes in several steps.
const still = 60 * time.Millisecond

// Files signals when something in one of the directories may have changed. The
// channel has room for one signal and is closed when ctx ends. A directory that
// is not there is left out; where nothing can be watched nothing is ever told.
func Files(ctx context.Context, dirs []string, log func(string, ...any)) <-chan struct{} {
	out := make(chan struct{}, 1)
	w, err := fsnotify.NewWatcher()
	if err != nil {
		log("changes of files are not noticed: %v", err)
		go func() {
			defer close(out)
			<-ctx.Done()
		}()
		return out
	}
	for _, d := range dirs {
		if err := w.Add(d); err != nil {
			log("changes in %s are not noticed: %v", d, err)
		}
	}
	go func() {
		defer close(out)
		defer func() { _ = w.Close() }() // nothing is written through it
		quiet := time.NewTimer(time.Hour)
		quiet.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case ev, ok := <-w.Events:
				if !ok {
					return
				}
				if ev.Op != fsnotify.Chmod {
					quiet.Reset(still)
				}
			case err := <-w.Errors:
				if err != nil {
					log("changes of files may be missed: %v", err)
				}
			case <-quiet.C:
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
	}()
	return out
}
