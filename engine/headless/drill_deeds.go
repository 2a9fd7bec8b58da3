package headless

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pawl/engine"
	"pawl/fixtures/world"
)

// killDeed is one effect that a real process is killed in.
type killDeed struct {
	name   string
	class  string
	step   string // of the script, as TOML
	line   string // occurs in the effect's line, for arming
	points []engine.Point
	allow  func(s *drillStand) []string
	done   func(ctx context.Context, s *drillStand, run string) (int, error) // how often it is there
	look   func(ctx context.Context, s *drillStand) (bool, error)            // a person's look; nil: nobody has to be asked
}

func pointsBut(drop ...engine.Point) []engine.Point {
	return slices.DeleteFunc(engine.Points(), func(p engine.Point) bool { return slices.Contains(drop, p) })
}

// killDeeds are one effect of each kind. What has no output has no moment in
// which it runs; what needs neither an approval nor a snapshot is dispatched by
// the commit that holds its intent, and a read by the one that holds its result.
func killDeeds() []killDeed {
	const running, before, after = engine.PointWhileRunning, engine.PointBeforeDispatch, engine.PointAfterDispatch
	count := func(k world.Kind) func(context.Context, *drillStand, string) (int, error) {
		return func(_ context.Context, s *drillStand, _ string) (int, error) { return s.happened(k), nil }
	}
	return []killDeed{
		{
			name: "sealed command", class: "WORKSPACE", line: "printf", points: engine.Points(),
			step: "[[step.call]]\ntool = \"shell\"\nargs = { command = \"printf 'one\\\\n' >> a.txt; echo first; sleep 1; printf 'two\\\\n' >> b.txt\" }",
			done: func(ctx context.Context, s *drillStand, run string) (int, error) {
				a, err := s.worked(ctx, run, "a.txt")
				if err != nil {
					return 0, err
				}
				b, err := s.worked(ctx, run, "b.txt")
				if err != nil {
					return 0, err
				}
				one, two := strings.Count(a, "one\n"), strings.Count(b, "two\n")
				if one != two {
					return 0, fmt.Errorf("the edit is half there: %d and %d", one, two)
				}
				return one, nil
			},
			// Where nothing can be sealed, a person decides.
			look: func(ctx context.Context, s *drillStand) (bool, error) {
				r, err := s.only(ctx)
				if err != nil || r == nil {
					return false, err
				}
				b, err := s.worked(ctx, string(r.ID), "b.txt")
				return strings.Contains(b, "two"), err
			},
		},
		{
			name: "own edit", class: "WORKSPACE", line: "edit_file", points: pointsBut(running),
			step: "[[step.call]]\ntool = \"edit_file\"\nargs = { path = \"a.txt\", old = \"n = 1\", new = \"n = 1 + 1\" }",
			done: func(ctx context.Context, s *drillStand, run string) (int, error) {
				a, err := s.worked(ctx, run, "a.txt")
				return strings.Count(a, "+ 1"), err
			},
		},
		{
			name: "git push", class: "PROBEABLE", line: "git push", points: engine.Points(),
			step: "[[step.call]]\ntool = \"shell\"\nargs = { command = \"git push origin HEAD:refs/heads/out\" }",
			done: func(ctx context.Context, s *drillStand, _ string) (int, error) {
				v, err := world.JudgeRemote(ctx, s.remote(), []world.WantRef{{Name: "refs/heads/out", Base: "main"}}, "refs/heads/main")
				n := 0
				for _, c := range v.Actions {
					if c.Kind == world.RefUpdated {
						n += c.Times
					}
				}
				return n, err
			},
		},
		{
			name: "payment with a key", class: "KEYED", line: "/payments", points: pointsBut(running, before),
			step:  "[[step.call]]\ntool = \"http_request\"\nargs = { method = \"POST\", url = \"{{env.WORLD}}/payments\", key_header = \"Payment-Key\", headers = { Content-Type = \"application/json\" }, body = '{\"to\":\"ada\",\"amount\":1700}' }",
			allow: func(s *drillStand) []string { return []string{"--allow", "http POST " + s.world.URL() + "/payments"} },
			done:  count(world.PaymentMade),
		},
		{
			name: "ticket without a key", class: "IRREVERSIBLE", line: "/tickets", points: pointsBut(running),
			step: "[[step.call]]\ntool = \"http_request\"\nargs = { method = \"POST\", url = \"{{env.WORLD}}/tickets\", headers = { Content-Type = \"application/json\" }, body = '{\"title\":\"once\"}' }",
			done: count(world.TicketCreated),
			look: func(ctx context.Context, s *drillStand) (bool, error) {
				found, err := world.Tickets(ctx, s.world.URL(), "once")
				return len(found) > 0, err
			},
		},
		{
			name: "read", class: "READ", line: "read_file", points: pointsBut(running, after),
			step: "[[step.call]]\ntool = \"read_file\"\nargs = { path = \"a.txt\" }",
			done: func(context.Context, *drillStand, string) (int, error) { return 1, nil },
		},
	}
}

// deedNamed returns one of the deeds.
func deedNamed(name string) *killDeed {
	for _, d := range killDeeds() {
		if d.name == name {
			return &d
		}
	}
	return nil
}

// start is the command line that begins a deed.
func (d *killDeed) start(s *drillStand) ([]string, error) {
	args, err := s.script(d.step)
	if err == nil && d.allow != nil {
		args = append(args, d.allow(s)...)
	}
	return args, err
}
