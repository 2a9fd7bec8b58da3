package views

import (
	"fmt"
	"strings"

	"pawl/views/safe"
)

// Choice is one way out of an ambiguous effect.
type Choice struct {
	Key       string
	Title     string
	Cost      string // if wrong
	ModelText string // exactly what the model will receive
	Why       string // why it may not be chosen; empty if it may
	Forced    bool   // the operator's word, not proof
}

// Effect is all that is known about one effect.
type Effect struct {
	Short    string // "e7"
	Summary  string
	Sentence string // what may have happened, since when, what waits for it
	State    string
	Class    string
	Settled  bool
	Look     string // a command or URL with which to see for oneself
	LookHow  string // "run", "open"
	CopyKey  string
	Meant    []Field
	Known    []Field
	Looked   []Field
	Quiet    Quiet
	Choices  []Choice
}

// Quiet is how far the proof has come that nothing can still land.
type Quiet struct {
	Proven bool    // the senders are dead
	Proof  string  // how that is known, or what is missing
	Full   float64 // 0…1 of the in-flight bound passed
	Passed string
	Needed string // empty: there is no bound to wait for
}

// Card lays the effect out for a panel of w cells.
func (e Effect) Card(pen Pen, w int) Card {
	iw, _ := Inner(w, 2)
	d := &doc{pen: pen, w: iw}
	lead := pen.Warn
	if e.Settled {
		lead = pen.Strong
	}
	if e.Sentence != "" {
		d.prose(lead, e.Sentence)
	}
	if e.Look != "" {
		d.blank()
		how := map[string]string{"run": "See for yourself, run", "open": "See for yourself, open"}[e.LookHow]
		if how == "" {
			how = "See for yourself"
		}
		if e.CopyKey != "" {
			how += " (" + e.CopyKey + " copies)"
		}
		d.prose(pen.Dim, how+":")
		d.indented(pen.Accent, 3, e.Look)
	}
	d.heading("What was meant")
	d.fields(append([]Field{{"effect", e.Short + " · " + e.State + " · " + e.Class}}, e.Meant...))
	if len(e.Known) > 0 {
		d.heading("What is known")
		d.fields(e.Known)
	}
	d.heading("What was looked at")
	if len(e.Looked) == 0 {
		d.indented(pen.Dim, 2, "nothing yet")
	}
	d.fields(e.Looked)
	if !e.Settled {
		d.heading("Can it still land?")
		e.Quiet.draw(d)
	}
	if len(e.Choices) > 0 {
		d.heading("Ways out")
		d.indented(pen.Dim, 2, "None is chosen for you. Each asks once more before it counts.")
		for _, c := range e.Choices {
			c.draw(d)
		}
	}
	return d.card("effect " + safe.Line(e.Short) + " · " + tight(e.Summary, w))
}

func (q Quiet) draw(d *doc) {
	switch {
	case !q.Proven:
		d.field("it may", q.Proof, 8, d.pen.Warn)
	case q.Needed == "" || q.Full >= 1:
		d.field("no", q.Proof, 8, d.pen.Good)
	default:
		d.field("a while", q.Proof, 8, d.pen.Text)
		w := min(max(d.w-30, 8), 30)
		r := d.pen.row(d.w).gap(2)
		r.b.WriteString(Gauge(d.pen, q.Full, w, d.pen.Accent))
		r.left -= w
		d.rows = append(d.rows, r.put(d.pen.Dim, " "+q.Passed+" of "+q.Needed).end())
	}
}

func (c Choice) draw(d *doc) {
	d.blank()
	r := d.pen.row(d.w).gap(2)
	if c.Why == "" {
		r.put(d.pen.Key, c.Key).gap(2).put(d.pen.Strong, safe.Line(c.Title))
		if c.Forced {
			r.put(d.pen.Warn, "  your word, marked as forced")
		}
	} else {
		r.put(d.pen.Dim, "–").gap(2).put(d.pen.Dim, safe.Line(c.Title))
	}
	d.rows = append(d.rows, r.end())
	if c.Why != "" {
		d.indented(d.pen.Dim, 5, "not now: "+c.Why)
		return
	}
	c.detail(d, 5)
}

func (c Choice) detail(d *doc, indent int) {
	if c.Cost != "" {
		d.indented(d.pen.Dim, indent, "if wrong: "+c.Cost)
	}
	if c.ModelText != "" {
		d.indented(d.pen.Dim, indent, "the model gets:")
		d.indented(d.pen.Text, indent+2, c.ModelText)
	}
}

// Confirm lays a choice's last step out for w cells: its price and the exact
// words, before anything counts.
func (c Choice) Confirm(pen Pen, w int) []string {
	d := &doc{pen: pen, w: w}
	if c.Forced {
		d.prose(pen.Warn, "This is your word, not a proof. It is kept apart as forced, and later evidence reopens it.")
	}
	if c.Cost != "" {
		d.blank()
		d.prose(pen.Dim, "If wrong:")
		d.indented(pen.Text, 3, c.Cost)
	}
	d.blank()
	if c.ModelText != "" {
		d.prose(pen.Dim, "The model will receive exactly this:")
		d.indented(pen.Text, 3, c.ModelText)
	} else {
		d.prose(pen.Dim, "The model receives nothing for now.")
	}
	return d.rows
}

// File is a file whose content an approval covers.
type File struct{ Path, Digest string }

// Approval is exactly what will run.
type Approval struct {
	Short   string // "a3"
	Effect  string
	Goal    string
	State   string
	Pending bool
	Tool    string
	Class   string
	Summary string
	Text    string // every line of it
	Dir     string
	Target  string
	Env     []Field
	Files   []File
	Network bool
	Level   string
	Why     string
	Drift   string
	Like    []string
	Rule    string // the --allow rule that would cover it
	Digest  string
}

// Card lays the approval out for a panel of w cells.
func (a Approval) Card(pen Pen, w int) Card {
	iw, _ := Inner(w, 2)
	d := &doc{pen: pen, w: iw}
	if a.Pending {
		d.prose(pen.Warn, "May exactly this run?")
	} else {
		d.prose(pen.Strong, "This approval is "+a.State+".")
	}
	if a.Drift != "" {
		d.blank()
		d.prose(pen.Warn, "Changed since it was last asked:")
		d.indented(pen.Text, 3, a.Drift)
	}
	for i, l := range a.Like {
		if i == 0 {
			d.blank()
			d.prose(pen.Warn, "It resembles what is still unresolved; running it may do the same thing twice:")
		}
		d.indented(pen.Text, 3, l)
	}
	d.heading("What will run")
	d.code(a.Text)
	d.heading("Where and how")
	network := "no"
	if a.Network {
		network = "yes"
	}
	fields := []Field{{"tool", a.Tool + " · " + a.Class}}
	for _, f := range []Field{{"directory", a.Dir}, {"target", a.Target}} {
		if f.Value != "" {
			fields = append(fields, f)
		}
	}
	fields = append(fields, Field{"network", network})
	if a.Level != "" {
		fields = append(fields, Field{"confined", a.Level + " (measured)"})
	}
	fields = append(fields, Field{"asked by", a.Why}, Field{"for", a.Goal})
	if a.Rule != "" {
		fields = append(fields, Field{"rule", a.Rule + " would cover it from now on"})
	}
	d.fields(fields)
	if len(a.Env) > 0 {
		d.heading("Environment that differs")
		d.fields(a.Env)
	}
	if len(a.Files) > 0 {
		d.heading("Files that it names, by content")
		for _, f := range a.Files {
			d.field(f.Digest, f.Path, 12, pen.Text)
		}
	}
	d.heading("Bound to")
	d.field("digest", a.Digest, 6, pen.Dim)
	return d.card("approval " + safe.Line(a.Short) + " · " + tight(a.Summary, w))
}

// Question is a question with its answers.
type Question struct {
	Short   string
	Goal    string
	Sort    string
	Text    string
	Choices []string // if any; else free text
	Fields  []Field
	Closed  string // why it takes no answer any more
}

// Card lays the question out for a panel of w cells.
func (q Question) Card(pen Pen, w int) Card {
	iw, _ := Inner(w, 2)
	d := &doc{pen: pen, w: iw}
	d.prose(pen.Strong, q.Text)
	if q.Closed != "" {
		d.blank()
		d.prose(pen.Dim, q.Closed)
	}
	if len(q.Choices) > 0 && q.Closed == "" {
		d.heading("Answers")
		for i, c := range q.Choices {
			d.field(fmt.Sprint(i+1), c, 2, pen.Text)
		}
	}
	d.heading("About")
	d.fields(append([]Field{{"for", q.Goal}}, q.Fields...))
	return d.card(safe.Line(q.Sort) + " " + safe.Line(q.Short))
}

// Landing is how a run's work would reach the operator's branch.
type Landing struct {
	Branch, Onto, Commit, How string
	Files, Conflicts          []string
	Leftovers                 []string // uncommitted work, committed first
	Blocked                   string
	Done                      bool
}

// Rows lays the landing out for w cells.
func (l Landing) Rows(pen Pen, w int) []string {
	d := &doc{pen: pen, w: w}
	switch {
	case l.Blocked != "":
		d.prose(pen.Bad, "It cannot land now: "+l.Blocked)
	case l.Done:
		d.prose(pen.Good, "Landed on "+l.Onto+".")
	case len(l.Conflicts) > 0:
		d.prose(pen.Bad, count(len(l.Conflicts), "file conflicts", "files conflict")+" with "+l.Onto+". Landing asks you about them; nothing of yours is overwritten.")
	default:
		d.prose(pen.Strong, "Lands cleanly on "+l.Onto+".")
	}
	d.blank()
	var fields []Field
	for _, f := range []Field{{"from", l.Branch}, {"onto", l.Onto}, {"how", l.How}, {"commit", l.Commit}} {
		if f.Value != "" {
			fields = append(fields, f)
		}
	}
	d.fields(fields)
	list := func(head string, names []string) {
		if len(names) == 0 {
			return
		}
		d.heading(head)
		for i, n := range names {
			if i == 200 {
				d.indented(pen.Dim, 2, fmt.Sprintf("and %d more", len(names)-i))
				break
			}
			spans, found := safe.LineSpans(n)
			d.found = d.found.Add(found)
			d.rows = append(d.rows, pen.row(w).gap(2).spans(pen.Text, spans).end())
		}
	}
	list("Conflicts", l.Conflicts)
	list("Uncommitted, committed first", l.Leftovers)
	list("Files", l.Files)
	return d.rows
}

// Short is the part of an id after its run: "e7" of "rabc.e7".
func Short(id string) string {
	if _, s, ok := strings.Cut(id, "."); ok {
		return s
	}
	return id
}
