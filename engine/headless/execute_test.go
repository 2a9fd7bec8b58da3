package headless

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine"
)

// The help teaches a newcomer: what it is, what to try first, and only what exists.
func TestHelpTeaches(t *testing.T) {
	t.Parallel()
	s := newPawl(t).do("--help").want(ExitDone)
	s.has("supervises long-running agents", "pawl demo", "WORK", "DECIDE", "LOOK", "KEEP", "resume", "inbox", "settle", "verify", "completion")
	s.lacks("demo-world", "demo-model", "\x1b[")
}

// Every command explains itself, and takes the flags that all of them take.
func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	a := &app{o: Options{}.withDefaults()}
	a.root = a.rootCommand()
	for _, c := range a.root.Commands() {
		if c.Hidden {
			continue
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || c.GroupID == "" {
			t.Errorf("%s: short %q, group %q", c.Name(), c.Short, c.GroupID)
		}
		s := newPawl(t).do(c.Name(), "--help").want(ExitDone)
		s.has("--ledger", "--json")
		if s.err != "" {
			t.Errorf("%s --help writes to standard error: %s", c.Name(), s.err)
		}
	}
}

// A command line that makes no sense ends with 2, says so in three parts, and
// makes nothing.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  string
		names string
	}{
		{"--nonsense", "--nonsense"},
		{"run --headles x", "did you mean --headless"},
		{"list --limit", "--limit"},
		{"run x --max-turns many", "many"},
		{"isnt-there", "isnt-there"},
		{"inbx", "did you mean"},
		{"approve", "APPROVAL"},
		{"show a b", "ID"},
		{"settle r1.e1", "EFFECT CHOICE"},
		{"settle r1.e1 forget", "abandon"},
		{"resume --all r1", "--all"},
		{"run x --headless --script s.toml --var novalue", "NAME=VALUE"},
		{"run x", "--headless"},
		{"run x --headless --in-place --with-changes", "with-changes"},
		{"log r1 --last -3", "--last"},
		{"", "inbox"}, // no terminal for the screen
		{"--json", "JSON"},
	} {
		p := newPawl(t)
		args := strings.Fields(c.args)
		s := p.do(args...).want(ExitUsage).has(c.names)
		if !strings.Contains(c.args, "--json") {
			s.threeParts()
		}
		if s.out != "" {
			t.Errorf("%q: standard output: %s", c.args, s.out)
		}
		if _, err := os.Stat(p.ledger); err == nil {
			t.Errorf("%q made a ledger", c.args)
		}
	}
}

// With --json an error is an object on standard error, even when the line does
// not parse.
func TestErrorsAsJSON(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	for _, args := range [][]string{{"show", "r9", "--json"}, {"list", "--json", "--nonsense"}, {"approve", "--json", "nothing"}} {
		s := p.do(args...)
		var e struct{ Error, Why, Next string }
		if err := json.Unmarshal([]byte(s.err), &e); err != nil || e.Error == "" || e.Next == "" || s.code == ExitDone {
			t.Errorf("%v: code %d, %v, %q", args, s.code, err, s.err)
		}
	}
}

// Without a ledger of that name, one that the operator named is an error; the
// default one just is not there yet.
func TestNoLedgerYet(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	p.do("list").want(ExitError).threeParts().has("no ledger at")
	p.do("approve", "r1.a1").want(ExitError).has("no ledger at")
	for _, args := range [][]string{{"list"}, {"inbox", "--json"}} {
		var out, errs bytes.Buffer
		code := Execute(t.Context(), Options{Args: args, Out: &out, Err: &errs, Getenv: p.getenv})
		if code != ExitDone || out.String() != "" || !strings.Contains(errs.String(), "pawl demo") {
			t.Errorf("%v: code %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
	if found, _ := filepath.Glob(filepath.Join(p.dir, "*")); len(found) > 0 {
		t.Errorf("looking made %v", found)
	}
}

func TestLedgerPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag string
		env  map[string]string
		want string
	}{
		{"/f.db", map[string]string{"PAWL_LEDGER": "/e.db", "HOME": "/h"}, "/f.db"},
		{"", map[string]string{"PAWL_LEDGER": "/e.db", "HOME": "/h"}, "/e.db"},
		{"", map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/pawl/ledger.db"},
		{"", map[string]string{"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/pawl/ledger.db"},
		{"", map[string]string{"HOME": "/h"}, "/h/.local/state/pawl/ledger.db"},
		{"", nil, ""},
	} {
		a := &app{path: c.flag, o: Options{Getenv: func(n string) string { return c.env[n] }}}
		got, _, err := a.ledgerPath()
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q %v: %q, %v", c.flag, c.env, got, err)
		}
	}
}

// The screen gets an open engine on the ledger, and what it returns is the end.
func TestScreenIsWiredIn(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, _ := p.start(ExitWaits, asks)
	var saw []engine.Item
	o := Options{Terminal: true, Width: 100, Screen: func(ctx context.Context, e *engine.Engine, o ScreenOptions) error {
		if o.StateDir != filepath.Dir(p.ledger) || o.Leave == nil {
			t.Errorf("%+v", o)
		}
		var err error
		saw, err = e.Inbox(ctx)
		return err
	}}
	p.doWith(o).want(ExitDone)
	if len(saw) != 1 || string(saw[0].Run) != id {
		t.Errorf("the screen saw %+v", saw)
	}
}
