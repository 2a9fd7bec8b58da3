package headless_test

import (
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/fixtures/world"
)

// configured gives a stand a configuration, WORLD standing for the world's URL.
func (s *stand) configured(text string) {
	s.t.Helper()
	path := filepath.Join(filepath.Dir(s.ledger), "..", "config.toml")
	s.write(path, strings.ReplaceAll(text, "WORLD", s.world.URL()))
	s.env = append(s.env, "PAWL_CONFIG="+path)
}

const ticketTool = `[[tool]]
name = "open_ticket"
description = "Open a ticket."
shell = 'echo sending; curl -sS -H "Content-Type: application/json" -d "{\"title\":\"$arg_title\"}" WORLD/tickets'
class = "PROBEABLE"
network = true
in_flight = "1s"
approval = "always"
arg = [ { name = "title" } ]

[tool.probe]
url = "WORLD/tickets?title={title}"
reads_own_writes = true
tested = true

[[tool.probe.answer]]
verdict = "happened"
codes = [200]
match = '"title":\s*{title|json}'

[[tool.probe.answer]]
verdict = "not_happened"
codes = [200]
match = '"tickets":\s*\[\]'
`

// A tool of the operator's own, killed at every boundary: its probe settles it
// without anybody being asked, and the world holds one ticket.
func TestDeclaredToolKilledAtEachPoint(t *testing.T) {
	for _, p := range ofCommand {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			s := newStand(t, map[string]string{"a.txt": "n = 1\n"})
			s.configured(ticketTool)
			d := deed{
				line: "open_ticket", once: true,
				step: "[[step.call]]\ntool = \"open_ticket\"\nargs = { title = \"it is broken\" }",
			}
			script := s.script("name = \"ticket\"\n\n[[step]]\n" + d.step + "\n\n[[step]]\n[[step.call]]\ntool = \"finish\"\nargs = { summary = \"done\" }\n")
			at := string(p) + "@" + d.line
			if p == engine.PointBeforeIntent {
				at = string(p) + "@turn 1"
			}
			got := s.drive(d, at, 1, s.run(script))
			if got.kills != 1 {
				t.Errorf("it was killed %d times", got.kills)
			}
			if n := s.happened(world.TicketCreated); n != 1 {
				t.Errorf("the world holds %d tickets\n%s", n, s.must(0, "log", got.run).out)
			}
			s.must(0, "verify")
		})
	}
}

// A request that the configuration knows carries a key although the model gave
// none, and is undone by the operator's word after the run has ended.
func TestDeclaredRequestIsUndone(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "n = 1\n"})
	s.configured(`[[http]]
name = "payment"
method = "POST"
url = "WORLD/payments"
class = "KEYED"
key_header = "Payment-Key"

[http.compensate]
method = "POST"
url = "{origin}/void/{key}"
null_safe = true
note = "the key stays used up"
`)
	script := s.script(`name = "pay"

[[step]]
[[step.call]]
tool = "http_request"
args = { method = "POST", url = "{{env.WORLD}}/payments", headers = { Content-Type = "application/json" }, body = '{"to":"ada","amount":1700}' }

[[step]]
[[step.call]]
tool = "finish"
args = { summary = "paid" }
`)
	d := deed{name: "pay"}
	got := s.drive(d, string(engine.PointAfterEffect)+"@/payments", 1, s.run(script, "--allow", "http POST "+s.world.URL()+"/payments"))
	if n := s.happened(world.PaymentMade); n != 1 || got.kills != 1 {
		t.Fatalf("%d payments, %d kills", n, got.kills)
	}
	var paid string
	for _, e := range s.show(got.run).Effects {
		if e.Tool == "http_request" {
			paid = e.ID
			if e.Class != "KEYED" {
				t.Errorf("class %s", e.Class)
			}
		}
	}
	s.must(0, "settle", paid, "compensate", "--reason", "wrong amount")
	s.pawl("resume", got.run)
	if n := s.happened(world.PaymentVoided); n != 1 {
		t.Fatalf("%d voided\n%s", n, s.must(0, "log", got.run).out)
	}
	if e := s.effect(got.run, paid); e.State != "COMPENSATED" && e.State != "compensated" {
		t.Errorf("it is %s", e.State)
	}
	s.must(0, "verify")
}

// A broken configuration is told about and stops nothing.
func TestBrokenConfigurationStopsNothing(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no TOML":       "[[tool]\n",
		"a broken tool": "[[tool]]\nname = \"x\"\nclass = \"PROBEABLE\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, map[string]string{"a.txt": "n = 1\n"})
			s.configured(text)
			script := s.script("name = \"x\"\n\n[[step]]\n[[step.call]]\ntool = \"finish\"\nargs = { summary = \"done\" }\n")
			e := s.pawl(s.run(script)...)
			if e.code != 0 || !strings.Contains(e.err, "config.toml, line ") || !strings.Contains(e.err, "pawl: warning: ") {
				t.Errorf("%s", e)
			}
			if e := s.must(0, "list", "--json"); strings.Contains(e.err, "config.toml") {
				t.Errorf("who only looks is bothered: %s", e)
			}
			if e := s.must(0, "tools", "--json"); !strings.Contains(e.err, "config.toml, line ") || strings.Contains(e.out, `"x"`) {
				t.Errorf("%s", e)
			}
		})
	}
}
