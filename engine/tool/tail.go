package tool

import (
	"os"
	"time"
)

// tail follows the output file of a running command: it hands on what is new
// and stops a command that prints too much. The file is looked at, not
// watched: a look costs microseconds and happens only while a command runs.
//
// Its goroutine is the only one that calls the output function; finish joins it.
type tail struct {
	quit    chan struct{}
	done    chan struct{}
	tooMuch bool // valid after done
}

// startTail begins to follow path. over is called, once, when more than limit
// bytes were printed.
func startTail(path string, every time.Duration, limit int64, out func([]byte), over func()) *tail {
	t := &tail{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		f, err := os.Open(path)
		if err != nil {
			<-t.quit // without its output a command still has an end
			return
		}
		defer func() { _ = f.Close() }()
		buf := make([]byte, 32<<10)
		var read int64
		drain := func() {
			for {
				n, err := f.Read(buf)
				read += int64(n)
				if n > 0 && out != nil {
					out(buf[:n])
				}
				if read > limit && !t.tooMuch {
					t.tooMuch = true
					over()
				}
				if err != nil || n == 0 || t.tooMuch {
					return
				}
			}
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				drain()
			case <-t.quit:
				drain()
				return
			}
		}
	}()
	return t
}

// finish reads what is left and reports whether the command was stopped for
// printing too much. After it the output function is not called any more.
func (t *tail) finish() bool {
	close(t.quit)
	<-t.done
	return t.tooMuch
}
