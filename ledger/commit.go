package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxEvents bounds the events of one part.
const MaxEvents = 1024

// prepared is a part with everything done that needs no transaction.
type prepared struct {
	Part
	canon [][]byte // canonical encoding of each event, with N as Tail says
}

// canonical is the encoding of an event that its hash covers. Each field is of
// fixed size, big endian, or led by its length as a uvarint, so that no two
// events share an encoding:
//
//	"pawl event 1\n" run N(8) cmd(16) kind at(8) actor epoch(8) payload
//
// Seq is left out: it belongs to this ledger, the chain to its run, which can
// be carried to another ledger.
func canonical(b []byte, run string, n int64, cmd CommandID, kind string, at int64, actor string, epoch int64, payload []byte) []byte {
	b = append(b, "pawl event 1\n"...)
	b = append(binary.AppendUvarint(b, uint64(len(run))), run...)
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	b = append(b, cmd[:]...)
	b = append(binary.AppendUvarint(b, uint64(len(kind))), kind...)
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	b = append(binary.AppendUvarint(b, uint64(len(actor))), actor...)
	b = binary.BigEndian.AppendUint64(b, uint64(epoch))
	b = append(binary.AppendUvarint(b, uint64(len(payload))), payload...)
	return b
}

// Link returns the hash of an event, given the hash of the one before it in its
// run (zero for the first): SHA-256(prev ‖ canonical event).
func Link(prev Hash, e Event) Hash {
	return link(prev, canonical(nil, e.Run, e.N, e.Cmd, e.Kind, e.At, e.Actor, e.Epoch, e.Payload))
}

func link(prev Hash, canon []byte) (h Hash) {
	s := sha256.New()
	s.Write(prev[:])
	s.Write(canon)
	s.Sum(h[:0])
	return h
}

// prepareParts validates what a caller wants committed, and encodes it. What it
// refuses is a mistake in the program, not a state of the ledger.
func prepareParts(parts []Part) ([]prepared, error) {
	if len(parts) == 0 {
		return nil, errors.New("commit: no parts")
	}
	out := make([]prepared, len(parts))
	for i, p := range parts {
		for j := range parts[:i] {
			if parts[j].Run == p.Run {
				return nil, fmt.Errorf("commit: two parts for run %s", p.Run)
			}
			if parts[j].Cmd == p.Cmd {
				return nil, fmt.Errorf("commit: two parts under command %x", p.Cmd)
			}
		}
		if err := checkPart(&p); err != nil {
			return nil, fmt.Errorf("commit to run %q: %w", p.Run, err)
		}
		canon := make([][]byte, len(p.Events))
		for j, e := range p.Events {
			size := 80 + len(p.Run) + len(e.Kind) + len(e.Actor) + len(e.Payload)
			canon[j] = canonical(make([]byte, 0, size), p.Run, p.Tail+int64(j)+1, p.Cmd, e.Kind, e.At, e.Actor, p.Epoch, e.Payload)
		}
		out[i] = prepared{Part: p, canon: canon}
	}
	return out, nil
}

func checkPart(p *Part) error {
	switch {
	case p.Run == "":
		return errors.New("no run named")
	case p.Cmd == CommandID{}:
		return errors.New("no command id")
	case p.Epoch < 0 || p.Tail < 0:
		return errors.New("negative epoch or tail")
	case (p.Claim || p.Release) && p.Epoch == 0:
		return errors.New("a claim or release needs an epoch")
	case len(p.Events) > MaxEvents:
		return fmt.Errorf("%d events in one part, the limit is %d", len(p.Events), MaxEvents)
	case p.Tail == 0 && len(p.Events) == 0:
		return errors.New("a run begins with an event")
	}
	for _, e := range p.Events {
		if e.Kind == "" || e.Actor == "" {
			return errors.New("an event without kind or actor")
		}
		if len(e.Payload) > MaxPayload {
			return fmt.Errorf("a payload of %d bytes, the limit is %d: put it into a blob", len(e.Payload), MaxPayload)
		}
	}
	return p.Rows.check(p.Run)
}

// Commit appends all parts in one transaction or none of them; see Store.
// A command id that is recorded already is not written again: what it did then
// is returned, whatever has happened since.
func (d *DB) Commit(ctx context.Context, dur Durability, parts ...Part) ([]Committed, error) {
	if d.w == nil {
		return nil, &ReadOnlyError{Path: d.o.Path, Reason: d.roReason}
	}
	ps, err := prepareParts(parts)
	if err != nil {
		return nil, err
	}
	for i := range ps {
		p := &ps[i]
		if p.Epoch > 0 && p.Holder == "" {
			p.Holder = d.id
		}
		if p.Blobs, err = d.stage(ctx, p.Blobs); err != nil {
			return nil, err
		}
	}
	r := &request{full: dur == Full, parts: ps}
	if err := d.w.submit(ctx, r); err != nil {
		return nil, err
	}
	return r.out, nil
}

// commitParts checks all of r's parts and then writes them. It sets r.ran as
// soon as it writes anything.
func (w *writer) commitParts(r *request) error {
	states := make([]*runState, len(r.parts))
	var refused error
	quiet := false
	for i := range r.parts {
		p := &r.parts[i]
		st, err := w.state(p.Run)
		if err != nil {
			return err
		}
		states[i] = st
		if err := w.check(p, st); err != nil && refused == nil {
			refused = err
		}
		quiet = quiet || len(p.Events) == 0
	}
	// A part that appends moves the tail, so one whose tail still fits cannot
	// have been committed before; only the others need to be looked for.
	if refused != nil || quiet {
		out, err := w.recorded(r.parts)
		if err != nil {
			return err
		}
		if out != nil {
			r.out = out
			for i := range r.parts {
				w.hold(&r.parts[i])
			}
			return nil
		}
		if refused != nil {
			return refused
		}
	}
	r.ran = true
	r.out = make([]Committed, len(r.parts))
	for i := range r.parts {
		c, err := w.write(&r.parts[i], states[i])
		if err != nil {
			return err
		}
		r.out[i] = c
		if c.FirstSeq > 0 {
			r.head = Head{Seq: c.FirstSeq + int64(len(r.parts[i].Events)) - 1, Hash: c.Hash}
		}
	}
	return nil
}

// state returns what the ledger says of run now.
func (w *writer) state(run string) (*runState, error) {
	if st := w.known[run]; st != nil {
		return st, nil
	}
	st := &runState{}
	k, err := w.c.one("SELECT k FROM chain WHERE id = ?", run)
	if err != nil {
		return nil, err
	}
	if st.k = num(k); st.k != 0 {
		if _, err := w.c.row(func(v []driver.Value) {
			st.tail, st.hash = num(v[0])+num(v[1])-1, hashOf(v[2])
		}, "SELECT n0, count, hash FROM part WHERE run = ? ORDER BY n0 DESC LIMIT 1", st.k); err != nil {
			return nil, err
		}
		if _, err := w.c.row(func(v []driver.Value) {
			st.lease = leaseRow{holder: text(v[0]), epoch: num(v[1]), boot: text(v[2]), until: num(v[3]), owner: text(v[4]), there: true}
		}, "SELECT holder, epoch, boot, until, owner FROM lease WHERE run = ?", st.k); err != nil {
			return nil, err
		}
	}
	w.known[run] = st
	return st, nil
}

// check is all that can refuse a part.
func (w *writer) check(p *prepared, st *runState) error {
	l := &st.lease
	switch {
	case p.Claim:
		if l.holder != "" && l.holder != p.Holder && w.d.leaseLive(l) {
			return &HeldError{Run: p.Run, Owner: l.owner, Left: w.d.leaseLeft(l)}
		}
		if p.Epoch != l.epoch+1 {
			return &FencedError{Run: p.Run, Epoch: p.Epoch, Current: l.epoch, Owner: l.owner}
		}
	case p.Epoch > 0:
		if l.epoch != p.Epoch || l.holder != p.Holder {
			e := &FencedError{Run: p.Run, Epoch: p.Epoch, Current: l.epoch}
			if l.holder != "" {
				e.Owner = l.owner
			}
			return e
		}
	}
	if p.Tail != st.tail {
		return &TailError{Run: p.Run, Want: p.Tail, Have: st.tail}
	}
	return nil
}

// recorded returns what parts did when they were committed before; nil if they
// were not.
func (w *writer) recorded(parts []prepared) ([]Committed, error) {
	var out []Committed
	for i := range parts {
		p := &parts[i]
		var run string
		c := Committed{Run: p.Run}
		found, err := w.c.row(func(v []driver.Value) {
			run = text(v[0])
			c.FirstSeq, c.Tail, c.Hash = num(v[1]), num(v[2])+num(v[3])-1, hashOf(v[4])
		}, "SELECT c.id, p.first, p.n0, p.count, p.hash FROM part p JOIN chain c ON c.k = p.run WHERE p.cmd = ?", p.Cmd[:])
		if err == nil && !found {
			found, err = w.c.row(func(v []driver.Value) {
				run, c.Tail, c.Hash = text(v[0]), num(v[1]), hashOf(v[2])
			}, "SELECT c.id, q.tail, q.hash FROM quiet q JOIN chain c ON c.k = q.run WHERE q.cmd = ?", p.Cmd[:])
		}
		if err != nil {
			return nil, err
		}
		if found && run != p.Run || found && len(out) != i || !found && len(out) > 0 {
			return nil, fmt.Errorf("commit to run %q: command %x was used before for something else", p.Run, p.Cmd)
		}
		if found {
			out = append(out, c)
		}
	}
	return out, nil
}

// write carries out one part that was checked.
func (w *writer) write(p *prepared, st *runState) (Committed, error) {
	fail := func(err error) (Committed, error) { return Committed{}, err }
	if st.k == 0 {
		v, err := w.c.one("SELECT coalesce(max(k), 0) + 1 FROM chain")
		if err != nil {
			return fail(err)
		}
		if _, err := w.c.exec("INSERT INTO chain(k, id) VALUES(?, ?)", num(v), p.Run); err != nil {
			return fail(err)
		}
		st.k = num(v)
	}
	if p.Claim {
		if err := w.claim(p, st); err != nil {
			return fail(err)
		}
	}
	for i := range p.Blobs {
		if err := putBlob(w.c, &p.Blobs[i]); err != nil {
			return fail(err)
		}
	}
	out := Committed{Run: p.Run}
	if len(p.Events) > 0 {
		first, err := w.append(p, st)
		if err != nil {
			return fail(err)
		}
		out.FirstSeq = first
	} else if _, err := w.c.exec("INSERT INTO quiet(cmd, run, tail, hash) VALUES(?, ?, ?, ?)", p.Cmd[:], st.k, st.tail, st.hash[:]); err != nil {
		return fail(err)
	}
	out.Tail, out.Hash = st.tail, st.hash
	if err := w.putRows(st.k, &p.Rows); err != nil {
		return fail(err)
	}
	if p.Release {
		if err := w.release(p, st); err != nil {
			return fail(err)
		}
	}
	return out, nil
}

// append writes the events of p and moves st to the new tail.
func (w *writer) append(p *prepared, st *runState) (first int64, err error) {
	if w.next == 0 {
		v, err := w.c.one("SELECT coalesce(max(seq), 0) + 1 FROM event")
		if err != nil {
			return 0, err
		}
		w.next = num(v)
	}
	first = w.next
	hash := st.hash
	for _, c := range p.canon {
		hash = link(hash, c)
	}
	at := p.Events[0].At
	if err := w.c.put("INSERT INTO part(first, run, n0, count, at, epoch, cmd, hash) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
		first, st.k, st.tail+1, len(p.Events), at, p.Epoch, p.Cmd[:], hash[:]); err != nil {
		return 0, err
	}
	for i := range p.Events {
		e := &p.Events[i]
		kind, err := w.word(e.Kind)
		if err != nil {
			return 0, err
		}
		actor, err := w.word(e.Actor)
		if err != nil {
			return 0, err
		}
		payload := e.Payload
		if payload == nil {
			payload = []byte{}
		}
		if err := w.c.put("INSERT INTO event(seq, kind, actor, late, payload) VALUES(?, ?, ?, ?, ?)",
			first+int64(i), kind, actor, e.At-at, payload); err != nil {
			return 0, err
		}
	}
	w.next += int64(len(p.Events))
	st.tail += int64(len(p.Events))
	st.hash = hash
	return first, nil
}
