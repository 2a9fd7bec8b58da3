package headless

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/fixtures/sample"
	"pawl/fixtures/scripts"
	"pawl/fixtures/world"
)

// edited are the files of the edit that is interrupted.
var edited = []string{"backoff.go", "jitter.go"}

// editedFiles says which of them are no longer as the project had them.
func (d *demo) editedFiles(ctx context.Context) (changed []string, whole bool, err error) {
	s, err := d.state(ctx)
	if err != nil {
		return nil, false, err
	}
	original, err := sample.Files()
	if err != nil {
		return nil, false, err
	}
	for _, name := range edited {
		now, err := os.ReadFile(filepath.Join(s.Space.Path, name))
		if err != nil {
			return nil, false, fmt.Errorf("look at the edited files: %w", err)
		}
		if !bytes.Equal(now, original[name]) {
			changed = append(changed, name)
		}
	}
	return changed, len(changed) == len(edited), nil
}

// settleEdit settles the interrupted edit where nothing could be sealed: then
// nobody but a person may say what became of it. It does what a person would:
// it looks at the files, puts them back, and lets the command run again.
func (d *demo) settleEdit(ctx context.Context) error {
	items, err := d.waits(ctx)
	if err != nil {
		return err
	}
	for _, i := range items {
		if i.Kind != engine.KindAmbiguous || !strings.Contains(i.Summary, stages()[0].text) {
			continue
		}
		d.tell.line("Commands are not sealed here, so the edit cannot be run again by itself: it waits for a person.")
		changed, _, err := d.editedFiles(ctx)
		if err != nil {
			return err
		}
		reason := "I looked: neither file is changed, so it may run"
		if len(changed) > 0 {
			if err := d.putBack(ctx, changed); err != nil {
				return err
			}
			reason = "I looked: " + strings.Join(changed, " and ") + " was changed; I put it back as it was, so it may run from the start"
		}
		if err := d.settle(ctx, machine.EffectID(i.ID), machine.ChooseRetry, reason); err != nil {
			return err
		}
	}
	return nil
}

// putBack writes the project's own content into files of the workspace.
func (d *demo) putBack(ctx context.Context, names []string) error {
	s, err := d.state(ctx)
	if err != nil {
		return err
	}
	original, err := sample.Files()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(s.Space.Path, name), original[name], 0o644); err != nil {
			return fmt.Errorf("put %s back: %w", name, err)
		}
	}
	return nil
}

// settle is `pawl settle`.
func (d *demo) settle(ctx context.Context, id machine.EffectID, c machine.Choice, reason string) error {
	if _, _, err := d.pawl.run(ctx, "settle", string(id), string(c), "--reason", reason, "--confirm", id.Short()); err != nil {
		return err
	}
	d.tell.line(fmt.Sprintf("Settled by a person: `pawl settle %s %s`, because “%s”.", id, c, reason))
	return nil
}

// settleTicket looks the ticket up in the world's list, as a person would in a
// tracker, and says what it saw.
func (d *demo) settleTicket(ctx context.Context, id machine.EffectID) error {
	found, err := world.Tickets(ctx, d.world.URL, scripts.RepairTicket)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return d.settle(ctx, id, machine.ChooseRetry, "the tracker's list has no ticket with this title")
	}
	return d.settle(ctx, id, machine.ChooseHappened, "the tracker's list shows it: "+found[0].ID)
}

// decide takes every decision that a run waits for, as a person would.
func (d *demo) decide(ctx context.Context) error {
	items, err := d.pawl.inbox(ctx)
	if err != nil {
		return err
	}
	for _, i := range items {
		switch {
		case i.Run != d.run, i.Kind == engine.KindFinished:
		case i.Kind == engine.KindApproval:
			err = d.approve(ctx, i.ID)
		case i.Kind == engine.KindAmbiguous && strings.Contains(i.Summary, stages()[2].text):
			d.tell.line("The ticket waits for a person. The world's list is looked at, as one would in a tracker.")
			err = d.settleTicket(ctx, machine.EffectID(i.ID))
		case i.Kind == engine.KindAmbiguous && strings.Contains(i.Summary, stages()[0].text):
			err = d.settleEdit(ctx)
		default:
			err = &Problem{
				What: "the run waits for something that the demo cannot decide", Why: i.Kind + ": " + i.Summary,
				Next: "decide it with `" + i.Next + "`, then go on with " + d.place.command("--headless"),
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish takes the last decisions of the repair, lets it end and lands it.
func (d *demo) finish(ctx context.Context) error {
	run := string(d.note.Run)
	if s, err := d.state(ctx); err != nil {
		return err
	} else if s.Phase == machine.PhaseDone && s.Landed != nil {
		d.tell.line("This demo is finished. Nothing is done again; it is only judged again.")
	} else {
		d.tell.step("4. The person finishes the job")
	}
	const rounds = 8 // the script asks twice and is settled twice at most
	for range rounds {
		s, err := d.state(ctx)
		if err != nil {
			return err
		}
		if s.Phase.Ended() {
			break
		}
		if err := d.decide(ctx); err != nil {
			return err
		}
		w, err := d.pawl.work(ctx, "", run)
		if err != nil {
			return err
		}
		d.tell.line(fmt.Sprintf("`pawl resume %s` goes on, as process %d.", run, w.pid()))
		if err := d.accompany(ctx, w); err != nil {
			return err
		}
	}
	s, err := d.state(ctx)
	if err != nil {
		return err
	}
	if s.Phase == machine.PhaseDone && s.Landed == nil {
		if _, _, err := d.pawl.run(ctx, "land", run); err != nil {
			return err
		}
		d.tell.line(fmt.Sprintf("Landed in the checkout: `pawl land %s`.", run))
	}
	return nil
}

// verdict checks the ledger and judges the whole demo.
func (d *demo) verdict(ctx context.Context) error {
	_, code, err := d.pawl.run(ctx, "verify", "--json")
	if err != nil && code == 0 {
		return err
	}
	d.tell.line("The ledger was checked from its first event: `pawl verify`.")
	return d.report(ctx, code)
}

// accompany tells what an unarmed worker does until it rests.
func (d *demo) accompany(ctx context.Context, w *worker) error {
	ctx, cancel := context.WithTimeout(ctx, workerWithin)
	defer cancel()
	defer func() { <-w.ended }()
	news := d.look.Changes()
	for {
		if err := d.follow(ctx); err != nil {
			return d.stopped(ctx, w, err)
		}
		select {
		case <-w.ended:
			if err := d.follow(ctx); err != nil {
				return err
			}
			if code := w.cmd.ProcessState.ExitCode(); code != ExitDone && code != ExitWaits {
				return &Problem{What: fmt.Sprintf("worker %d ended too early", w.pid()), Why: w.end(), Next: "look with `pawl log " + string(d.run) + "`"}
			}
			return nil
		case <-news:
		case <-ctx.Done():
			return d.stopped(ctx, w, ctx.Err())
		}
	}
}

// scriptRules are rules for exactly the commands of the script that stay on
// this machine, for where they cannot be sealed. The push keeps asking.
func scriptRules(script []byte) ([]string, error) {
	var doc struct {
		Step []struct {
			Call []struct {
				Tool string
				Args map[string]any
			}
		}
	}
	if err := toml.Unmarshal(script, &doc); err != nil {
		return nil, fmt.Errorf("read the demo's script: %w", err)
	}
	var rules []string
	seen := map[string]bool{}
	for _, st := range doc.Step {
		for _, c := range st.Call {
			command, _ := c.Args["command"].(string)
			if c.Tool != "shell" || seen[command] || strings.HasPrefix(command, "git push") {
				continue
			}
			seen[command] = true
			rules = append(rules, command)
		}
	}
	return rules, nil
}
