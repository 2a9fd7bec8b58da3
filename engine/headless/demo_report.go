package headless

import (
	"context"
	"fmt"
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

// report judges the demo and prints it. verify is the exit code of `pawl verify`.
func (d *demo) report(ctx context.Context, verify int) error {
	s, err := d.state(ctx)
	if err != nil {
		return err
	}
	r := demoReport{
		Kills: len(d.note.Kills), Findings: []string{}, Steps: []demoStep{}, Run: d.note.Run, State: s.Phase, Checked: s.Checked,
		Landed: s.Landed != nil, Verified: verify == ExitDone, Confinement: d.note.Level, Dir: d.place.dir,
		Seconds: float64(d.a.o.Now().Sub(d.begun).Milliseconds()) / 1000,
	}
	if err := d.count(ctx, &r); err != nil {
		return err
	}
	resolved := true
	for _, k := range d.note.Kills {
		st := demoStep{demoKill: k}
		f := s.Effect(k.Effect)
		st.Resolved, st.By = resolution(f)
		resolved = resolved && f != nil && f.State.Settled()
		r.Steps = append(r.Steps, st)
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

// count reads the ledger's events: how often files were restored for a replay,
// what a look into the world settled, what a person decided.
func (d *demo) count(ctx context.Context, r *demoReport) error {
	const page = 500
	var after int64
	for {
		rows, err := d.look.Timeline(ctx, d.note.Run, after, false, page)
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
	s, err := d.state(ctx)
	if err != nil {
		return err
	}
	for _, f := range s.Effects.All() {
		if provenByLook(f) != "" {
			r.Probed++
		}
	}
	return nil
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
	return world.Judge(entries, scripts.RepairWant()).Merge(remote), nil
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
	fmt.Fprintf(d.tell.w, "\nkills %d, replayed %d, proven by a look %d, decided by a person %d\n", r.Kills, r.Replayed, r.Probed, r.OperatorDecisions)
	fmt.Fprintln(d.tell.w, line(v.String(), 0))
	for _, f := range r.Findings {
		fmt.Fprintln(d.tell.w, "not as it should be: "+line(f, 0))
	}
	fmt.Fprintf(d.tell.w, "\nIt took %.1f s. Everything stays there; %s opens the screen on it.\n", r.Seconds, d.place.command())
	return nil
}
