package headless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/engine/confine"
	"pawl/engine/model/catalog"
	"pawl/ledger"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Tell what this machine and this ledger can do, and what is missing",
		Long: `Tell what this machine and this ledger can do: where the ledger lies and whether it can be written, the versions that matter, how far commands can be confined here (measured, not assumed) and what the next level lacks, and which models have a key.
It changes nothing, and ends with 1 if something is in the way of running an agent.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

// checkup is what `pawl doctor --json` prints.
type checkup struct {
	OK       bool              `json:"ok"`
	Ledger   ledgerHealth      `json:"ledger"`
	Versions map[string]string `json:"versions"`
	Level    confine.Level     `json:"confinement"`
	Missing  []string          `json:"confinement_missing"` // what the next higher level lacks
	Detail   map[string]string `json:"confinement_detail"`
	Withheld []string          `json:"withheld"` // variables of the environment that commands do not get
	Models   []modelHealth     `json:"models"`
	Problems []string          `json:"problems"`
}

type ledgerHealth struct {
	Path     string `json:"path"`
	Exists   bool   `json:"exists"`
	Writable bool   `json:"writable"`
	Why      string `json:"why,omitempty"` // it is not writable, or cannot be used
	Runs     int64  `json:"runs"`
	Events   int64  `json:"events"`
	WALBytes int64  `json:"wal_bytes"`
}

type modelHealth struct {
	Provider string `json:"provider"`
	KeyEnv   string `json:"key_env,omitempty"`
	Ready    bool   `json:"ready"`
}

func (a *app) doctor(ctx context.Context) error {
	c := checkup{Versions: versions(ctx), Models: a.models(), Problems: []string{}, Missing: []string{}}
	var err error
	if c.Ledger, err = a.health(ctx); err != nil {
		c.Problems = append(c.Problems, a.own(explain(err).Error()))
	}
	if c.Versions["git"] == "" {
		c.Problems = append(c.Problems, "git was not found: runs work in git worktrees; install git")
	}
	report := confine.Measure(ctx, confine.MaxFromEnv())
	c.Level, c.Detail = report.Level, report.Detail
	c.Missing = append(c.Missing, report.Missing...)
	c.Withheld = confine.Withheld(os.Environ())
	c.OK = len(c.Problems) == 0
	if a.json {
		err = object(a.out(), c)
	} else {
		a.tellCheckup(a.out(), c)
		err = nil
	}
	if err == nil && !c.OK {
		return codeError(ExitError)
	}
	return err
}

// health looks at the ledger without writing to it.
func (a *app) health(ctx context.Context) (ledgerHealth, error) {
	path, _, err := a.ledgerPath()
	h := ledgerHealth{Path: path}
	if err != nil {
		return h, err
	}
	db, err := ledger.Open(ctx, ledger.Options{Path: path, Owner: ownerOf("doctor"), BusyTimeout: a.o.BusyTimeout, MustExist: true, ViewOnly: true})
	var missing *ledger.NotFoundError
	if errors.As(err, &missing) {
		h.Why = "there is none yet; the first run makes it"
		return h, nil
	}
	h.Exists = true
	if err != nil {
		h.Why = explain(err).Why
		return h, err
	}
	head, err := db.Head(ctx)
	counts, cerr := db.CountRuns(ctx)
	h.Events, h.WALBytes = head.Seq, db.Stats().WALBytes
	for _, n := range counts {
		h.Runs += n
	}
	var lost error
	if l := db.Lost(); l != nil {
		lost = l
	}
	if err := errors.Join(err, cerr, lost, db.Close()); err != nil {
		return h, err
	}
	return a.writable(ctx, h)
}

// writable opens the ledger as a run would, which says whether one could begin.
func (a *app) writable(ctx context.Context, h ledgerHealth) (ledgerHealth, error) {
	db, err := ledger.Open(ctx, ledger.Options{Path: h.Path, Owner: ownerOf("doctor"), BusyTimeout: a.o.BusyTimeout, MustExist: true})
	if err != nil {
		h.Why = explain(err).Why
		return h, err
	}
	readOnly, why := db.ReadOnly()
	h.Writable, h.Why = !readOnly, why
	return h, db.Close()
}

// models lists the providers that can be asked, and whether their key is set.
func (a *app) models() []modelHealth {
	out := []modelHealth{}
	for _, e := range catalog.Endpoints() {
		if e.Chat || e.Messages {
			out = append(out, modelHealth{Provider: e.ID, KeyEnv: e.KeyEnv, Ready: e.KeyEnv == "" || a.o.Getenv(e.KeyEnv) != ""})
		}
	}
	return out
}

// askWithin bounds how long a program is asked for its version.
const askWithin = 5 * time.Second

func versions(ctx context.Context) map[string]string {
	v := map[string]string{"go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH, "kernel": kernel()}
	if info, ok := debug.ReadBuildInfo(); ok {
		v["pawl"] = info.Main.Version
		for _, m := range info.Deps {
			if m.Path == "github.com/mattn/go-sqlite3" {
				v["go-sqlite3"] = m.Version
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "git", "--version").Output(); err == nil {
		v["git"] = strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
	}
	return v
}

func (a *app) tellCheckup(w io.Writer, c checkup) {
	fmt.Fprintf(w, "ledger       %s\n", line(c.Ledger.Path, 0))
	switch {
	case c.Ledger.Writable:
		fmt.Fprintf(w, "             writable; %s, %s\n", count(c.Ledger.Runs, "run"), count(c.Ledger.Events, "event"))
	case c.Ledger.Why != "":
		fmt.Fprintf(w, "             %s\n", line(c.Ledger.Why, 0))
	}
	for _, name := range []string{"pawl", "go", "go-sqlite3", "sqlite", "git", "system", "kernel"} {
		if v := c.Versions[name]; v != "" {
			fmt.Fprintf(w, "%-12s %s\n", name, line(v, 0))
		}
	}
	fmt.Fprintf(w, "confinement  %s\n", c.Level)
	for _, m := range c.Missing {
		fmt.Fprintf(w, "             the next level lacks: %s\n", line(m, 0))
	}
	if n := len(c.Withheld); n > 0 {
		fmt.Fprintf(w, "environment  commands do not get %s: %s\n", count(n, "variable"), line(strings.Join(c.Withheld, " "), a.o.Width))
	}
	var ready, keys []string
	for _, m := range c.Models {
		if m.Ready {
			ready = append(ready, m.Provider)
		} else {
			if !slices.Contains(keys, m.KeyEnv) { // some providers share one
				keys = append(keys, m.KeyEnv)
			}
		}
	}
	fmt.Fprintf(w, "models       ready: %s; scripts always\n", line(strings.Join(ready, ", "), 0))
	if len(keys) > 0 {
		fmt.Fprintf(w, "             set a key for more: %s\n", line(strings.Join(keys, " "), a.o.Width))
	}
	for _, p := range c.Problems {
		fmt.Fprintf(w, "in the way   %s\n", line(p, 0))
	}
}
