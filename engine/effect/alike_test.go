package effect

import (
	"encoding/json"
	"slices"
	"testing"

	"pawl/engine/machine"
)

func args(t *testing.T, kv map[string]string) []byte {
	t.Helper()
	b, err := json.Marshal(kv)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// made builds effects as tools intend them.
type made struct{ t *testing.T }

func (m made) effect(tool string, a map[string]string, c machine.Contract) *machine.Effect {
	return &machine.Effect{Tool: tool, Args: machine.Text{Inline: string(args(m.t, a))}, Contract: c}
}

func (m made) http(method, url string) *machine.Effect {
	return m.effect("http_request", map[string]string{"method": method, "url": url}, HTTP(method, url, ""))
}

func (m made) unsealed(line string) *machine.Effect {
	return m.effect("shell", map[string]string{"command": line}, machine.Contract{Name: "shell", Class: machine.ClassIrreversible, Network: true})
}

func (m made) sealed(line string) *machine.Effect {
	return m.effect("shell", map[string]string{"command": line}, machine.Contract{Name: "shell", Class: machine.ClassWorkspace})
}

func (m made) push(line, url, ref string) *machine.Effect {
	return m.effect("shell", map[string]string{"command": line}, machine.Contract{
		Name: PushName, Class: machine.ClassProbeable, Params: map[string]string{ParamURL: url, ParamRef: ref},
	})
}

func TestAlike(t *testing.T) {
	m := made{t}
	ticket := m.http("POST", "http://127.0.0.1:8080/tickets")
	push := m.push("git push origin main", "/srv/r.git", "refs/heads/main")
	for _, tt := range []struct {
		name string
		a, b *machine.Effect
		want bool
	}{
		{"the same request", ticket, m.http("POST", "http://127.0.0.1:8080/tickets"), true},
		{"another path", ticket, m.http("POST", "http://127.0.0.1:8080/tickets/bulk"), true},
		{"another name of this machine", ticket, m.http("POST", "http://localhost:8080/tickets"), true},
		{"another spelling", ticket, m.http("post", "HTTP://[::1]:8080/tickets"), true},
		{"another port", ticket, m.http("POST", "http://127.0.0.1:8081/tickets"), false},
		{"another method", ticket, m.http("DELETE", "http://127.0.0.1:8080/tickets/5"), false},
		{"a look", ticket, m.http("GET", "http://127.0.0.1:8080/tickets"), false},
		{"another host", ticket, m.http("POST", "http://example.com:8080/tickets"), false},
		{"curl", ticket, m.unsealed("curl -X POST http://127.0.0.1:8080/tickets"), true},
		{"curl without a scheme", ticket, m.unsealed("curl -d x localhost:8080/tickets"), true},
		{"curl in a compound line", ticket, m.unsealed("cd /tmp && (echo x | curl -d @- http://localhost:8080/tickets) || true"), true},
		{"curl behind a wrapper", ticket, m.unsealed(`sh -c 'curl -d x "http://127.0.0.1:8080/tickets"'`), true},
		{"a program text", ticket, m.unsealed(`python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/tickets', b'x')"`), true},
		{"a line that cannot be read", ticket, m.unsealed("curl http://127.0.0.1:8080/tickets '"), true},
		{"curl elsewhere", ticket, m.unsealed("curl -d x http://example.com/tickets"), false},
		{"a sealed command that names it", ticket, m.sealed("grep -r http://127.0.0.1:8080/tickets ."), false},
		{"an unsealed command that does not", ticket, m.unsealed("make test"), false},
		{"the same push", push, m.push("git push origin main", "/srv/r.git", "refs/heads/main"), true},
		{"a push written otherwise", push, m.push("git push origin HEAD:refs/heads/main", "/srv/r.git", "refs/heads/main"), true},
		{"another push", push, m.push("git push up x", "/srv/other.git", "refs/heads/x"), true},
		{"a push in a compound line", push, m.unsealed("git add -A && git push origin main"), true},
		{"a push from another directory", push, m.unsealed("git -C sub push origin main"), true},
		{"a push behind wrappers", push, m.unsealed("env A=1 timeout 5 sh -c 'git push'"), true},
		{"a fetch", push, m.unsealed("git fetch origin"), false},
		{"a push and a ticket", push, ticket, false},
		{"the same line", m.unsealed("./deploy.sh prod"), m.unsealed("./deploy.sh   prod"), true},
		{"the same program and word", m.unsealed("npm publish"), m.unsealed("npm publish --tag next"), true},
		{"the same program, another word", m.unsealed("npm publish"), m.unsealed("npm test"), false},
		{"a script behind a directory change", m.unsealed("./deploy.sh"), m.unsealed("cd x; ./deploy.sh"), true},
		{"two own edits", m.effect("write_file", nil, machine.Contract{Name: "write_file", Class: machine.ClassWorkspace}), m.effect("write_file", nil, machine.Contract{Name: "write_file", Class: machine.ClassWorkspace}), false},
	} {
		if got := Alike(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: %v, want %v\n%q\n%q", tt.name, got, tt.want, printsOf(tt.a), printsOf(tt.b))
		}
		if Alike(tt.a, tt.b) != Alike(tt.b, tt.a) {
			t.Errorf("%s: not symmetric", tt.name)
		}
	}
	same := m.http("POST", "http://h/x")
	same.ID = "r1.e1"
	if Alike(same, same) || Alike(nil, same) || Alike(same, nil) {
		t.Error("an effect is like itself or like none")
	}
}

// Arguments too large to be inline still leave their host.
func TestAlikeLargeArguments(t *testing.T) {
	m := made{t}
	big := m.http("POST", "http://127.0.0.1:8080/tickets")
	big.Args = machine.Text{Inline: `{"body":"xxxx`, Blob: machine.DigestOf([]byte("x")), Size: 1 << 20}
	if !Alike(big, m.unsealed("curl -d x http://127.0.0.1:8080/tickets")) || !Alike(big, m.http("POST", "http://localhost:8080/")) {
		t.Error("a large request is like none")
	}
	line := m.unsealed("x")
	line.Args = machine.Text{Inline: `{"command":"curl -d x http://127.0.0.1:8080/t`, Blob: machine.DigestOf([]byte("y")), Size: 1 << 20}
	if !Alike(line, m.http("POST", "http://127.0.0.1:8080/tickets")) {
		t.Error("a large line is like none")
	}
}

func TestFootprint(t *testing.T) {
	if got := Footprint("http_request", args(t, map[string]string{"method": "post", "url": "https://Example.com/x"}), HTTP("POST", "https://example.com/x", "")); !slices.Equal(got, []string{"http POST example.com:443"}) {
		t.Errorf("%q", got)
	}
	p := made{t}.push("git push origin main", "/srv/r.git", "refs/heads/main")
	for _, want := range []string{"recipe git-push", "git-ref /srv/r.git refs/heads/main"} {
		if got := Footprint("shell", []byte(p.Args.Inline), p.Contract); !slices.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if got := Footprint("new_tool", nil, machine.Contract{Name: "new_tool"}); len(got) == 0 {
		t.Error("an undeclared tool leaves no print")
	}
}
