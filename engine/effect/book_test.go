package effect

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine/policy"
)

var update = flag.Bool("update", false, "write docs/recipes.md anew")

func TestBuiltInRecipesAreWhole(t *testing.T) {
	want := strings.Fields("aws-s3-cp cargo-publish curl-read curl-send docker-push gh-issue-create gh-pr-create gh-release-create git-push kubectl-apply make-deploy npm-publish psql-command terraform-apply wget-read wget-send")
	var names []string
	for _, l := range BuiltIn().List() {
		names = append(names, l.Name)
		if l.About == "" || l.Class == "" || len(l.Match) == 0 || l.Source != sourceBuiltIn {
			t.Errorf("%+v", l)
		}
		if l.ProvesNot && !l.Tested {
			t.Errorf("%s proves too much", l.Name)
		}
	}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("%v\nwant %v", names, want)
	}
}

const whole = `name = "ship-it"
about = "x"
class = "PROBEABLE"
in_flight = "10s"
target = "{service}"

[[match]]
words = ["ship", "it"]
switches = ["-q"]
values = { "--to" = "service" }
require = ["--to"]

[probe]
command = ["ship", "status", "{service}"]
reads_own_writes = true
tested = true

[[probe.answer]]
verdict = "happened"
codes = [0]

[[probe.answer]]
verdict = "not_happened"
codes = [1]
`

func TestRecipesThatContradictThemselves(t *testing.T) {
	if _, faults := parseRecipe("ship-it.toml", "ship-it", []byte(whole)); len(faults) > 0 {
		t.Fatal(faults)
	}
	for _, tt := range []struct {
		name, old, with string
		line            int
		want            string
	}{
		{"no TOML", `class = "PROBEABLE"`, `class = `, 3, "cannot be read"},
		{"a misspelt key", `in_flight`, `in_fligt`, 4, "did you mean in_flight?"},
		{"another name", `name = "ship-it"`, `name = "ship"`, 1, "its file ship-it"},
		{"no name", `name = "ship-it"`, `name = "Ship It"`, 1, "no name for a recipe"},
		{"no class", `class = "PROBEABLE"`, ``, 0, "has no class"},
		{"a class that is none", `"PROBEABLE"`, `"SAFE"`, 3, "no class"},
		{"unknown as a class", `"PROBEABLE"`, `"unknown"`, 3, "no class"},
		{"KEYED", `"PROBEABLE"`, `"KEYED"`, 3, "holds no key of ours"},
		{"WORKSPACE", `"PROBEABLE"`, `"WORKSPACE"`, 3, "measured, not declared"},
		{"READ with a probe", `"PROBEABLE"`, `"READ"`, 3, "promises too much"},
		{"COMPENSABLE without one", `"PROBEABLE"`, `"COMPENSABLE"`, 3, "no compensation"},
		{"no time span", `"10s"`, `"ten"`, 4, "no time span"},
		{"a negative time span", `"10s"`, `"-10s"`, 4, "negative"},
		{"no bound over a network", `in_flight = "10s"`, ``, 0, "no in-flight bound"},
		{"a slot without a value", `target = "{service}"`, `target = "{servce}"`, 5, "did you mean {service}?"},
		{"no program", `words = ["ship", "it"]`, `words = []`, 8, "names no program"},
		{"an option that is none", `"-q"`, `"q"`, 7, "is no option"},
		{"an option twice", `"-q"`, `"--to"`, 7, "listed twice"},
		{"a requirement that is not known", `require = ["--to"]`, `require = ["--from"]`, 11, "not known"},
		{"a probe that asks nothing", `command = ["ship", "status", "{service}"]`, ``, 13, "asks nothing"},
		{"a probe that asks twice", `reads_own_writes = true`, `url = "https://x/"`, 15, "asks twice"},
		{"two ways to settle", `reads_own_writes = true`, "reads_own_writes = true\nsettle = \"3s\"", 16, "contradicts itself"},
		{"tested and no settle time", `reads_own_writes = true`, ``, 16, "too early"},
		{"no positive answer", `verdict = "happened"`, `verdict = "conflict"`, 13, "could never settle"},
		{"a verdict that is none", `verdict = "not_happened"`, `verdict = "nope"`, 23, `"nope" is no verdict`},
		{"an answer that fits all", `codes = [1]`, ``, 22, "fits everything"},
		{"a pattern that is none", `codes = [1]`, `match = "("`, 24, "pattern"},
		{"codes that are none", `codes = [1]`, `codes = 1`, 24, "codes"},
		{"a code that contradicts itself", `in_flight = "10s"`, "in_flight = \"10s\"\nbefore_effect = [7]\nproves_nothing = [7]", 5, "contradicts itself"},
		{"success before the effect", `in_flight = "10s"`, "in_flight = \"10s\"\nbefore_effect = [0]", 5, "success"},
		{"a path that leads out", `in_flight = "10s"`, "in_flight = \"10s\"\nreveal = [\"../etc\"]", 5, "below the home"},
		{"a fact without a source", `[probe]`, "[[fact]]\nname = \"x\"\n\n[probe]", 13, "no source"},
		{"a compensation that is two things", `[probe]`, "[compensate]\ncommand = [\"a\"]\nurl = \"https://x/\"\nmethod = \"POST\"\n\n[probe]", 15, "two things"},
		{"a compensation by reading", `[probe]`, "[compensate]\nurl = \"https://x/\"\nmethod = \"GET\"\n\n[probe]", 15, "undoes nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(whole, tt.old, tt.with, 1)
			if text == whole {
				t.Fatal("nothing was changed")
			}
			r, faults := parseRecipe("ship-it.toml", "ship-it", []byte(text))
			if r != nil || len(faults) == 0 {
				t.Fatalf("it is taken: %+v", r)
			}
			var all []string
			found := false
			for _, f := range faults {
				all = append(all, f.Error())
				if f.What == "" || f.Next == "" || f.File != "ship-it.toml" {
					t.Errorf("a part is missing: %+v", f)
				}
				found = found || strings.Contains(f.Error(), tt.want) && f.Line == tt.line
			}
			if !found {
				t.Errorf("no fault on line %d says %q:\n%s", tt.line, tt.want, strings.Join(all, "\n"))
			}
		})
	}
}

func TestUsersRecipes(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("ship-it.toml", whole)
	put("make-deploy.toml", strings.NewReplacer(`"ship-it"`, `"make-deploy"`, `words = ["ship", "it"]`, `words = ["make", "deploy"]`).Replace(whole))
	put("npm-publish.toml", "name = \"npm-publish\"\nclass = \"WHAT\"\n")
	put("git-push.toml", strings.ReplaceAll(whole, "ship-it", "git-push"))
	put("notes.txt", "none")
	put(".hidden.toml", "=")
	if err := os.Mkdir(filepath.Join(dir, "folder.toml"), 0o700); err != nil {
		t.Fatal(err)
	}
	put("large.toml", strings.Repeat("#", maxRecipe+1))
	b, faults := LoadBook(dir)
	lookup := func(line string) string {
		c, _ := policy.Parse(line)
		r, _ := b.Match(&c)
		return r.Name
	}
	for line, want := range map[string]string{
		"ship it --to web": "ship-it", "make deploy --to web": "make-deploy", "make deploy": "", "npm publish": "npm-publish", "git push origin main": "git-push",
		"ship it": "",
	} {
		if have := lookup(line); have != want {
			t.Errorf("%s: %q, want %q", line, have, want)
		}
	}
	kept := map[string]string{}
	for _, f := range faults {
		kept[filepath.Base(f.File)] = f.Kept
	}
	if len(kept) != 4 || kept["npm-publish.toml"] != "the built-in recipe npm-publish stays in force" || kept["git-push.toml"] != "the built-in recipe git-push stays in force" ||
		!strings.Contains(kept["folder.toml"], "undeclared") || kept["large.toml"] == "" {
		t.Errorf("%q", kept)
	}
	for _, l := range b.List() {
		if l.Name == "make-deploy" && (l.Source != filepath.Join(dir, "make-deploy.toml") || !l.ProvesNot || l.Probe != "ship status {service}") {
			t.Errorf("%+v", l)
		}
	}
	if b, faults := LoadBook(filepath.Join(dir, "nowhere")); b != BuiltIn() || len(faults) > 0 {
		t.Errorf("no directory: %v", faults)
	}
	if b, faults := LoadBook(filepath.Join(dir, "notes.txt")); b != BuiltIn() || len(faults) != 1 {
		t.Errorf("a file for a directory: %v", faults)
	}
}

// The card says how far the look goes, and why.
func TestCardsSayHowFarALookGoes(t *testing.T) {
	at := folder(t)
	for line, want := range map[string][]string{
		"npm publish":                      {"look    npm view @me/thing@1.2.3", "undo    npm unpublish @me/thing@1.2.3", "gets    NPM_TOKEN", "~/.npmrc", "version number stays used up"},
		"gh pr create --head x --fill":     {"not tested against the real thing: it may prove that this happened, never"},
		"terraform apply -auto-approve":    {"        it may prove that this happened, never that it did not"},
		"psql -c x":                        {"there is no way to look"},
		"curl -X POST https://x.example/a": {"there is no way to look"},
	} {
		r, ok := lookUp(t, line)
		if !ok {
			t.Errorf("%s is no recipe", line)
			continue
		}
		p, err := r.Plan(t.Context(), at)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		for _, w := range want {
			if !strings.Contains(p.Text, w) {
				t.Errorf("%s: %q is not in\n%s", line, w, p.Text)
			}
		}
	}
	r, _ := lookUp(t, "npm publish")
	if p, err := r.Plan(t.Context(), at); err != nil || strings.Contains(p.Text, "never that it did not") {
		t.Errorf("a tested probe is doubted: %v\n%s", err, p.Text)
	}
}

const (
	tableBegins = "<!-- the table below is written by: go test ./engine/effect -run TestRecipesDocument -update -->\n"
	tableEnds   = "<!-- end of the table -->\n"
)

// docs/recipes.md holds the recipes as they are.
func TestRecipesDocument(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "recipes.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok || !ok2 {
		t.Fatal("docs/recipes.md has lost the marks around its table")
	}
	want := before + tableBegins + recipeTable() + tableEnds + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/recipes.md does not show the recipes as they are; run go test ./engine/effect -run TestRecipesDocument -update")
	}
}

func recipeTable() string {
	var b strings.Builder
	for _, l := range BuiltIn().List() {
		look, undo := "none: a lost answer is for you", "none"
		if l.Probe != "" {
			look = "`" + l.Probe + "`"
			switch {
			case l.ProvesNot:
				look += "; proves both ways"
			case l.Tested:
				look += "; proves only that it happened"
			default:
				look += "; not tested, proves only that it happened"
			}
		} else if l.Class == "READ" {
			look = "none needed: it is run again"
		}
		if l.Compensate != "" {
			undo = "`" + l.Compensate + "`"
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", l.Name, l.About)
		for _, m := range l.Match {
			fmt.Fprintf(&b, "    %s\n", m)
		}
		fmt.Fprintf(&b, "\n- class %s, in flight for at most %s\n- look: %s\n- undo: %s\n", l.Class, l.InFlight, look, undo)
		if len(l.Gets) > 0 {
			fmt.Fprintf(&b, "- gets: %s\n", strings.Join(l.Gets, ", "))
		}
	}
	b.WriteString("\n")
	return b.String()
}
