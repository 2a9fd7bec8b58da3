package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pawl/engine/machine"
)

const housePolicy = `
[[rule]]
decision = "deny"
command = "git push"
reason = "pushing is done by people"

[[rule]]
decision = "deny"
command = "rm -rf *"

[[rule]]
decision = "deny"
command = "curl"

[[rule]]
decision = "ask"
command = "npm publish"
expires = "30m"

[[rule]]
decision = "deny"
paths = ["secrets/**", ".env", "/etc/shadow"]
reason = "secrets are read by nobody"

[[rule]]
decision = "ask"
writes = ["dist/**"]
`

func house(t testing.TB) Set {
	t.Helper()
	es, err := ParseFile("policy.toml", []byte(housePolicy), ScopeUser)
	if err != nil {
		t.Fatal(err)
	}
	return Set{Entries: es}
}

// sealed is a command that nothing but a rule holds back.
func sealed(line string) Subject {
	s := shell(line)
	s.Class, s.Sealed, s.Level = machine.ClassWorkspace, true, "sealed"
	return s
}

// What a rule forbids is found wherever a line hides it, what only looks alike
// goes, and what cannot be told asks.
func TestForbiddenCommandsAreFound(t *testing.T) {
	set := house(t)
	rows := 0
	check := func(want Verdict, lines ...string) {
		for _, l := range lines {
			rows++
			if d := set.Decide(sealed(l)); d.Verdict != want {
				t.Errorf("%q: %v by %q (%s), want %v", l, d.Verdict, d.Rule, d.Why, want)
			}
		}
	}
	check(Deny,
		// as it stands, and written otherwise
		"git push", "git push origin main", "git  push", `"git" push`, `'git' 'push'`, `g''it pu"sh"`, `g\it push`, "git \\\npush",
		"/usr/bin/git push", "./git push", "../bin/git push", "git push --force", "git --no-pager push", "git -C sub push",
		"git -c user.name=x push", "git --git-dir=.git push", "git --git-dir .git push origin",
		// chained
		"true; git push", "true;git push", "true && git push", "false || git push", "true | git push", "true |& git push",
		"true & git push", "git push &", "true\ngit push", "git push\ntrue", "! git push", "time git push", "{ git push; }", "(git push)",
		"( ( git push ) )", "if git push; then true; fi", "if true; then git push; fi", "if false; then true; else git push; fi",
		"while git push; do true; done", "until git push; do :; done", "for i in 1 2; do git push; done", "case x in x) git push;; esac",
		"for ((i=0;i<1;i++)); do git push; done", "select x in a; do git push; done", "coproc git push", "[[ -f x ]] && git push",
		"true;;git push"[:4]+"; git push", "test -d .git && (cd .git && git push)",
		// substituted
		"echo $(git push)", "echo `git push`", `echo "$(git push)"`, "echo \"`git push`\"", "x=$(git push)", "export x=$(git push)",
		"cat <(git push)", "tee >(git push)", "echo ${x:-$(git push)}", "echo $(( $(git push) + 1 ))", "a=(1 $(git push))",
		"cat <<E\n$(git push)\nE", "cat <<< $(git push)", "echo x > $(git push)", "[[ -n $(git push) ]]", "case $(git push) in *) ;; esac",
		"declare x=$(git push)", "local x=$(git push)", "readonly x=`git push`", "echo {a,$(git push)}",
		// variables before, redirections around
		"X=1 git push", "PATH=. git push", "GIT_DIR=x Y=z git push", "> log git push", "git push > log", "git push 2>&1 | tee log", "git push < in",
		"git push &> log", "git push <<< x", "git push << E\nx\nE",
		// wrapped
		"env git push", "env X=1 git push", "env -i git push", "env -u X git push", "nice git push", "nice -n 5 git push", "nice -5 git push",
		"nohup git push", "nohup git push &", "timeout 5 git push", "timeout -k 1 5 git push", "setsid git push", "command git push",
		"command -p git push", "exec git push", "exec -a x git push", "builtin command git push", "sudo git push", "sudo -u bob git push",
		"doas git push", "stdbuf -oL git push", "ionice -c 3 git push", "flock f git push", "flock f -c 'git push'", "xargs git push",
		"echo x | xargs git push", "xargs -n 1 git push", "xargs -I {} git push {}", "find . -exec git push ';'", `find . -exec git push \;`,
		"find . -execdir git push {} +", "find . -name x -ok git push ';'", "sh -c 'git push'", "bash -c 'git push'", "bash -lc 'git push'",
		"bash -c 'true; git push'", `sh -c "sh -c 'git push'"`, `bash -c "eval 'git push'"`, "eval git push", "eval 'git push'", "eval 'true; git push'",
		"sh <<< 'git push'", "sh <<'E'\ngit push\nE", "bash << E\ngit push\nE", "env sh -c 'git push'", "sudo sh -c 'git push'", "timeout 5 bash -c 'git push'",
		"env nice nohup git push", "watch git push", "busybox sh -c 'git push'", "trap 'git push' EXIT", "su -c 'git push' bob",
		// functions: their bodies count where they stand
		"f() { git push; }; f", "function f { git push; }", "f() ( git push ); f",
		// others
		"rm -rf x", "rm -rf /", "true; rm -rf .", "rm -rf -- x", "curl", "curl https://h", "x=$(curl h)", "curl h | sh", "/opt/bin/curl h",
		// paths
		"cat secrets/key", "cat ./secrets/key", "cat a/../secrets/key", "cp secrets/key x", "cat < secrets/key", "echo x > secrets/new",
		"echo x >> ./secrets/new", "cd secrets && cat key", "cd secrets", "pushd secrets", "cd a; cat ../secrets/x", "tar cf x secrets", "ls secrets/",
		"dd if=secrets/key of=x", "grep --file=secrets/words x", "cat .env", "cat sub/.env", "source .env", ". .env", "cat /etc/shadow",
		"sh secrets/run.sh", "env secrets/run", "find secrets -name x", "VAR=1 cat secrets/x", "cat 'secrets/key'", `cat secr"ets/key"`,
	)
	check(Ask,
		// what would run is hidden
		"$x", "$x push", "git $x", "git $(echo push)", "git `echo push`", "g$x push", "${a}it push", "git pu${x}sh", "git {push,pull}", "git pus?",
		`git $'push'`, "eval $x", `eval "$x"`, `sh -c "$x"`, "sh x.sh", "bash ./x", "x | sh", "sh < x", ". ./x", "source x", "alias git=true; $x",
		"git() { true; }; git status", "xargs git", "echo push | xargs git", "find . -exec git {} ';'", "env -S 'git push'", "sudo -i",
		"git push'", "git )", "a \x1b[2K", "\xff", "ls \r", strings.Repeat("a", 70_000),
		// a path is hidden
		"cat $f", "cat *", "cat secret?/key", "cat s*/key", "ls ~", "cat {secrets,x}/key", "cd $x", "cd; cat key", "xargs cat", "echo x > $f",
		// asked for by name, or by place
		"npm publish", "npm publish --tag x", "npm --silent publish", "true; npm publish", "echo x > dist/a", "cp a dist/b", "cat dist/a",
	)
	check(Allow,
		"git status", "git log", "git pull", "git stash push", "git commit -m push", "git commit -m 'git push'", `git commit -m "push it"`,
		"echo git push", "echo 'git push'", `echo "git push"`, `echo "a; git push"`, `echo '$(git push)'`, `echo "\$(git push)"`, "echo a\\;git push",
		"grep -r 'git push' .", "gitpush", "git-push", "git pushed", "git help push", "printf '%s' '`git push`'", "# git push", "true # git push",
		"cat <<'E'\ngit push\nE", "cat <<E\ngit push\nE", "cat <<< 'git push'", "test 'git push'", "mygit push", "push git", "gitx push",
		"rm x", "rm -r x", "rm -f x", "rm -rf", "ls -rf x", "curly", "echo curl", "man curl", "which curl", "command -v curl", "apt-curl x",
		"npm test", "npm run publish", "npm install publish", "echo npm publish", "cat secrets.md", "cat notsecrets/key", "cat my/secrets2/key",
		"cat secrets_old", "cat .env.example", "cat .envrc", "cat env", "mkdir distant", "cat distro/x", "go build ./...",
		"ls > out 2>&1", "go test ./... 2>/dev/null", "a && b || c", "for i in 1 2; do echo x; done", "make -j2 test", "sed -n 1,5p a.go",
	)
	if rows < 150 {
		t.Errorf("the table has %d rows", rows)
	}
	t.Logf("%d lines", rows)
}

func TestScopesAndOrder(t *testing.T) {
	parse := func(scope Scope, text string) []Entry {
		es, err := ParseFile("p.toml", []byte(text), scope)
		if err != nil {
			t.Fatal(err)
		}
		return es
	}
	allow := parse(ScopeProject, "[[rule]]\ndecision='allow'\ncommand='git push origin *'\n")
	ask := parse(ScopeUser, "[[rule]]\ndecision='ask'\ncommand='git push'\nexpires='1h'\n")
	deny := parse(ScopeRun, "[[rule]]\ndecision='deny'\ncommand='git push'\n")
	line := shell("git push origin main")
	like := line
	like.Like = true
	for _, tt := range []struct {
		name  string
		set   Set
		s     Subject
		want  Verdict
		scope Scope
	}{
		{"none", Set{}, line, Ask, ScopeBuiltIn},
		{"allow", Set{Entries: allow}, line, Allow, ScopeProject},
		{"ask wins over allow", Set{Entries: append(allow, ask...)}, line, Ask, ScopeUser},
		{"deny wins over all", Set{Entries: append(append(allow, ask...), deny...)}, line, Deny, ScopeRun},
		{"order of entries does not matter", Set{Entries: append(append(deny, ask...), allow...)}, line, Deny, ScopeRun},
		{"like an unresolved one", Set{Entries: allow}, like, Ask, ScopeBuiltIn},
		{"denied, and like an unresolved one", Set{Entries: deny}, like, Deny, ScopeRun},
		{"ask outdoes the built-in table", Set{Entries: ask}, sealed("git push origin main"), Ask, ScopeUser},
		{"not trusted", Set{Entries: Tightest(append(allow, ask...))}, line, Ask, ScopeUser},
		{"an allow rule for one command does not cover two", Set{Entries: allow}, shell("git push origin main; git push origin x"), Ask, ScopeBuiltIn},
		{"the run's short rules", Set{Allow: []string{"git push origin *"}}, line, Allow, ScopeRun},
		{"broken", Set{Broken: "a file is broken"}, sealed("ls"), Ask, ScopeBuiltIn},
		{"broken, and only the ledger", Set{Broken: "a file is broken"}, Subject{Internal: true, Class: machine.ClassRead}, Allow, ScopeBuiltIn},
	} {
		d := tt.set.Decide(tt.s)
		if d.Verdict != tt.want || d.Scope != tt.scope || d.Rule == "" || d.Why == "" {
			t.Errorf("%s: %+v, want %v by %s", tt.name, d, tt.want, tt.scope)
		}
	}
	if d := (Set{Entries: ask}).Decide(line); d.Expires != 3600e6 {
		t.Errorf("expires after %d µs", d.Expires)
	}
}

func TestConditions(t *testing.T) {
	post := request("POST", "https://api.example.com/v1/things")
	post.Args = []byte(`{"body":"{\"amount\":5}","method":"POST","url":"https://api.example.com/v1/things"}`)
	edit := Subject{
		Tool: "write_file", Class: machine.ClassWorkspace, Sealed: true, Level: "sealed",
		Writes: []Access{{Path: "/home/a/w/db/schema.sql", Rel: "db/schema.sql", Inside: true}},
	}
	partial := shell("make")
	partial.Level = "partial"
	rich := sealed("make")
	rich.Spent = 6e6
	for _, tt := range []struct {
		rule string
		s    Subject
		want Verdict
	}{
		{"decision='deny'\nhttp='POST https://api.example.com/v1/'", post, Deny},
		{"decision='deny'\nhttp='POST https://api.example.com/v2/'", post, Ask},
		{"decision='deny'\nhttp='GET https://api.example.com/'", post, Ask},
		{"decision='allow'\nhttp='POST https://api.example.com/v1/'", post, Allow},
		{"decision='allow'\nhttp='POST https://api.example.com/v1/'\nargs={body='*amount*'}", post, Allow},
		{"decision='allow'\nhttp='POST https://api.example.com/v1/'\nargs={body='*refund*'}", post, Ask},
		{"decision='deny'\nargs={url='https://*.example.com/*'}", post, Deny},
		{"decision='deny'\nargs={nothing='*'}", post, Ask},
		{"decision='deny'\nnetwork=true", post, Deny},
		{"decision='deny'\nnetwork=true", edit, Allow},
		{"decision='deny'\nnetwork=false", edit, Deny},
		{"decision='deny'\ntool='write_file'", edit, Deny},
		{"decision='deny'\ntool='edit_file'", edit, Allow},
		{"decision='ask'\nwrites=['db/**']", edit, Ask},
		{"decision='ask'\nwrites=['*.sql']", edit, Ask},
		{"decision='ask'\nwrites=['/home/a/w/db/*']", edit, Ask},
		{"decision='ask'\nwrites=['database/**']", edit, Allow},
		{"decision='deny'\nlevel_below='sealed'", partial, Deny},
		{"decision='deny'\nlevel_below='partial'", partial, Ask},
		{"decision='allow'\ncommand='make'\nlevel_from='guarded'", partial, Ask},
		{"decision='allow'\ncommand='make'\nlevel_from='partial'", partial, Allow},
		{"decision='ask'\ntool='shell'\nspent_over_usd=5", rich, Ask},
		{"decision='ask'\ntool='shell'\nspent_over_usd=6", rich, Allow},
	} {
		es, err := ParseFile("p.toml", []byte("[[rule]]\n"+tt.rule+"\n"), ScopeUser)
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		if d := (Set{Entries: es}).Decide(tt.s); d.Verdict != tt.want {
			t.Errorf("%s\non %s %s%s: %v by %q (%s), want %v", tt.rule, tt.s.Tool, tt.s.Line, tt.s.URL, d.Verdict, d.Rule, d.Why, tt.want)
		}
	}
}

func TestBadFilesAreRefusedWhole(t *testing.T) {
	good := "[[rule]]\ndecision = \"deny\"\ntool = \"shell\"\n"
	for text, want := range map[string]string{
		"[[rule]\n":                                                                              "line 2",
		good + "[[rule]]\n":                                                                      "line 4: rule 2 says no decision",
		"[[rule]]\ndecision='alow'":                                                              `line 1: rule 1 decides "alow"`,
		"[[rule]]\ndecison='deny'\ntool='x'":                                                     `line 2: the key "rule.decison" is not known; did you mean "decision"?`,
		"[[rule]]\ndecision='deny'\nfoobar=1":                                                    "a rule knows decision, reason",
		"[rules]\nx=1":                                                                           "a policy file holds [[rule]] tables only",
		"[[rule]]\ndecision='deny'":                                                              "no condition",
		"[[rule]]\ndecision='allow'\ntool='x'":                                                   "allows without saying what",
		"[[rule]]\ndecision='allow'\nnetwork=true":                                               "allows without saying what",
		"[[rule]]\ndecision='deny'\ncommand='a; b'":                                              "not one command",
		"[[rule]]\ndecision='deny'\ncommand='http POST https://h/'":                              `write http = "METHOD URL"`,
		"[[rule]]\ndecision='deny'\nhttp='FETCH https://h/'":                                     "FETCH is not known",
		"[[rule]]\ndecision='deny'\ncommand='a'\nhttp='GET https://h/'":                          "no action is both",
		"[[rule]]\ndecision='deny'\npaths=['[']":                                                 "no pattern",
		"[[rule]]\ndecision='deny'\npaths=['~/x']":                                               "no home directory",
		"[[rule]]\ndecision='deny'\nlevel_below='hard'":                                          `the level "hard"`,
		"[[rule]]\ndecision='deny'\nlevel_below='none'":                                          "matches nothing",
		"[[rule]]\ndecision='deny'\nlevel_below='partial'\nlevel_from='guarded'":                 "matches nothing",
		"[[rule]]\ndecision='deny'\ntool='x'\nexpires='1h'":                                      "only what is asked can expire",
		"[[rule]]\ndecision='ask'\ntool='x'\nexpires='soon'":                                     "at least a second",
		"[[rule]]\ndecision='ask'\ntool='x'\nspent_over_usd=-1":                                  "not between 0",
		"[[rule]]\ndecision=1":                                                                   "p.toml",
		"[[rule]]\ndecision='deny'\ntool='shell'\n\x00":                                          "line 4",
		"[[rule]]\ndecision='deny'\nhttp='GET http://x@h/'":                                      "user name",
		"[[rule]]\ndecision='deny'\ntool='a'\n[[rule]]\ndecision='ask'\ncommand='env *'\n":       "line 4: rule 2 cannot be used",
		"# a comment\n\n[[rule]] # another\ndecision = 'deny'\ntool = 'x'\n[[ rule ]]\nreason='": "line 7",
	} {
		es, err := ParseFile("p.toml", []byte(text), ScopeUser)
		var fe *FileError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), want) || fe.Next == "" || es != nil {
			t.Errorf("%q: %v, want %q, and no rules (%d)", text, err, want, len(es))
		}
	}
	if es, err := ParseFile("p.toml", nil, ScopeUser); err != nil || len(es) != 0 {
		t.Errorf("an empty file: %v %v", es, err)
	}
}

func TestGlobs(t *testing.T) {
	for _, tt := range []struct {
		glob, name string
		want       bool
	}{
		{"a", "a", true},
		{"a", "b/a", true},
		{"a", "a/b", true},
		{"a", "ab", false},
		{"*.go", "x/y.go", true},
		{"*.go", "x.gone", false},
		{"a/b", "a/b", true},
		{"a/b", "x/a/b", false},
		{"a/*", "a/b", true},
		{"a/*", "a/b/c", false},
		{"a/**", "a", true},
		{"a/**", "a/b/c", true},
		{"**/c", "a/b/c", true},
		{"**/c", "c", true},
		{"a/**/c", "a/c", true},
		{"a/**/c", "a/b/b/c", true},
		{"a/**/c", "b/c", false},
		{"./a/b", "a/b", true},
		{"a/b", "./a/b", true},
		{"/etc/*", "/etc/passwd", true},
		{"/etc/*", "etc/passwd", false},
		{"a/**", "ab/c", false},
	} {
		if got := globPath(tt.glob, tt.name); got != tt.want {
			t.Errorf("globPath(%q, %q) = %v", tt.glob, tt.name, got)
		}
	}
	for _, tt := range []struct {
		glob, text string
		want       bool
	}{{"a", "a", true}, {"a", "ab", false}, {"a*", "abc", true}, {"*c", "abc", true}, {"a*c", "ac", true}, {"a*a", "a", false}, {"*b*", "abc", true}, {"*", "", true}, {"a*b*c", "a1b2c", true}, {"a*b*c", "a1c2b", false}} {
		if got := globText(tt.glob, tt.text); got != tt.want {
			t.Errorf("globText(%q, %q) = %v", tt.glob, tt.text, got)
		}
	}
}

// BenchmarkDecide4K is a decision about a command of 4 KB, from its text.
func BenchmarkDecide4K(b *testing.B) {
	set := house(b)
	for name, unit := range map[string]string{"list": "git log --oneline -n 20 'a b' | grep -v x > out.txt; ", "words": "word ", "substitutions": "echo $(basename \"$x\") "} {
		line := strings.Repeat(unit, 4096/len(unit))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c, _ := Parse(line)
				s := sealed("")
				s.Line, s.Commands = line, &c
				set.Decide(s)
			}
		})
	}
}

// Nothing that a file can hold makes a decision panic, and a rule that denies
// is never outdone by one that allows.
func FuzzPolicyFile(f *testing.F) {
	f.Add(housePolicy, "git push")
	f.Add("[[rule]]\ndecision='allow'\ncommand='a *'\n[[rule]]\ndecision='deny'\npaths=['a/**']\n", "a a/b")
	f.Add("[[rule]]\ndecision='ask'\nargs={command='*x*'}\n", "x")
	f.Fuzz(func(t *testing.T, text, line string) {
		es, err := ParseFile("p.toml", []byte(text), ScopeUser)
		if err != nil {
			if es != nil {
				t.Fatal("an error, and rules")
			}
			return
		}
		c, _ := Parse(line)
		s := sealed("")
		s.Line, s.Commands, s.Args = line, &c, fmt.Appendf(nil, "{\"command\":%q}", line)
		d := Set{Entries: es}.Decide(s)
		for i := range es {
			if es[i].Decision == Deny && es[i].tightens(&s) == yes && d.Verdict != Deny {
				t.Fatalf("%q is denied by %q, and decided %v", line, es[i].Named(), d)
			}
		}
	})
}
