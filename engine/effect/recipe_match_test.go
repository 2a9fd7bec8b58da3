package effect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

// folder is a working directory with the files that recipes read.
func folder(t testing.TB) Place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"package.json":       `{"name": "@me/thing", "version": "1.2.3"}`,
		"sub/package.json":   `{"name": "sub", "version": "0.1.0", "publishConfig": {"registry": "https://own.example/"}}`,
		"empty/package.json": `{"name": "nameless"}`,
		"Cargo.toml":         "[package]\nname = \"krate\"\nversion = \"0.4.0\"\n",
		"k8s/app.yaml":       "kind: Deployment\n",
		"dist/app.js":        "hello\n",
		"Makefile":           "deploy:\n\ttrue\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Place{Dir: dir, Environ: []string{"PATH=" + os.Getenv("PATH")}}
}

func lookUp(t testing.TB, line string) (Recipe, bool) {
	t.Helper()
	c, _ := policy.Parse(line) // a line that cannot be read matches nothing either
	return BuiltIn().Match(&c)
}

func TestRecipesMatchByWords(t *testing.T) {
	at := folder(t)
	for _, tt := range []struct {
		line, name string // "" for a line that is no recipe
		refused    string // why it has no contract although it looks like the recipe
		params     map[string]string
	}{
		{"npm publish", "npm-publish", "", map[string]string{"package": "@me/thing", "version": "1.2.3", "folder": "."}},
		{"npm publish --access public --tag next", "npm-publish", "", map[string]string{"package": "@me/thing"}},
		{"npm --registry=http://r.example/ publish", "npm-publish", "", map[string]string{"registry": "http://r.example/"}},
		{"npm publish ./sub", "npm-publish", "", map[string]string{"package": "sub", "version": "0.1.0", "own_registry": "https://own.example/"}},
		{"npm publish ./empty", "npm-publish", "says nothing at version", nil},
		{"npm publish ./nowhere", "npm-publish", "it is not there", nil},
		{"npm publish ./..", "npm-publish", "cannot be read", nil},
		{"npm publish thing.tgz", "", "", nil},
		{"npm publish sub", "", "", nil}, // a package of that name, says npm
		{"npm publish --dry-run", "npm-publish", "rehearses", nil},
		{"npm publish -w a", "npm-publish", "several packages", nil},
		{"npm publish --unheard-of", "", "", nil},
		{"npm publish --json=x", "", "", nil}, // a switch with a value
		{"npm publish --tag", "", "", nil},    // a value that is missing
		{"npm run publish", "", "", nil},
		{"npm", "", "", nil},
		{"/usr/bin/npm publish", "", "", nil}, // which npm that is was not asked
		{"cargo publish -qv --registry mine", "cargo-publish", "", map[string]string{"crate": "krate", "version": "0.4.0", "registry": "mine"}},
		{"cargo publish -p other", "cargo-publish", "another package", nil},
		{"cargo publish -n", "cargo-publish", "rehearses", nil},
		{"gh pr create --head fix --title T --body B", "gh-pr-create", "", map[string]string{"head": "fix"}},
		{"gh pr create -Hfix -tT", "gh-pr-create", "", map[string]string{"head": "fix"}},
		{"gh pr create --title T", "", "", nil}, // which branch only the checkout says
		{"gh pr create --head fix --web", "gh-pr-create", "browser", nil},
		{"gh pr create --head a --head b", "gh-pr-create", "more than once", nil},
		{"gh pr create --head a -H a", "gh-pr-create", "", map[string]string{"head": "a"}},
		{"gh issue create -t 'It is \"broken\"' -b x", "gh-issue-create", "", map[string]string{"title": `It is "broken"`}},
		{"gh issue create -b x", "", "", nil},
		{"gh release create v1.0 --notes n", "gh-release-create", "", map[string]string{"tag": "v1.0"}},
		{"gh release create v1.0 app.zip", "", "", nil}, // assets are uploads of their own
		{"gh release create", "", "", nil},
		{"docker push me/app:1", "docker-push", "", map[string]string{"image": "me/app:1"}},
		{"docker image push -q me/app", "docker-push", "", map[string]string{"image": "me/app"}},
		{"docker push -a me/app", "docker-push", "every tag", nil},
		{"docker push me/app@sha256:00", "", "", nil},
		{"kubectl apply -f k8s/app.yaml -n prod", "kubectl-apply", "", map[string]string{"file": "k8s/app.yaml", "namespace": "prod"}},
		{"kubectl -n prod apply -fk8s/app.yaml", "kubectl-apply", "", map[string]string{"file": "k8s/app.yaml"}},
		{"kubectl apply -f k8s/app.yaml -f k8s/b.yaml", "kubectl-apply", "more than once", nil},
		{"kubectl apply -f https://x.example/a.yaml", "", "", nil},
		{"kubectl apply -f -", "", "", nil},
		{"kubectl apply -f k8s", "", "", nil},
		{"kubectl apply -f k8s/gone.yaml", "kubectl-apply", "not there", nil},
		{"kubectl apply -f k8s/app.yaml --prune", "kubectl-apply", "deletes", nil},
		{"kubectl delete -f k8s/app.yaml", "", "", nil},
		{"terraform apply -auto-approve", "terraform-apply", "", nil},
		{"terraform apply --auto-approve -input=false", "terraform-apply", "", nil},
		{"terraform apply", "", "", nil}, // it asks
		{"terraform apply -auto-approve -target=a.b", "terraform-apply", "a part only", nil},
		{"terraform apply -auto-approve -target a.b", "terraform-apply", "a part only", nil},
		{"terraform apply -auto-approve plan.out", "", "", nil},
		{"terraform destroy -auto-approve", "", "", nil},
		{"aws s3 cp dist/app.js s3://bucket.x/a/app.js --acl private", "aws-s3-cp", "", map[string]string{
			"bucket": "bucket.x", "key_path": "a/app.js", "md5": "b1946ac92492d2347c6235b4d2611184",
		}},
		{"aws s3 cp s3://bucket.x/a dist/a", "", "", nil}, // a download
		{"aws s3 cp dist/app.js s3://bucket.x/a/", "", "", nil},
		{"aws s3 cp dist s3://bucket.x/a --recursive", "aws-s3-cp", "many files", nil},
		{"aws s3 sync dist s3://bucket.x/a", "", "", nil},
		{"curl https://x.example/a", "curl-read", "", map[string]string{"url": "https://x.example/a"}},
		{"curl -sSfL -X GET https://x.example/", "curl-read", "", nil},
		{"curl -I https://x.example/", "curl-read", "", nil},
		{"curl https://x.example/ -o f", "", "", nil},
		{"curl https://x.example/ https://y.example/", "", "", nil},
		{"curl 'https://x.example/[1-9]'", "", "", nil}, // curl sends it nine times
		{"curl ftp://x.example/", "", "", nil},
		{"curl -K file https://x.example/", "", "", nil},
		{"curl -d a=b https://x.example/", "curl-send", "", map[string]string{"url": "https://x.example/"}},
		{"curl -XPOST https://x.example/", "curl-send", "", map[string]string{"method": "POST"}},
		{"curl --json '{}' -H 'X: y' https://x.example/", "curl-send", "", nil},
		{"curl -X DELETE --retry 3 https://x.example/", "curl-send", "again by itself", nil},
		{"curl -d x -L https://x.example/", "curl-send", "another place", nil},
		{"curl -X FROB https://x.example/", "", "", nil},
		{"wget -qO- https://x.example/", "wget-read", "", nil},
		{"wget -q -O - https://x.example/", "wget-read", "", nil},
		{"wget https://x.example/a", "", "", nil}, // it writes a file
		{"wget --post-data=x https://x.example/", "", "", nil},
		{"wget --tries=1 --max-redirect=0 -O- --post-data=x https://x.example/", "wget-send", "", nil},
		{"wget -t 2 --max-redirect=0 -O- --post-data=x https://x.example/", "", "", nil},
		{"psql -X -c 'DELETE FROM t' shop", "psql-command", "", map[string]string{"database": "shop", "sql": "DELETE FROM t"}},
		{"psql -c '\\! rm x'", "", "", nil}, // psql's own commands run programs
		{"psql -W -c x", "psql-command", "password", nil},
		{"psql -f x.sql", "psql-command", "reads a script", nil},
		{"make deploy", "make-deploy", "", nil},
		{"make deploy V=1", "", "", nil},
		{"make", "", "", nil},
		{"git push origin main", PushName, "", nil},
	} {
		r, ok := lookUp(t, tt.line)
		if ok != (tt.name != "") || r.Name != tt.name {
			t.Errorf("%s: recipe %q, want %q", tt.line, r.Name, tt.name)
			continue
		}
		if !ok || r.Name == PushName {
			continue
		}
		p, err := r.Plan(t.Context(), at)
		var un *Unresolved
		switch {
		case tt.refused != "":
			if !errors.As(err, &un) || !strings.Contains(un.Why, tt.refused) {
				t.Errorf("%s: %v, want %q", tt.line, err, tt.refused)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		for k, v := range tt.params {
			if p.Contract.Params[k] != v {
				t.Errorf("%s: %s is %q, want %q", tt.line, k, p.Contract.Params[k], v)
			}
		}
		if p.Contract.Name != tt.name || p.Contract.Class == machine.ClassUnknown || p.Text == "" && p.Contract.Class != machine.ClassRead || p.Target == "" {
			t.Errorf("%s: %+v", tt.line, p)
		}
		if left := Slots(strings.Join(append(probeWords(p), p.Target, p.Text), " ")); len(left) > 0 {
			t.Errorf("%s: %v stay unfilled in %v %q", tt.line, left, probeWords(p), p.Text)
		}
	}
}

func probeWords(p Planned) []string {
	if p.Contract.Probe == nil {
		return nil
	}
	return slices.Clone(p.Contract.Probe.Command)
}

// What a line captures never becomes an option, a pattern or a second command
// of the probe.
func TestCapturesStayValues(t *testing.T) {
	at := folder(t)
	plan := func(line string) (Planned, error) {
		r, ok := lookUp(t, line)
		if !ok {
			t.Fatalf("%s is no recipe", line)
		}
		return r.Plan(t.Context(), at)
	}
	p, err := plan(`gh issue create -t 'a.*"b' -b x`)
	if err != nil {
		t.Fatal(err)
	}
	if f := judge(p.Contract.Probe.Answers, "x", "0", `[{"title": "aaa\"b"}]`); f.Verdict == machine.VerdictHappened {
		t.Errorf("a title is read as a pattern: %+v", f)
	}
	if f := judge(p.Contract.Probe.Answers, "x", "0", `[{"title": "a.*\"b"}]`); f.Verdict != machine.VerdictHappened {
		t.Errorf("the very title is not found: %+v", f)
	}
	p, err = plan(`gh pr create --head --repo=evil -t x`)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(p.Contract.Probe.Command, "--head=--repo=evil") {
		t.Errorf("%q", p.Contract.Probe.Command)
	}
	if _, err = plan(`docker push -- -v`); err == nil {
		t.Error("an image that is an option of the probe is taken")
	}
	p, err = plan(`docker push '$(touch<x);y'`)
	if err != nil || p.Contract.Probe.Command[4] != "$(touch<x);y" {
		t.Errorf("%v %q", err, p.Contract.Probe.Command)
	}
}

// recipeLines are lines that match, one of each recipe.
var recipeLines = []string{
	"npm publish", "cargo publish", "gh pr create --head fix --fill", "gh issue create -t T -b B", "gh release create v1",
	"docker push me/app", "kubectl apply -f a.yaml", "terraform apply -auto-approve", "aws s3 cp a s3://bucket/b",
	"curl https://x.example/", "curl -d a https://x.example/", "wget -qO- https://x.example/",
	"wget -t1 --max-redirect=0 -O- --post-data=x https://x.example/", "psql -c SELECT", "make deploy", "git push origin main",
}

func TestEachRecipeHasALine(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range recipeLines {
		r, ok := lookUp(t, l)
		if !ok {
			t.Errorf("%s is no recipe", l)
		}
		seen[r.Name] = true
	}
	for _, l := range BuiltIn().List() {
		if !seen[l.Name] {
			t.Errorf("no line of %s is tried", l.Name)
		}
	}
}

// A line that is not exactly one simple command never matches, whatever stands
// around or inside it.
func TestOnlyOneSimpleCommandMatches(t *testing.T) {
	around := []string{
		"%s; x", "x; %s", "%s && x", "x || %s", "%s | x", "x | %s", "%s & x", "%s &", "(%s)", "{ %s; }", "! %s", "%s > f", "%s < f", "%s 2>&1",
		"A=b %s", "%s\nx", "x\n%s", "%s $(x)", "%s `x`", "%s $x", "%s <(x)", "env %s", "sudo %s", "timeout 9 %s", "nohup %s", "xargs %s", "sh -c '%s'",
		"if %s; then x; fi", "f() { %s; }", "time %s", "%s *", "%s {a,b}", "exec %s", "eval %s", "%s <<E\nx\nE", "command %s", "coproc %s", "cd x && %s",
		"%s \"$(x)\"", "%s ${x:-y}", "%s ~", "for i in a; do %s; done", "%s |& x", "while %s; do x; done", "case a in a) %s;; esac", "[[ a ]] && %s",
	}
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom(recipeLines).Draw(t, "line")
		for range rapid.IntRange(1, 3).Draw(t, "depth") {
			line = strings.ReplaceAll(rapid.SampledFrom(around).Draw(t, "around"), "%s", line)
		}
		c, _ := policy.Parse(line)
		if r, ok := BuiltIn().Match(&c); ok {
			t.Fatalf("%q matches %s", line, r.Name)
		}
	})
}

// Whatever matches is one simple command of literal words, and its first word is
// the recipe's program.
func TestWhatMatchesIsWhole(t *testing.T) {
	words := strings.Fields("npm publish git push origin main curl -d x https://x.example/ docker push a ; && | & $(x) `x` $y > f \" ' \\ \n ( ) { } gh pr create --head -H fix -- make deploy psql -c * ~ A=b env sudo # !")
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 8).Draw(t, "words"), rapid.SampledFrom([]string{" ", "", "  "}).Draw(t, "between"))
		c, _ := policy.Parse(line)
		r, ok := BuiltIn().Match(&c)
		if !ok {
			return
		}
		if !c.Whole || len(c.Simple) != 1 || !c.Simple[0].Literal() || len(c.Simple[0].Assign)+len(c.Simple[0].Redirects)+len(c.Simple[0].Wrapper) > 0 {
			t.Fatalf("%q matches %s and is %+v", line, r.Name, c)
		}
		if !strings.HasPrefix(r.Name, c.Simple[0].Words[0]) {
			t.Fatalf("%q matches %s", line, r.Name)
		}
	})
}

// An option that a recipe does not list is never passed over.
func TestUnknownOptionsNeverMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom(recipeLines).Draw(t, "line")
		option := rapid.StringMatching(`--zz[a-z]{1,8}(=[a-z]{1,4})?`).Draw(t, "option")
		words := strings.Fields(line)
		i := rapid.IntRange(1, len(words)).Draw(t, "at")
		words = slices.Insert(words, i, option)
		c, _ := policy.Parse(strings.Join(words, " "))
		r, ok := BuiltIn().Match(&c)
		if !ok {
			return
		}
		// It can only have been taken for the value of the option before it.
		if before := words[i-1]; !strings.HasPrefix(before, "-") {
			t.Fatalf("%s matches %s", fmt.Sprint(words), r.Name)
		}
	})
}
