package ledger

import (
	"errors"
	"os"
	"sync"
)

// walSync makes lazy commits power-safe and keeps the head anchor. It has one
// goroutine, which syncs for lazy commits that no full one covered in time; the
// writer only tells it what was committed.
//
// An fdatasync of the write-ahead file covers every commit in it, of whatever
// process. Commits that a checkpoint moved out of it before were synced by that.
type walSync struct {
	d *DB

	mu        sync.Mutex
	made      uint64 // transactions committed by this process
	madeHead  Head
	safe      uint64 // ... of which so many are power-safe
	safeHead  Head
	anchored  Head
	armed     bool
	anchoring bool

	fileMu sync.Mutex // owns f; held during a sync
	f      *os.File

	anchorMu sync.Mutex // one anchor is written at a time
	lazy     chan struct{}
	moved    chan struct{}
	quit     chan struct{}
	wg       sync.WaitGroup
}

func newWALSync(d *DB) *walSync {
	return &walSync{d: d, lazy: make(chan struct{}, 1), moved: make(chan struct{}, 1), quit: make(chan struct{})}
}

func (s *walSync) start() {
	s.wg.Go(func() {
		for {
			select {
			case <-s.lazy:
			case <-s.quit:
				return
			}
			select {
			case <-s.d.o.After(s.d.o.LazyAfter):
			case <-s.quit:
				return
			}
			s.mu.Lock()
			s.armed = false
			due := s.safe < s.made
			s.mu.Unlock()
			if due {
				if s.sync() == nil {
					s.d.stats.lazySyncs.Add(1)
				} else {
					s.rearm() // the disk failed; what is not safe stays due
				}
			}
		}
	})
	s.wg.Go(func() {
		for {
			select {
			case <-s.moved:
			case <-s.quit:
				return
			}
			select {
			case <-s.d.o.After(anchorAfter):
			case <-s.quit:
				return
			}
			s.anchorNow() // its failure weakens the next start's check, no more
		}
	})
}

// committed is told by the writer of each transaction; head is zero if it
// appended nothing.
func (s *walSync) committed(full bool, head Head) {
	s.mu.Lock()
	s.made++
	if head.Seq > 0 {
		s.madeHead = head
	}
	arm := false
	if full {
		s.safe, s.safeHead = s.made, s.madeHead
	} else if !s.armed {
		s.armed, arm = true, true
	}
	move := full && s.safeHead.Seq > s.anchored.Seq && !s.anchoring
	if move {
		s.anchoring = true
	}
	s.mu.Unlock()
	if arm {
		poke(s.lazy)
	}
	if move {
		poke(s.moved)
	}
}

func (s *walSync) rearm() {
	s.mu.Lock()
	s.armed = true
	s.mu.Unlock()
	poke(s.lazy)
}

// sync makes everything committed before it power-safe.
func (s *walSync) sync() error {
	s.mu.Lock()
	mark, head := s.made, s.madeHead
	s.mu.Unlock()
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	if err := s.reopen(); err != nil {
		return err
	}
	if s.f != nil {
		if err := s.d.o.syncWAL(s.f); err != nil {
			return err
		}
	}
	s.mu.Lock()
	if mark > s.safe {
		s.safe, s.safeHead = mark, head
	}
	move := s.safeHead.Seq > s.anchored.Seq && !s.anchoring
	if move {
		s.anchoring = true
	}
	s.mu.Unlock()
	if move {
		poke(s.moved)
	}
	return nil
}

// reopen makes f the present write-ahead file. SQLite holds no locks on that
// file, so a descriptor of our own does no harm (unlike one of the ledger).
func (s *walSync) reopen() error {
	st, err := os.Stat(s.d.o.wal())
	if errors.Is(err, os.ErrNotExist) {
		return nil // nothing was written since it was last removed
	}
	if err != nil {
		return err
	}
	if s.f != nil {
		if have, err := s.f.Stat(); err == nil && os.SameFile(st, have) {
			return nil
		}
		s.f.Close()
	}
	s.f, err = os.OpenFile(s.d.o.wal(), os.O_RDWR, 0)
	return err
}

// anchorNow writes the anchor if a newer head is safe. An anchor that another
// process put further ahead stays.
func (s *walSync) anchorNow() error {
	s.anchorMu.Lock()
	defer s.anchorMu.Unlock()
	s.mu.Lock()
	h, old := s.safeHead, s.anchored
	s.anchoring = false
	s.mu.Unlock()
	if h.Seq <= old.Seq {
		return nil
	}
	if now, ok, err := readAnchor(s.d.o.anchor()); err == nil && ok && now.Seq >= h.Seq {
		s.setAnchored(h)
		return nil
	}
	if err := writeAnchor(s.d.o.anchor(), s.d.o.anchor()+"."+s.d.id, h); err != nil {
		return err
	}
	s.setAnchored(h)
	return nil
}

// reanchor moves the anchor back after a loss was accepted.
func (s *walSync) reanchor(h Head) error {
	s.anchorMu.Lock()
	defer s.anchorMu.Unlock()
	if err := writeAnchor(s.d.o.anchor(), s.d.o.anchor()+"."+s.d.id, h); err != nil {
		return err
	}
	s.setAnchored(h)
	return nil
}

func (s *walSync) setAnchored(h Head) {
	s.mu.Lock()
	s.anchored = h
	s.mu.Unlock()
}

// close is called after the last commit.
func (s *walSync) close() error {
	close(s.quit)
	s.wg.Wait()
	s.mu.Lock()
	due := s.safe < s.made
	s.mu.Unlock()
	var err error
	if due {
		err = plain(s.d.o.Path, "sync", s.sync())
	}
	if err == nil {
		s.anchorNow()
	}
	s.closeFile()
	return err
}

// abandon is close for a handle that never came up: it writes nothing.
func (s *walSync) abandon() {
	close(s.quit)
	s.wg.Wait()
	s.closeFile()
}

func (s *walSync) closeFile() {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	if s.f != nil {
		s.f.Close()
		s.f = nil
	}
}

// poke signals ch without waiting; signals merge.
func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
