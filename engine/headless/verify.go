package headless

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pawl/ledger"
)

func (a *app) verifyCommand() *cobra.Command {
	var accept bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that the ledger is whole",
		Long: `Prove that the ledger is whole: the hash chain of every run, every stored blob, and every row against what the events say when they are folded again from the first one. It changes nothing, and ends with 5 if anything differs.
If events are missing that had been written, nothing runs until you put the files back or acknowledge the loss with --accept-loss, which is recorded.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.verify(cmd, accept) },
	}
	cmd.Flags().BoolVar(&accept, "accept-loss", false, "acknowledge that written events are lost, and go on from what is there")
	return cmd
}

// verified is what `pawl verify --json` prints.
type verified struct {
	OK       bool     `json:"ok"`
	Runs     int      `json:"runs"`
	Events   int64    `json:"events"`
	Effects  int      `json:"effects"`
	Problems []string `json:"problems"`
	Lost     int64    `json:"lost"`     // events that had been written and are not there
	Accepted bool     `json:"accepted"` // the loss was acknowledged just now
	Ledger   string   `json:"ledger"`
}

func (a *app) verify(cmd *cobra.Command, accept bool) error {
	ctx := cmd.Context()
	path, _, err := a.ledgerPath()
	if err != nil {
		return err
	}
	v := verified{Ledger: path, Problems: []string{}}
	if accept {
		if v.Lost, v.Accepted, err = a.acceptLoss(ctx, path, cmd.Name()); err != nil {
			return err
		}
	}
	db, err := ledger.Open(ctx, ledger.Options{Path: path, Owner: ownerOf(cmd.Name()), BusyTimeout: a.o.BusyTimeout, MustExist: true, ViewOnly: true})
	var corrupt *ledger.CorruptError
	if errors.As(err, &corrupt) {
		v.Problems = append(v.Problems, corrupt.Error())
		return a.tellVerified(v)
	}
	if err != nil {
		return err
	}
	if lost := db.Lost(); lost != nil {
		v.Lost = max(lost.Want.Seq-lost.Have.Seq, 1)
		v.Problems = append(v.Problems, a.own(lost.Error()))
	}
	s, err := a.start(db, "verify")
	if err != nil {
		return err
	}
	found, err := s.Verify(ctx, nil)
	if cerr := s.close(); err == nil {
		err = cerr
	}
	if errors.As(err, &corrupt) {
		found.Problems = append(found.Problems, corrupt.Error())
		err = nil
	}
	if err != nil {
		return err
	}
	v.Runs, v.Events, v.Effects = found.Runs, found.Events, found.Effects
	v.Problems = append(v.Problems, found.Problems...)
	return a.tellVerified(v)
}

// acceptLoss records that a lost tail is acknowledged. Without a loss it changes nothing.
func (a *app) acceptLoss(ctx context.Context, path, name string) (lost int64, accepted bool, err error) {
	o := ledger.Options{Path: path, Owner: ownerOf(name), BusyTimeout: a.o.BusyTimeout, MustExist: true, ViewOnly: true}
	db, err := ledger.Open(ctx, o)
	if err != nil {
		return 0, false, err
	}
	l := db.Lost()
	if err := db.Close(); err != nil || l == nil {
		return 0, false, err
	}
	o.ViewOnly, o.AcceptLoss = false, true
	if db, err = ledger.Open(ctx, o); err != nil {
		return 0, false, err
	}
	return max(l.Want.Seq-l.Have.Seq, 1), true, db.Close()
}

func (a *app) tellVerified(v verified) error {
	v.OK = len(v.Problems) == 0
	if a.json {
		if err := object(a.out(), v); err != nil {
			return err
		}
	} else {
		w := a.out()
		if v.Accepted {
			fmt.Fprintf(w, "The loss of %s is acknowledged and on record.\n", count(v.Lost, "event"))
		}
		for _, p := range v.Problems {
			fmt.Fprintf(w, "differs: %s\n", line(p, 0))
		}
		what := fmt.Sprintf("%s, %s, %s in %s", count(v.Runs, "run"), count(v.Events, "event"), count(v.Effects, "effect"), line(v.Ledger, 0))
		if v.OK {
			fmt.Fprintf(w, "whole: %s\n", what)
		} else {
			fmt.Fprintf(w, "NOT whole: %s; %s\n", count(len(v.Problems), "difference"), what)
		}
	}
	if !v.OK {
		return codeError(ExitDamaged)
	}
	return nil
}
