package scripted

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"pawl/engine/machine"
	"pawl/engine/model"
)

// Reply is what a script answers in one turn, before it is put on any wire.
type Reply struct {
	Step  int // from 1
	Text  string
	Calls []model.RawCall
	Stop  machine.StopReason
	// Fail is the failure that this attempt is to meet, or "".
	Fail       machine.FailClass
	FailAt     FailAt
	RetryAfter time.Duration
	Delay      time.Duration // before each piece of the answer
	Cost       int64         // micro-USD
	// Place is the answer's request id; it holds where the script goes on.
	Place string
}

// place is where a script stands: the next step and how often it was played.
type place struct{ step, played int }

// placeID writes a place as the request id of the answer before it.
func placeID(done int, p place) string {
	return fmt.Sprintf("script-step%d-next%d.%d", done, p.step+1, p.played)
}

// placeOf reads what placeID wrote.
func placeOf(id string) (place, bool) {
	_, rest, ok := strings.Cut(id, "-next")
	if !ok || !strings.HasPrefix(id, "script-step") {
		return place{}, false
	}
	a, b, ok := strings.Cut(rest, ".")
	if !ok {
		return place{}, false
	}
	n, err1 := strconv.Atoi(a)
	k, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || n < 1 || k < 0 {
		return place{}, false
	}
	return place{n - 1, k}, true
}

// Play answers a request. The same request always gets the same reply. The
// error is a *model.Error of class script.
func (s *Script) Play(req model.Request) (Reply, error) {
	at, err := s.find(req)
	if err != nil {
		return Reply{}, err
	}
	shown := lastShown(req.Messages)
	i, a, next, err := s.choose(at, shown)
	if err != nil {
		return Reply{}, err
	}
	r := Reply{
		Step: i + 1, Stop: a.stop, Delay: a.delay, Cost: a.cost, Place: placeID(i+1, next),
	}
	if a.fail != "" && (a.failTimes < 0 || max(req.Attempt, 1) <= a.failTimes) {
		r.Fail, r.FailAt, r.RetryAfter = a.fail, a.failAt, a.retryAfter
	}
	f := filler{shown: shown, vars: req.Vars}
	if r.Text, err = f.fill(a.say); err != nil {
		return Reply{}, s.misfit(i, err.Error(), shown)
	}
	for _, c := range a.calls {
		var k model.RawCall
		if k.Name, err = f.fill(c.tool); err == nil {
			if k.ProviderID, err = f.fill(c.id); err == nil {
				k.Args, err = f.args(c)
			}
		}
		if err != nil {
			return Reply{}, s.misfit(i, err.Error(), shown)
		}
		r.Calls = append(r.Calls, k)
	}
	return r, nil
}

// find says where the script stands before this request: from the last
// answer's id, else by playing through the conversation shown.
func (s *Script) find(req model.Request) (place, error) {
	if p, ok := placeOf(req.Prior); ok {
		return p, nil
	}
	var at place
	from, turns := 0, 0
	for i := range req.Messages {
		if req.Messages[i].Role != model.RoleAssistant {
			continue
		}
		_, _, next, err := s.choose(at, shownIn(req.Messages[from:i]))
		if err != nil {
			return at, err
		}
		at, from = next, i+1
		turns++
	}
	if req.Turn > 0 && turns != req.Turn-1 {
		return at, scriptError("%s: the conversation shows %d earlier answers, but this is turn %d, so the script's place cannot be told. %s",
			s, turns, req.Turn, model.Advice(machine.FailScript))
	}
	return at, nil
}

// choose picks the answer at a place and says where the script goes on.
func (s *Script) choose(at place, shown string) (int, *answer, place, error) {
	for at.step < len(s.steps) {
		st := &s.steps[at.step]
		if at.played > 0 && len(st.until) > 0 && holdsAll(shown, st.until) == "" {
			at = after(at.step, st.own.next)
			continue
		}
		for i := range st.branches {
			if b := &st.branches[i]; holdsAll(shown, b.match) == "" {
				return at.step, &b.answer, after(at.step, b.next), nil
			}
		}
		if err := s.fits(at, shown); err != nil {
			return 0, nil, at, err
		}
		if at.played+1 < st.repeat || len(st.until) > 0 {
			return at.step, &st.own, place{at.step, at.played + 1}, nil
		}
		return at.step, &st.own, after(at.step, st.own.next), nil
	}
	return 0, nil, at, scriptError("%s has no step left: it has %d, and the model was asked once more.\nThe model was shown:\n%s\n%s",
		s, len(s.steps), excerpt(shown), model.Advice(machine.FailScript))
}

// after is the place behind a step.
func after(step, to int) place {
	if to >= 0 {
		return place{to, 0}
	}
	return place{step + 1, 0}
}

// fits reports whether a step's own answer may be given.
func (s *Script) fits(at place, shown string) error {
	st := &s.steps[at.step]
	if len(st.until) > 0 && at.played >= st.repeat {
		return s.misfit(at.step, fmt.Sprintf("it was played %d times and is to go on until the model is shown %q, which did not come",
			at.played, holdsAll(shown, st.until)), shown)
	}
	if miss := holdsAll(shown, st.expect); miss != "" {
		return s.misfit(at.step, fmt.Sprintf("it expects %q in what the model is shown, and that is not there", miss), shown)
	}
	for _, r := range st.reject {
		if strings.Contains(shown, r) {
			return s.misfit(at.step, fmt.Sprintf("it rejects %q, and the model was shown it", r), shown)
		}
	}
	if st.own.say == "" && len(st.own.calls) == 0 && st.own.fail == "" {
		return s.misfit(at.step, "none of its branches matches what the model was shown, and it has no answer of its own", shown)
	}
	return nil
}

func (s *Script) misfit(i int, why, shown string) error {
	st := &s.steps[i]
	name := fmt.Sprintf("step %d", i+1)
	if st.label != "" {
		name += fmt.Sprintf(" %q", st.label)
	}
	if st.line > 0 {
		name += fmt.Sprintf(" (line %d)", st.line)
	}
	return scriptError("%s, %s: %s.\nThe model was shown:\n%s\n%s", s, name, why, excerpt(shown), model.Advice(machine.FailScript))
}

func scriptError(format string, args ...any) error {
	return &model.Error{Class: machine.FailScript, Message: fmt.Sprintf(format, args...)}
}

// lastShown is what came after the model's last answer: the newest results and
// the operator's words.
func lastShown(ms []model.Message) string {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role == model.RoleAssistant {
			return shownIn(ms[i+1:])
		}
	}
	return shownIn(ms)
}

func shownIn(ms []model.Message) string {
	if len(ms) == 1 {
		return ms[0].Text
	}
	var b strings.Builder
	for i := range ms {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(ms[i].Text)
	}
	return b.String()
}

// holdsAll returns the first string that is not in s, or "".
func holdsAll(s string, want []string) string {
	for _, w := range want {
		if !strings.Contains(s, w) {
			return w
		}
	}
	return ""
}

// excerpt keeps a message readable: the head and tail of what was shown.
func excerpt(s string) string {
	const part = 600
	if s == "" {
		return "  (nothing)"
	}
	if len(s) > 2*part {
		head, tail := s[:part], s[len(s)-part:]
		for !utf8.ValidString(head) && len(head) > part-utf8.UTFMax {
			head = head[:len(head)-1]
		}
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
		s = fmt.Sprintf("%s\n… %d bytes …\n%s", head, len(s)-len(head)-len(tail), tail)
	}
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}
