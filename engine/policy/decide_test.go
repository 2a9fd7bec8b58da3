package policy

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pawl/engine/machine"
)

// shell is an unsealed command: what a rule is needed for.
func shell(line string) Subject {
	c, _ := Parse(line)
	return Subject{Tool: "shell", Line: line, Commands: &c, Class: machine.ClassIrreversible}
}

func request(method, url string) Subject {
	return Subject{Tool: "http_request", Network: true, Method: method, URL: url, Class: machine.ClassIrreversible}
}

func TestRulesCoverExactlyOneCommand(t *testing.T) {
	const status = "git status"
	for _, tt := range []struct {
		rule, line string
		want       Verdict
	}{
		// The rule's own command, however it is quoted and spaced.
		{status, "git status", Allow},
		{status, "  git   status  ", Allow},
		{status, "git status\n", Allow},
		{status, `'git' "status"`, Allow},
		{status, `g''it s\tatus`, Allow},
		{status, "git \\\n status", Allow},
		{status, "git status # now", Allow},
		// Less, more, other.
		{status, "git", Ask},
		{status, "git status -s", Ask},
		{status, "git status2", Ask},
		{status, "git Status", Ask},
		{status, "/usr/bin/git status", Ask},
		{status, "./git status", Ask},
		{status, "gitstatus", Ask},
		{status, "'git status'", Ask},
		{status, "", Ask},
		// Chained.
		{status, "git status; touch x", Ask},
		{status, "git status;touch x", Ask},
		{status, "git status && touch x", Ask},
		{status, "git status || touch x", Ask},
		{status, "git status | touch x", Ask},
		{status, "git status |& touch x", Ask},
		{status, "git status & touch x", Ask},
		{status, "git status &", Ask},
		{status, "git status\ntouch x", Ask},
		{status, "git status\r\ntouch x", Ask},
		{status, "git status\rtouch x", Ask},
		{status, "touch x; git status", Ask},
		{status, "touch x\ngit status", Ask},
		{status, "(git status)", Ask},
		{status, "{ git status; }", Ask},
		{status, "! git status", Ask},
		{status, "time git status", Ask},
		{status, "if git status; then touch x; fi", Ask},
		{status, "git() { touch x; }; git status", Ask},
		{status, "alias git=touch; git status", Ask},
		// Substituted.
		{status, "git status $(touch x)", Ask},
		{status, "git $(echo status)", Ask},
		{status, "git status `touch x`", Ask},
		{status, `git status "$(touch x)"`, Ask},
		{status, "git status <(touch x)", Ask},
		{status, "git status >(touch x)", Ask},
		{status, "git status $x", Ask},
		{status, "git stat?s", Ask},
		{status, "git {status,push}", Ask},
		{status, "git status $'\\n'", Ask},
		// Redirected.
		{status, "git status > x", Ask},
		{status, "git status >> x", Ask},
		{status, "git status 2>x", Ask},
		{status, "git status &> x", Ask},
		{status, "git status >| x", Ask},
		{status, "git status < x", Ask},
		{status, "git status <<E\n$(touch x)\nE", Ask},
		{status, "git status <<< x", Ask},
		{status, "> x git status", Ask},
		// With variables.
		{status, "GIT_PAGER=x git status", Ask},
		{status, "PATH=. git status", Ask},
		{status, "X= git status", Ask},
		// Wrapped.
		{status, "env git status", Ask},
		{status, "env X=1 git status", Ask},
		{status, "xargs git status", Ask},
		{status, "echo x | xargs git status", Ask},
		{status, "sh -c 'git status'", Ask},
		{status, "bash -c 'git status; touch x'", Ask},
		{status, "find . -exec git status ';'", Ask},
		{status, `find . -exec git status {} \;`, Ask},
		{status, "sudo git status", Ask},
		{status, "timeout 5 git status", Ask},
		{status, "nohup git status", Ask},
		{status, "command git status", Ask},
		{status, "exec git status", Ask},
		{status, "nice git status", Ask},
		{status, "eval git status", Ask},
		// Unreadable.
		{status, "git status '", Ask},
		{status, "git status )", Ask},
		{status, "git status \x1b[2K", Ask},
		{status, "git status \xff", Ask},
		{status, "git status \x00touch x", Deny},
		{status, "git status" + strings.Repeat(" ", 70_000), Ask},
		// The same signs inside quotes are ordinary characters.
		{"git log --grep *", "git log --grep 'a;b'", Allow},
		{"git log --grep *", "git log --grep 'a && b || c | d & e'", Allow},
		{"git log --grep *", "git log --grep '$(touch x) `touch y`'", Allow},
		{"git log --grep *", `git log --grep "a; b > c < d <(e) {f,g} *?"`, Allow},
		{"git log --grep *", `git log --grep "a \$(b)"`, Allow},
		{"git log --grep *", `git log --grep a\;b`, Allow},
		{"git log --grep *", "git log --grep 'a\nb'", Allow},
		{"git log --grep *", "git log --grep 'X=1'", Allow},
		{"git log --grep *", "git log --grep 'env sh -c x'", Allow},
		{"git log --grep *", `git log --grep "$(touch x)"`, Ask},
		{"git log --grep *", `git log --grep "$x"`, Ask},
		{"git log --grep *", "git log --grep 'a' 'b'", Ask},
		// A star is one word, no more and no less, and no option.
		{"git push origin *", "git push origin fix/retry", Allow},
		{"git push origin *", "git push origin HEAD:refs/heads/x", Allow},
		{"git push origin *", "git push origin", Ask},
		{"git push origin *", "git push origin a b", Ask},
		{"git push origin *", "git push origin --mirror", Ask},
		{"git push origin *", "git push origin -f", Ask},
		{"git push origin *", "git push -f origin a", Ask},
		{"git push * *", "git push origin main", Allow},
		{"git add '*'", "git add '*'", Allow},
		{"git add '*'", "git add x", Ask},
		{"git add *", "git add *", Ask},
		{"sh -c 'make test'", "sh -c 'make test'", Allow},
		{"sh -c 'make test'", "sh -c 'make test; x'", Ask},
		{"[ -f x ]", "[ -f x ]", Allow},
		// Rules that are none cover nothing.
		{"git status;", "git status", Allow}, // a trailing separator is no second command
		{"git status; touch x", "git status", Ask},
		{"*", "git", Ask},
		{"* status", "git status", Ask},
		{"sudo *", "sudo git", Ask},
		{"", "git status", Ask},
		{"git st*", "git status", Ask},
		// A rule for requests is no rule for a program called http, nor the reverse.
		{"http POST http://h/x", "http POST http://h/x", Ask},
	} {
		if d := Decide([]string{"make build", tt.rule}, shell(tt.line)); d.Verdict != tt.want {
			t.Errorf("rule %q, line %.80q: %v (%s), want %v", tt.rule, tt.line, d.Verdict, d.Why, tt.want)
		}
	}
}

func TestRulesCoverRequests(t *testing.T) {
	const rule = "http POST http://127.0.0.1:8080/tickets"
	for _, tt := range []struct {
		rule, method, url string
		want              Verdict
	}{
		{rule, "POST", "http://127.0.0.1:8080/tickets", Allow},
		{rule, "POST", "http://127.0.0.1:8080/tickets/5", Allow},
		{rule, "POST", "http://127.0.0.1:8080/tickets?x=1", Allow},
		{rule, "POST", "http://127.0.0.1:8080/tickets2", Ask},
		{rule, "POST", "http://127.0.0.1:8080/", Ask},
		{rule, "POST", "http://127.0.0.1:8080/tickets/../admin", Ask},
		{rule, "POST", "http://127.0.0.1:8080/tickets/%2e%2e/admin", Ask},
		{rule, "POST", "http://127.0.0.1:8080/tickets/..%2fadmin", Ask},
		{rule, "POST", `http://127.0.0.1:8080/tickets/..\admin`, Ask},
		{rule, "POST", "http://127.0.0.1:8080//tickets", Ask},
		{rule, "POST", "http://127.0.0.1:8081/tickets", Ask},
		{rule, "POST", "http://127.0.0.1/tickets", Ask},
		{rule, "POST", "https://127.0.0.1:8080/tickets", Ask},
		{rule, "POST", "http://127.0.0.1:8080@evil.example/tickets", Ask},
		{rule, "POST", "http://u@127.0.0.1:8080/tickets", Ask},
		{rule, "POST", "http://127.0.0.1.evil.example:8080/tickets", Ask},
		{rule, "PUT", "http://127.0.0.1:8080/tickets", Ask},
		{rule, "post", "http://127.0.0.1:8080/tickets", Ask},
		{"http POST https://Example.com", "POST", "https://example.COM:443/any/thing", Allow},
		{"http POST https://example.com/", "POST", "https://example.com/any", Allow},
		{"http POST https://example.com/a/", "POST", "https://example.com/a/b", Allow},
		{"http POST https://example.com/a/", "POST", "https://example.com/a", Ask},
		{"http POST https://a.example/x https://b.example/y", "POST", "https://b.example/y/1", Allow},
		{"http POST https://a.example/x https://b.example/y", "POST", "https://b.example/x", Ask},
		{"http GET https://[::1]:8/x", "GET", "https://[::1]:8/x", Allow},
		{"http * https://a.example/", "POST", "https://a.example/", Ask},
		{"http POST *", "POST", "https://a.example/", Ask},
		{"curl https://a.example/", "GET", "https://a.example/", Ask},
	} {
		if d := Decide([]string{tt.rule}, request(tt.method, tt.url)); d.Verdict != tt.want {
			t.Errorf("rule %q, %s %s: %v (%s), want %v", tt.rule, tt.method, tt.url, d.Verdict, d.Why, tt.want)
		}
	}
}

func TestBuiltIn(t *testing.T) {
	in, out := []Access{{Path: "a.go", Inside: true}}, []Access{{Path: "/etc/passwd"}}
	sealed := func(line string) Subject {
		s := shell(line)
		s.Class, s.Sealed = machine.ClassWorkspace, true
		return s
	}
	with := func(s Subject, f func(*Subject)) Subject { f(&s); return s }
	push := with(shell("git push origin main"), func(s *Subject) {
		s.Recipe, s.Class, s.OutsideWrite = "git-push", machine.ClassProbeable, []string{"/srv/r.git"}
	})
	for _, tt := range []struct {
		name  string
		s     Subject
		allow []string
		want  Verdict
		why   string
	}{
		{"read inside", Subject{Class: machine.ClassRead, Reads: in}, nil, Allow, ""},
		{"read outside", Subject{Class: machine.ClassRead, Reads: out}, nil, Ask, "/etc/passwd"},
		{"read by network", Subject{Class: machine.ClassRead, Network: true, Method: "GET", Host: "h:80"}, nil, Ask, "GET h:80"},
		{"own edit", Subject{Class: machine.ClassWorkspace, Sealed: true, Writes: in}, nil, Allow, ""},
		{"own edit outside", Subject{Class: machine.ClassWorkspace, Sealed: true, Writes: out}, nil, Ask, "/etc/passwd"},
		{"edit of git's own files", Subject{Class: machine.ClassWorkspace, Sealed: true, Writes: []Access{{Path: ".git/config"}}}, nil, Ask, ".git/config"},
		{"sealed command", sealed("rm -rf . ; $x"), nil, Allow, ""},
		{"sealed, with network", with(sealed("a"), func(s *Subject) { s.Network = true }), nil, Ask, "network"},
		{"sealed, writing outside", with(sealed("a"), func(s *Subject) { s.OutsideWrite = []string{"/srv"} }), nil, Ask, "/srv"},
		{"sealed by mistake of class", with(sealed("a"), func(s *Subject) { s.Class = machine.ClassIrreversible }), nil, Ask, "harmless"},
		{"unsealed command", shell("ls"), nil, Ask, "unsealed"},
		{"unsealed, unreadable", shell("$x"), nil, Ask, "cannot be told"},
		{"class READ on a command line", with(shell("ls"), func(s *Subject) { s.Class = machine.ClassRead }), nil, Ask, "unsealed"},
		{"operator's check", with(shell("go test ./..."), func(s *Subject) { s.Declared = true }), nil, Allow, ""},
		{"operator's setup by network", with(shell("npm ci"), func(s *Subject) { s.Declared, s.Network = true, true }), nil, Allow, ""},
		{"internal", Subject{Internal: true, Class: machine.ClassRead}, nil, Allow, ""},
		{"internal that is not", Subject{Internal: true, Network: true}, nil, Ask, "network"},
		{"recipe", push, nil, Ask, "git-push, writing to /srv/r.git"},
		{"recipe under a rule", push, []string{"git push origin *"}, Allow, ""},
		{"outside write under a rule", with(push, func(s *Subject) { s.Recipe = "" }), []string{"git push origin *"}, Ask, "/srv/r.git"},
		{"like an unresolved one, under a rule", with(push, func(s *Subject) { s.Like = true }), []string{"git push origin *"}, Ask, "still unknown"},
		{"like an unresolved one, sealed", with(sealed("a"), func(s *Subject) { s.Like = true }), nil, Ask, "still unknown"},
		{"nothing known", Subject{}, nil, Ask, "nothing declares"},
	} {
		d := Decide(tt.allow, tt.s)
		if d.Verdict != tt.want || !strings.Contains(d.Why, tt.why) || d.Why == "" || d.Rule == "" {
			t.Errorf("%s: %+v, want %v because of %q", tt.name, d, tt.want, tt.why)
		}
	}
}

func TestParseRuleSaysWhatIsWrong(t *testing.T) {
	for rule, want := range map[string]string{
		"":                         "it is empty",
		"a; b":                     "not one command",
		"a && b":                   "not one simple command",
		"a > b":                    "redirects",
		"A=1 b":                    "sets variables",
		"a &":                      "in the background",
		"a $x":                     "word 2 is neither literal nor a star",
		"a b*":                     "word 2 is neither literal nor a star",
		"a 'b":                     "cannot be read as shell",
		"* b":                      "does not name the program",
		"a\nb":                     "more than one line",
		"env * b":                  "env runs other programs",
		"/bin/sh -c *":             "runs other programs",
		"http FETCH http://h/":     "FETCH is not known",
		"http POST":                "names no URL",
		"http POST *":              "does not begin with http://",
		"http POST h/x":            "does not begin with http://",
		"http POST http://h/x?y=1": "query",
		"http POST http://u@h/x":   "user name",
		"http POST http://h/a/../": "dot segments",
		"http POST http:///x":      "no host",
		"a \x1b":                   "control character",
	} {
		_, err := ParseRule(rule)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", rule, err, want)
		}
	}
}

func TestOffer(t *testing.T) {
	for _, tt := range []struct {
		s    Subject
		want string
	}{
		{shell("git   push origin 'main'"), "git push origin main"},
		{shell(`git commit -m "a b; c"`), "git commit -m 'a b; c'"},
		{shell(`git commit -m "it's"`), `git commit -m 'it'\''s'`},
		{shell("git add '*'"), "git add '*'"},
		{shell("git add *"), ""},
		{shell("a; b"), ""},
		{shell("./deploy.sh"), ""},
		{shell("sh deploy.sh"), ""},
		{shell("sudo ls"), ""},
		{shell("'if' x"), ""},
		{request("POST", "http://H:80/tickets?x=1"), "http POST http://h:80/tickets"},
		{request("POST", "http://u:p@h/tickets"), ""},
		{Subject{Like: true, Network: true, Method: "POST", URL: "http://h/"}, ""},
		{Subject{Tool: "write_file", Writes: []Access{{Path: "/x"}}}, ""},
	} {
		if got := Offer(tt.s); got != tt.want {
			t.Errorf("%q %s: offered %q, want %q", tt.s.Line, tt.s.URL, got, tt.want)
		}
	}
}

// What is offered covers the line it was offered for, and no other list of words.
func TestOfferIsExact(t *testing.T) {
	word := rapid.StringMatching(`[ -~]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		words := append([]string{"prog"}, rapid.SliceOfN(word, 0, 4).Draw(t, "words")...)
		other := append([]string{"prog"}, rapid.SliceOfN(word, 0, 4).Draw(t, "other")...)
		rule := Offer(shell(Join(words)))
		if rule == "" {
			t.Fatalf("nothing offered for %q", words)
		}
		if d := Decide([]string{rule}, shell(Join(words))); d.Verdict != Allow {
			t.Fatalf("%q does not cover its own line: %s", rule, d.Why)
		}
		if d := Decide([]string{rule}, shell(Join(other))); d.Verdict == Allow && !slices.Equal(words, other) {
			t.Fatalf("%q covers %q", rule, other)
		}
	})
}

// Whatever is put around an allowed command, in words that a shell reads as
// more than it, asks.
func TestNothingRidesAlong(t *testing.T) {
	frames := []string{"%;x", "%&&x", "%||x", "%|x", "%&x", "%\nx", "x;%", "$(%)", "`%`", "%>f", "%<f", "V=1 %", "env %", "xargs %", "(%)", "{ %; }", "! %", "% $(x)", "x | % | y", "sudo %", "if %; then x; fi"}
	rapid.Check(t, func(t *rapid.T) {
		line := "git status"
		for range rapid.IntRange(1, 3).Draw(t, "depth") {
			line = strings.Replace(rapid.SampledFrom(frames).Draw(t, "frame"), "%", line, 1)
		}
		if d := Decide([]string{"git status", "x", "y"}, shell(line)); d.Verdict == Allow {
			t.Fatalf("%q was let go by %s", line, d.Rule)
		}
	})
}
