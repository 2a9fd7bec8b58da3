package views

import (
	"fmt"

	"pawl/views/safe"
)

// Step is one thing that an interruption left open.
type Step struct {
	Key   string // opens it; empty if there is nothing to open
	Sign  string // one cell
	State string // a word: the sign is never alone
	Tone  Tone
	Title string
	How   string
	More  []string
}

// Recovery is a run's interruption, step by step.
type Recovery struct {
	Goal   string
	When   string // "3m ago"
	Never  bool   // it was never interrupted in the middle of something
	Steps  []Step
	Closed int // steps that are settled
	Held   bool
	GoKey  string
	Next   string
}

// Card lays the steps out for a panel of w cells.
func (r Recovery) Card(pen Pen, w int) Card {
	iw, _ := Inner(w, 2)
	d := &doc{pen: pen, w: iw}
	title := "recovery · " + tight(r.Goal, w)
	if r.Never {
		d.prose(pen.Text, "This run was never interrupted in the middle of something.")
		d.heading("What happens next")
		d.indented(pen.Text, 2, r.Next)
		return d.card(title)
	}
	lead := pen.Good
	if r.Closed < len(r.Steps) {
		lead = pen.Warn
	}
	d.prose(lead, fmt.Sprintf("Interrupted %s. %d of %d steps settled.", r.When, r.Closed, len(r.Steps)))
	gauge := d.pen.row(d.w).gap(1)
	gw := min(max(d.w-20, 8), 40)
	full := 1.0
	if len(r.Steps) > 0 {
		full = float64(r.Closed) / float64(len(r.Steps))
	}
	gauge.b.WriteString(Gauge(pen, full, gw, pen.Accent))
	gauge.left -= gw
	d.rows = append(d.rows, gauge.end())
	for i, s := range r.Steps {
		d.blank()
		row := pen.row(iw).gap(1).put(pen.Dim, fmt.Sprintf("%d. ", i+1)).put(pen.tone(s.Tone), safe.Line(s.Sign)+" "+s.State).gap(2).put(pen.Strong, tight(s.Title, iw))
		if s.Key != "" {
			row.gap(2).put(pen.Key, s.Key).put(pen.Dim, " opens")
		}
		d.rows = append(d.rows, row.end())
		d.indented(pen.Text, 6, s.How)
		for _, m := range s.More {
			d.indented(pen.Dim, 6, m)
		}
	}
	d.heading("What happens next")
	d.indented(pen.Text, 2, r.Next)
	switch {
	case r.Held && r.Closed < len(r.Steps):
		d.indented(pen.Dim, 2, "Nothing that the model proposed is sent until every step is settled and you let the run go on.")
	case r.Held:
		d.indented(pen.Warn, 2, "The run is held. "+r.GoKey+" lets it go on.")
	case r.Closed < len(r.Steps):
		d.indented(pen.Dim, 2, "When you settle a step from here, the run is held until you have seen what comes next and let it go on.")
	}
	return d.card(title)
}
