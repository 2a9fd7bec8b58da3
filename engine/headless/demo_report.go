package headless

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pawl/engine/machine"
	"pawl/fixtures/sample"
	"pawl/fixtures/scripts"
	"pawl/fixtures/world"
)

// demoReport is the end of a demo. Kills are what the system told their
// parent; replays, probes and decisions are counted from the ledger's events,
// duplicates and losses from the world's log and the git remote.
type demoReport struct {
	OK                bool          `json:"ok"`
	Kills             int           `json:"kills"`
	Replayed          int           `json:"replayed"`
	Probed            int           `json:"probed"`
	OperatorDecisions int           `json:"operator_decisions"` // verdicts on what was unknown
	Approvals         int           `json:"approvals"`          // granted before anything was sent
	Duplicates        int           `json:"duplicates"`
	Lost              int           `json:"lost"`
	Unexpected        int           `json:"unexpected"`
	Steps             []demoStep    `json:"steps"`
	Acts              []demoAct     `json:"acts"`
	World             []world.Count `json:"world"`
	Findings          []string      `json:"findings"`
	Run               machine.RunID `json:"run"`
	State             machine.Phase `json:"state"`
	Checked           bool          `json:"checked"`
	Landed            bool          `json:"landed"`
	Verified          bool          `json:"verified"`
	Confinement       string        `json:"confinement"`
	Seconds           float64       `json:"seconds"` // of this sitting
	Dir               string        `json:"dir"`
}

// demoStep is one kill and what came of it.
type demoStep struct {
	demoKill
	Resolved string `json:"resolved"`
	By       string `json:"by"`
}

// demoAct is one run of the demo. Its figures are parts of the report's;
// duplicates and losses are judged over everything the world holds.
type demoAct struct {
	Name              string             `json:"name"`
	Run               machine.RunID      `json:"run"`
	State             machine.Phase      `json:"state"`
	Kills             int                `json:"kills"`
	Replayed          int                `json:"replayed"`
	Probed            int                `json:"probed"`
	OperatorDecisions int                `json:"operator_decisions"`
	Approvals         int                `json:"approvals"`
	Contradicted      []machine.EffectID `json:"contradicted"` // verdicts that later evidence reopened
	Compensated       []machine.EffectID `json:"compensated"`  // effects that were undone by their compensation
}

// report judges the demo and prints it. verify is the exit code of `pawl verify`.
func (d *demo) report(ctx context.Context, verify int) error {
	s, err := d.state(ctx)
	if err != nil {
		return err
	}
	r := demoReport{
		Findings: []string{}, Steps: []demoStep{}, Acts: []demoAct{}, Run: d.note.Run, State: s.Phase, Checked: s.Checked,
		Landed: s.Landed != nil, Verified: verify == ExitDone, Confinement: d.note.Level, Dir: d.place.dir,
		Seconds: float64(d.a.o.Now().Sub(d.begun).Milliseconds()) / 1000,
	}
	resolved, err := d.act(ctx, &r, "repair", &s, d.note.Kills)
	if err != nil {
		return err
	}
	var second machine.State
	if p := d.note.Payments; p != nil {
		if second, err = d.look.State(ctx, p.Run); err != nil {
			return err
		}
		settled, err := d.act(ctx, &r, "payment", &second, p.Kills)
		if err != nil {
			return err
		}
		resolved = resolved && settled
	}
	v, err := d.judge(ctx)
	if err != nil {
		return err
	}
	r.World, r.Duplicates, r.Lost, r.Unexpected = v.Actions, v.Duplicates, v.Lost, v.Unexpected
	r.Findings = append(r.Findings, v.Findings...)
	r.find(s.Phase == machine.PhaseDone, "the run is %s, not done: %s", s.Phase, s.Reason)
	r.find(s.Phase != machine.PhaseDone || s.Checked, "the run is done without a green check")
	r.find(r.Landed || s.Phase != machine.PhaseDone, "the fix has not landed in the checkout")
	r.find(r.Verified, "the ledger failed verification: see `pawl verify`")
	if d.note.Payments != nil {
		d.judgePayments(&r, &second, v)
	}
	r.find(resolved, "not every interrupted effect is settled")
	r.OK = len(r.Findings) == 0 && v.OK()
	if err := d.show(&r, v); err != nil {
		return err
	}
	switch {
	case r.OK:
		return nil
	case !r.Verified:
		return codeError(ExitDamaged)
	}
	return codeError(ExitError)
}

func (r *demoReport) find(ok bool, format string, args ...any) {
	if !ok {
		r.Findings = append(r.Findings, strings.TrimSuffix(fmt.Sprintf(format, args...), ": "))
	}
}

// act adds one run to the report, and says whether all that was interrupted in
// it is settled.
func (d *demo) act(ctx context.Context, r *demoReport, name string, s *machine.State, kills []demoKill) (resolved bool, err error) {
	a := demoAct{
		Name: name, Run: s.Charter.ID, State: s.Phase, Kills: len(kills),
		Contradicted: []machine.EffectID{}, Compensated: []machine.EffectID{},
	}
	if err := d.count(ctx, &a, s); err != nil {
		return false, err
	}
	resolved = true
	for _, k := range kills {
		st := demoStep{demoKill: k}
		f := s.Effect(k.Effect)
		st.Resolved, st.By = resolution(f)
		resolved = resolved && f != nil && f.State.Settled()
		r.Steps = append(r.Steps, st)
	}
	r.Acts = append(r.Acts, a)
	r.Kills += a.Kills
	r.Replayed += a.Replayed
	r.Probed += a.Probed
	r.OperatorDecisions += a.OperatorDecisions
	r.Approvals += a.Approvals
	return resolved, nil
}

// judgePayments says what the second act should have shown.
func (d *demo) judgePayments(r *demoReport, s *machine.State, v world.Verdict) {
	r.find(s.Phase == machine.PhaseDone, "the second run is %s, not done: %s", s.Phase, s.Reason)
	pay, book := find(s, payText), find(s, bookText)
	r.find(pay != nil && pay.State == machine.StateCompensated, "the payment was not taken back")
	if r.Acts[1].Kills > 0 {
		again := slices.ContainsFunc(v.Suppressed, func(c world.Count) bool {
			return c.Kind == world.PaymentSuppressed && c.Identity == scripts.InvoiceKey
		})
		r.find(again, "the payment was not sent again under its key")
	}
	if d.late { // not if this sitting found the world restarted in between
		r.find(book != nil && slices.Contains(r.Acts[1].Contradicted, book.ID), "the late ticket has reopened no verdict")
	}
}

// count reads the ledger's events: how often an interrupted effect was done
// again by itself, what a look into the world settled, what a person decided.
func (d *demo) count(ctx context.Context, r *demoAct, s *machine.State) error {
	const page = 500
	var after int64
	for {
		rows, err := d.look.Timeline(ctx, r.Run, after, false, page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.N
			switch row.Kind {
			case machine.WorkspaceRestored{}.Kind():
				r.Replayed++
			case machine.EffectForced{}.Kind(), machine.EffectAbandoned{}.Kind():
				r.OperatorDecisions++
			case machine.ApprovalGranted{}.Kind():
				r.Approvals++
			}
		}
		if len(rows) < page {
			break
		}
	}
	for _, f := range s.Effects.All() {
		if provenByLook(f) != "" {
			r.Probed++
		}
		if byKey(f) {
			r.Replayed++
		}
		if f.State == machine.StateCompensated {
			r.Compensated = append(r.Compensated, f.ID)
		}
	}
	if p := d.note.Payments; p != nil && p.Run == r.Run && p.Contradicted != "" {
		r.Contradicted = append(r.Contradicted, p.Contradicted)
	}
	return nil
}

// byKey reports whether f was sent again under its key by itself.
func byKey(f *machine.Effect) bool {
	return f.Contract.Class == machine.ClassKeyed && len(f.Attempts) > 1 && !f.Forced && f.Result.Code != ""
}

// provenByLook is what a look into the world showed, if that settled f.
func provenByLook(f *machine.Effect) string {
	if f.State != machine.StateHappened || f.Forced {
		return ""
	}
	for _, e := range f.Evidence {
		if e.Authority == machine.AuthProbe && e.Verdict == machine.VerdictHappened {
			return e.Text
		}
	}
	return ""
}

// resolution says in a few words how an interrupted effect was settled, and by whom.
func resolution(f *machine.Effect) (how, by string) {
	if f == nil {
		return "it is not in the ledger", "-"
	}
	if look := provenByLook(f); look != "" {
		return "proven by a look: " + look, "Pawl"
	}
	last := f.Last()
	switch {
	case byKey(f):
		how = fmt.Sprintf("sent again under its key; attempt %d ended with code %s", last.N, last.Code)
		if f.State == machine.StateCompensated {
			how += "; taken back later"
		}
		return how, "Pawl"
	case f.State == machine.StateForcedHappened:
		return "stated to have happened: " + f.Reason, "a person, " + operatorName(f.By)
	case f.State == machine.StateCompleted && f.Forced:
		return fmt.Sprintf("stated not to have happened; attempt %d ended with code %s", last.N, last.Code), "a person, " + operatorName(f.By)
	case f.State == machine.StateCompleted && len(f.Attempts) > 1 && f.Contract.Class == machine.ClassWorkspace:
		return fmt.Sprintf("files restored, run again from the start; attempt %d ended with code %s", last.N, last.Code), "Pawl"
	case f.State == machine.StateAmbiguous:
		return "still unknown", "waits for a person"
	}
	return f.State.String(), "Pawl"
}

func operatorName(actor string) string { return strings.TrimPrefix(actor, machine.ActorOperator) }

// judge asks the world's log and the remote, neither of which Pawl writes.
func (d *demo) judge(ctx context.Context) (world.Verdict, error) {
	entries, err := world.ReadLog(d.place.world())
	if err != nil {
		return world.Verdict{}, err
	}
	remote, err := world.JudgeRemote(ctx, d.note.Remote, scripts.RepairRefs(d.note.Base), "refs/heads/"+sample.Branch)
	if err != nil {
		return world.Verdict{}, err
	}
	return world.Judge(entries, d.wants()).Merge(remote), nil
}

// wants is what the world's log should hold after what has been played.
func (d *demo) wants() []world.Want {
	want := scripts.RepairWant()
	if d.note.Payments != nil {
		want = append(want, scripts.InvoiceWant()...)
	}
	return want
}

// show prints the report: the table for people, or the object.
func (d *demo) show(r *demoReport, v world.Verdict) error {
	if d.a.json {
		return object(d.a.out(), r)
	}
	d.tell.step("What happened")
	kills := columns{
		{head: "killed", wide: 14}, {head: "effect", wide: 22}, {head: "found at the restart", wide: 22}, {head: "resolved", wide: 24}, {head: "by", wide: 10},
	}
	for _, st := range r.Steps {
		kills.add(strings.ReplaceAll(string(st.Point), "-", " "), st.Tool+" "+st.Summary, st.Found+"; "+st.World, st.Resolved, st.By)
	}
	kills.write(d.tell.w, d.tell.width)
	d.tell.step("What the world's log and the git remote say")
	acts := table{head: []string{"times", "action", "of"}}
	for _, c := range r.World {
		acts.add(fmt.Sprint(c.Times), string(c.Kind), c.Identity)
	}
	if err := acts.write(d.tell.w, d.tell.width); err != nil {
		return err
	}
	for _, a := range r.Acts {
		for _, id := range a.Contradicted {
			fmt.Fprintf(d.tell.w, "\n%s: a verdict was contradicted by a late arrival, before anything was done twice", id)
		}
		for _, id := range a.Compensated {
			fmt.Fprintf(d.tell.w, "\n%s: undone by its compensation", id)
		}
	}
	fmt.Fprintf(d.tell.w, "\nkills %d, replayed %d, proven by a look %d, decided by a person %d\n", r.Kills, r.Replayed, r.Probed, r.OperatorDecisions)
	fmt.Fprintln(d.tell.w, line(v.String(), 0))
	for _, f := range r.Findings {
		fmt.Fprintln(d.tell.w, "not as it should be: "+line(f, 0))
	}
	fmt.Fprintf(d.tell.w, "\nIt took %.1f s. Everything stays there; %s opens the screen on it.\n", r.Seconds, d.place.command())
	return nil
}
