//go:build linux

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDefaultsChooseTheEnvironment(t *testing.T) {
	home, scratch := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(home, ".cache"), 0o755))
	d, err := Defaults("/ws", scratch, home, []string{
		"PATH=/bin", "LC_ALL=C", "GOFLAGS=-mod=vendor", "AWS_SECRET_ACCESS_KEY=x", "GITHUB_TOKEN=x", "SSH_AUTH_SOCK=/x",
		"GOPROXY=https://me:pw@proxy.example/,direct", "HOME=/elsewhere", "MAKEFLAGS=--jobserver-auth=3,4", "TMPDIR=/tmp", "=odd",
	})
	must(t, err)
	for _, want := range []string{
		"PATH=/bin", "LC_ALL=C", "GOFLAGS=-mod=vendor", "HOME=" + home, "TMPDIR=" + scratch + "/tmp",
		"GOMODCACHE=" + scratch + "/home/go-mod", "npm_config_cache=" + scratch + "/home/npm",
	} {
		if !slices.Contains(d.Env, want) {
			t.Errorf("%s is not in %v", want, d.Env)
		}
	}
	if want := []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "GOPROXY", "MAKEFLAGS", "SSH_AUTH_SOCK", "TMPDIR"}; !slices.Equal(d.Withheld, want) {
		t.Errorf("withheld %v", d.Withheld)
	}
	for _, kv := range d.Env {
		if strings.HasPrefix(kv, "GOCACHE=") {
			t.Errorf("%s: lies in a cache that is there", kv)
		}
	}
	if len(d.Caches) != 1 || d.Caches[0].Path != home+"/.cache" {
		t.Errorf("caches %v", d.Caches)
	}
	if !slices.Contains(d.Hidden, home+"/.ssh") {
		t.Error("ssh keys are not hidden")
	}
	d.Reveal(home + "/.ssh")
	if slices.Contains(d.Hidden, home+"/.ssh") || !slices.Contains(d.Hidden, home+"/.aws") {
		t.Error("revealing one changed others or none")
	}
}

// A module with a dependency that only the user's module cache holds is built, tested with the race detector where
// that works, and built again, without a network and without touching the user's caches.
func TestGoModuleInTheBox(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command")
	}
	needLevel(t, LevelSealed)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home directory")
	}
	s := shSpec(t, LevelSealed, "go env GOCACHE && go vet ./... && go test ./... && go test -count=1 ./... && echo fine")
	for name, text := range map[string]string{
		"go.mod":    "module m\n\ngo 1.24\n",
		"m.go":      "package m\n\nimport \"strings\"\n\nfunc Up(s string) string { return strings.ToUpper(s) }\n",
		"m_test.go": "package m\n\nimport (\"net\"; \"os\"; \"testing\")\n\nfunc TestUp(t *testing.T) {\n\tif Up(\"a\") != \"A\" { t.Fatal() }\n\tl, err := net.Listen(\"tcp\", \"127.0.0.1:0\")\n\tif err != nil { t.Fatal(err) }\n\tl.Close()\n\tif err := os.WriteFile(t.TempDir()+\"/f\", nil, 0o600); err != nil { t.Fatal(err) }\n}\n",
	} {
		must(t, os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o644))
	}
	d, err := Defaults(s.Dir, filepath.Join(filepath.Dir(s.Dir), "scratch"), home, os.Environ())
	must(t, err)
	s.Writable, s.Env = nil, []string{MarkerEnv + "=go"}
	d.Apply(&s)
	e, out := run(t, s)
	if e.Code != 0 || !strings.HasSuffix(out, "fine\n") {
		t.Fatalf("%+v\n%s", e, out)
	}
	cache, _, _ := strings.Cut(out, "\n")
	for _, c := range d.Caches {
		if !strings.HasPrefix(cache, c.Path) {
			continue
		}
		ents, err := os.ReadDir(filepath.Join(c.Layer, "upper"))
		if err != nil || len(ents) == 0 {
			t.Errorf("what the build wrote is not in the private layer: %v", err)
		}
	}
	t.Logf("vet and two test runs: %v", e.Duration)
	s.Output += "2"
	e, out = run(t, s)
	if e.Code != 0 || !strings.Contains(out, "(cached)") {
		t.Errorf("the second command did not profit from the first: %+v\n%s", e, out)
	}
	t.Logf("again: %v", e.Duration)
}
