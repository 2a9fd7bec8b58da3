// Package fakeopenai is a server that speaks the chat-completions and the
// messages wire format and answers from a script, so that the code for real providers can be run
// without a key and without a network. It is strict: a request that a real
// provider would refuse is refused here.
package fakeopenai

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/scripted"
)

// Options are the ways of a server.
type Options struct {
	Script *scripted.Script
	Vars   map[string]string // {{env.NAME}}
	Key    string            // if set, requests must carry it
	// NoUsage leaves the usage out, as some servers do.
	NoUsage bool
	// CleanCut ends a stream that is cut with a regular end of the body,
	// which hides the cut from HTTP.
	CleanCut bool
	// CutAfter ends every streamed body after that many bytes; 0: never.
	CutAfter int
}

// Request is one request that arrived, for tests.
type Request struct {
	Header http.Header
	Body   []byte
}

// Server answers from a script. It is safe for concurrent use.
type Server struct {
	URL string // base URL, with /v1

	o    Options
	http *http.Server
	done chan struct{} // closed when the listener's goroutine has ended

	mu       sync.Mutex
	requests []Request
	tries    map[[32]byte]int  // requests without a name, by body
	places   map[string]string // run and turn → the script's place after it
}

// New returns a server as a handler; Start makes it listen.
func New(o Options) *Server {
	return &Server{o: o, tries: map[[32]byte]int{}, places: map[string]string{}}
}

// Start listens on an address of this machine, "127.0.0.1:0" for any free port.
// Close ends it.
func Start(addr string, o Options) (*Server, error) {
	s := New(o)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	s.URL = "http://" + l.Addr().String() + "/v1"
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // ends by Close
	}()
	return s, nil
}

// Close ends the server and its connections.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

// Requests returns what arrived so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
		writeJSON(w, http.StatusOK, object{"object": "list", "data": []object{{"id": s.o.Script.Name, "object": "model"}}})
	case r.Method == http.MethodPost && r.URL.Path == "/v1/chat/completions":
		s.complete(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
		s.messages(w, r)
	default:
		writeJSON(w, http.StatusNotFound, refusal{text: "no such path: " + r.URL.Path, kind: "invalid_request_error", code: "not_found"}.body())
	}
}

// take reads and keeps a request.
func (s *Server) take(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			writeJSON(w, http.StatusRequestEntityTooLarge, refusal{text: "the request is larger than 64 MiB"}.body())
		}
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{Header: r.Header.Clone(), Body: body})
	return body, true
}

func (s *Server) requestID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("req-%d", len(s.requests))
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, ok := s.take(w, r)
	if !ok {
		return
	}
	if s.o.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.o.Key {
		refuse(w, machine.FailAuth, 0, "")
		return
	}
	var q wireRequest
	if err := json.Unmarshal(body, &q); err != nil {
		refuse(w, machine.FailBadRequest, 0, "the body is no JSON of a request: "+err.Error())
		return
	}
	req, err := q.read()
	if err == nil && !q.Stream {
		err = errors.New("only streams are answered: set stream to true")
	}
	if err != nil {
		refuse(w, machine.FailBadRequest, 0, err.Error())
		return
	}
	s.place(&req, r.Header.Get("X-Client-Request-Id"), body)
	req.Vars = s.o.Vars
	reply, err := s.o.Script.Play(req)
	if err != nil {
		refuse(w, machine.FailBadRequest, 0, err.Error())
		return
	}
	if reply.Fail != "" && reply.FailAt == scripted.FailAtStart && reply.Fail != machine.FailEmpty {
		if reply.Fail == machine.FailCut || reply.Fail == machine.FailNetwork {
			panic(http.ErrAbortHandler) // closes the connection without a word
		}
		refuse(w, reply.Fail, reply.RetryAfter, "")
		return
	}
	s.answer(w, r.Context(), q, req, reply)
}

// place finds out which turn and attempt this is: from the request's name if
// it has one, else by counting equal requests.
func (s *Server) place(req *model.Request, name string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run, turn, attempt, ok := parseName(name)
	if !ok {
		sum := sha256.Sum256(body)
		s.tries[sum]++
		req.Attempt = s.tries[sum]
		return
	}
	req.Run, req.Turn, req.Attempt = run, turn, attempt
	req.Prior = s.places[fmt.Sprintf("%s %d", run, turn-1)]
}

func (s *Server) remember(req model.Request, reply scripted.Reply) {
	if req.Run == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[fmt.Sprintf("%s %d", req.Run, req.Turn)] = reply.Place
}

// parseName reads "RUN-tTURN-aATTEMPT".
func parseName(name string) (run string, turn, attempt int, ok bool) {
	i := strings.LastIndex(name, "-a")
	if i < 0 {
		return "", 0, 0, false
	}
	j := strings.LastIndex(name[:i], "-t")
	if j < 0 {
		return "", 0, 0, false
	}
	turn, err1 := strconv.Atoi(name[j+2 : i])
	attempt, err2 := strconv.Atoi(name[i+2:])
	return name[:j], turn, attempt, err1 == nil && err2 == nil && turn > 0 && attempt > 0 && j > 0
}

// answer streams a reply, up to where it is to fail.
func (s *Server) answer(w http.ResponseWriter, ctx context.Context, q wireRequest, req model.Request, reply scripted.Reply) {
	if reply.Fail == machine.FailEmpty {
		reply.Text, reply.Calls, reply.Stop, reply.Fail = "", nil, machine.StopEnd, ""
	}
	var usage *machine.Usage
	if q.StreamOptions.IncludeUsage && !s.o.NoUsage {
		u := model.Estimate(req, reply.Text, reply.Calls)
		usage = &u
	}
	s.mu.Lock()
	id := fmt.Sprintf("chatcmpl-%d", len(s.requests))
	s.mu.Unlock()
	pieces := stream(id, q.Model, reply, usage)
	w.Header().Set("X-Request-Id", "req-"+id)
	s.send(w, ctx, pieces, req, reply, func(c machine.FailClass) piece { return piece{data: encode(refusalOf(c).body())} })
}

// send streams the pieces of a reply, up to where it is to fail.
func (s *Server) send(w http.ResponseWriter, ctx context.Context, pieces []piece, req model.Request, reply scripted.Reply, fault func(machine.FailClass) piece) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := &cutter{w: w, left: math.MaxInt}
	if s.o.CutAfter > 0 {
		out.left = s.o.CutAfter
	}
	end := failAt(pieces, reply)
	for i, p := range pieces {
		if reply.Fail != "" && i == end {
			if reply.Fail == machine.FailCut || reply.Fail == machine.FailNetwork {
				s.cut()
				return
			}
			out.event(fault(reply.Fail))
			return
		}
		if reply.Delay > 0 {
			select {
			case <-time.After(reply.Delay):
			case <-ctx.Done():
				return
			}
		}
		if !out.event(p) {
			s.cut()
			return
		}
	}
	s.remember(req, reply)
}

// cut breaks a stream off.
func (s *Server) cut() {
	if !s.o.CleanCut {
		panic(http.ErrAbortHandler)
	}
}

// failAt is the index of the piece before which the answer fails.
func failAt(pieces []piece, reply scripted.Reply) int {
	want := atText
	switch reply.FailAt {
	case scripted.FailAtArgs:
		want = atArgs
	case scripted.FailAtCalls:
		want = atStop
	case scripted.FailAtStart:
		want = atHead
	case scripted.FailAtText:
	}
	first, n := -1, 0
	for i, p := range pieces {
		if p.at == want {
			if first < 0 {
				first = i
			}
			n++
		}
	}
	if first < 0 { // nothing of that kind: before the stop reason
		for i, p := range pieces {
			if p.at == atStop {
				return i
			}
		}
	}
	return first + n/2
}

// cutter writes events until its bytes are used up.
type cutter struct {
	w    http.ResponseWriter
	left int
}

// event writes one event and reports whether all of it went out.
func (c *cutter) event(p piece) bool {
	b := []byte("data: " + p.data + "\n\n")
	if p.event != "" {
		b = []byte("event: " + p.event + "\n" + string(b))
	}
	n := min(len(b), c.left)
	c.left -= n
	if n > 0 {
		if _, err := c.w.Write(b[:n]); err != nil {
			return false
		}
	}
	if f, ok := c.w.(http.Flusher); ok {
		f.Flush()
	}
	return n == len(b)
}

func refuse(w http.ResponseWriter, class machine.FailClass, after time.Duration, text string) {
	r := refusalOf(class)
	if text != "" {
		r.text = text
	}
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(after.Milliseconds(), 10))
	}
	writeJSON(w, r.status, r.body())
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, encode(v)) // the client may be gone; there is nobody to tell
}
