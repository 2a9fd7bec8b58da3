package effect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
)

// verdaccioEnv names the program of a real registry: "1" for one on PATH, or a
// path. The test takes longer than the others, so it runs where it is asked for.
const verdaccioEnv = "PAWL_TEST_VERDACCIO"

// registry is a real npm registry with one user, and a proxy before it that can
// hold uploads back.
type registry struct {
	t    *testing.T
	url  string // of the proxy
	home string // of the user who may publish
	// upload is asked about each upload: what it returns is done before the
	// registry gets it and after the registry has answered. Answers are lost if
	// lose is true.
	upload atomic.Pointer[uploadHook]
}

type uploadHook func() (before, after func(), lose bool)

func startRegistry(t *testing.T) *registry {
	t.Helper()
	program := os.Getenv(verdaccioEnv)
	if program == "1" {
		program = "verdaccio"
	}
	if program == "" {
		t.Skip("needs verdaccio: install it from npm and set " + verdaccioEnv + " to 1 or its path")
	}
	program, err := exec.LookPath(program)
	if err != nil {
		t.Skip("needs verdaccio: " + err.Error())
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("needs npm")
	}
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf(`storage: %[1]s/storage
auth: {htpasswd: {file: %[1]s/htpasswd}}
uplinks: {}
packages: {'**': {access: $all, publish: $authenticated, unpublish: $authenticated}}
log: {type: stdout, level: error}
web: {enable: false}
`, dir)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--config", filepath.Join(dir, "config.yaml"), "--listen", addr)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &log, &log, append(os.Environ(), "HOME="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { defer close(exited); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-exited })
	up := "http://" + addr
	if !eventually(t, func() bool {
		resp, err := http.Get(up + "/-/ping")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	}) {
		t.Fatalf("the registry does not start:\n%s", log.String())
	}
	r := &registry{t: t, home: filepath.Join(dir, "home")}
	r.front(up)
	r.login(up)
	return r
}

// eventually asks until the answer is yes; a peer that starts gives no other sign.
func eventually(t *testing.T, ok func() bool) bool {
	t.Helper()
	limit := time.Now().Add(60 * time.Second)
	for !ok() {
		if time.Now().After(limit) {
			return false
		}
		time.Sleep(50 * time.Millisecond)
	}
	return true
}

// front puts the proxy before the registry.
func (r *registry) front(up string) {
	target, err := url.Parse(up)
	if err != nil {
		r.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		hook := r.upload.Load()
		if req.Method != http.MethodPut || hook == nil || strings.HasPrefix(req.URL.Path, "/-/") {
			proxy.ServeHTTP(w, req)
			return
		}
		before, after, lose := (*hook)()
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		before()
		// Whoever sent it may be dead by now: it lands all the same.
		again, err := http.NewRequestWithContext(context.WithoutCancel(req.Context()), req.Method, up+req.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			return
		}
		again.Header = req.Header
		resp, err := http.DefaultClient.Do(again)
		if err != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }()
		after()
		if lose {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}), ErrorLog: nil}
	go func() { _ = srv.Serve(l) }()
	r.t.Cleanup(func() { _ = srv.Close() })
	r.url = "http://" + l.Addr().String()
}

func (r *registry) login(up string) {
	body := `{"name":"me","password":"s3cret-pass","_id":"org.couchdb.user:me","type":"user","roles":[],"date":"2026-01-01T00:00:00.000Z"}`
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPut, up+"/-/user/org.couchdb.user:me", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var a struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || a.Token == "" {
		r.t.Fatalf("no token: %v %s", err, resp.Status)
	}
	if err := os.MkdirAll(r.home, 0o700); err != nil {
		r.t.Fatal(err)
	}
	host := strings.TrimPrefix(r.url, "http:")
	rc := fmt.Sprintf("registry=%s/\n%s/:_authToken=%s\nupdate-notifier=false\n", r.url, host, a.Token)
	if err := os.WriteFile(filepath.Join(r.home, ".npmrc"), []byte(rc), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// pack makes a package's folder.
func (r *registry) pack(name string) Place {
	r.t.Helper()
	dir := r.t.TempDir()
	work := filepath.Join(dir, "work")
	for _, d := range []string{work, filepath.Join(dir, "scratch")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	for f, text := range map[string]string{"package.json": fmt.Sprintf(`{"name": %q, "version": "1.0.0"}`, name), "index.js": "1\n"} {
		if err := os.WriteFile(filepath.Join(work, f), []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	level := measured().Level
	return Place{
		Dir: work, Scratch: filepath.Join(dir, "scratch"), Home: r.home, Level: level,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home},
	}
}

// npm starts npm as the operator would.
func (r *registry) npm(at Place, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.t.Context(), "npm", args...)
	cmd.Dir, cmd.Env = at.Dir, append(at.Environ, "npm_config_fetch_retries=0")
	detach(cmd)
	return cmd
}

// npm publish against a real registry: what a look finds before, after, and when
// npm was killed on either side of the upload.
func TestNPMPublishAgainstARealRegistry(t *testing.T) {
	r := startRegistry(t)
	plan := func(at Place) (Recipe, machine.Contract) {
		t.Helper()
		rec, ok := lookUp(t, "npm publish")
		if !ok {
			t.Fatal("no recipe")
		}
		p, err := rec.Plan(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		return rec, p.Contract
	}
	look := func(at Place, c machine.Contract, params map[string]string, want machine.Verdict) Finding {
		t.Helper()
		f := Probe(t.Context(), Request{Contract: c, Params: params, Place: at})
		if f.Verdict != want {
			t.Errorf("%v (%s), want %v\n%s", f.Verdict, f.Text, want, f.Detail)
		}
		return f
	}
	measure := func(at Place) (machine.Contract, map[string]string) {
		t.Helper()
		rec, c := plan(at)
		params, err := rec.Measure(t.Context(), at, c)
		if err != nil {
			t.Fatal(err)
		}
		return c, params
	}

	t.Run("published, and taken back", func(t *testing.T) {
		at := r.pack("@me/plain")
		c, params := measure(at)
		look(at, c, params, machine.VerdictNotHappened)
		if out, err := r.npm(at, "publish").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		look(at, c, params, machine.VerdictHappened)
		var undo struct{ Command string }
		if err := json.Unmarshal([]byte(c.Compensation.Args), &undo); err != nil {
			t.Fatal(err)
		}
		if out, err := r.npm(at, append(strings.Fields(undo.Command)[1:], "--force")...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", undo.Command, err, out)
		}
		look(at, c, params, machine.VerdictNotHappened)
	})
	t.Run("another version of it is there", func(t *testing.T) {
		at := r.pack("plain2")
		if out, err := r.npm(at, "publish").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if err := os.WriteFile(filepath.Join(at.Dir, "package.json"), []byte(`{"name": "plain2", "version": "1.0.1"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		c, params := measure(at)
		look(at, c, params, machine.VerdictNotHappened)
	})
	t.Run("somebody else published it before", func(t *testing.T) {
		at := r.pack("plain3")
		if out, err := r.npm(at, "publish").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		c, params := measure(at)
		out, err := r.npm(at, "publish").CombinedOutput()
		if err == nil {
			t.Fatalf("a version was published twice:\n%s", out)
		}
		if answered, _ := Answered(c, "1", out); answered {
			t.Error("a refusal that may be that of a second sending counts as an answer")
		}
		if f := look(at, c, params, machine.VerdictInconclusive); !strings.Contains(f.Text, "somebody else") {
			t.Error(f.Text)
		}
	})
	for _, tt := range []struct {
		name        string
		early, late bool // killed before the registry had it; and it lands all the same
		want        machine.Verdict
	}{
		{"killed after the upload", false, false, machine.VerdictHappened},
		{"killed before the upload", true, false, machine.VerdictNotHappened},
		{"killed before the upload, which lands late", true, true, machine.VerdictHappened},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := r.pack(strings.NewReplacer(" ", "-", ",", "").Replace(tt.name))
			c, params := measure(at)
			cmd := r.npm(at, "publish")
			dead, land, landed := make(chan struct{}), make(chan struct{}), make(chan struct{})
			started := make(chan struct{})
			kill := func() { <-started; _ = cmd.Cancel(); <-dead }
			hook := uploadHook(func() (func(), func(), bool) {
				if !tt.early {
					return func() {}, kill, true
				}
				return func() {
					kill()
					<-land
					if !tt.late {
						panic(http.ErrAbortHandler)
					}
				}, func() { close(landed) }, true
			})
			r.upload.Store(&hook)
			defer r.upload.Store(nil)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			close(started)
			_ = cmd.Wait() // it was killed
			close(dead)
			if tt.early {
				look(at, c, params, machine.VerdictNotHappened)
			}
			close(land)
			if tt.late {
				<-landed
			}
			look(at, c, params, tt.want)
		})
	}
	t.Run("the registry is gone", func(t *testing.T) {
		at := r.pack("plain4")
		_, c := plan(at)
		at.Environ = append(at.Environ, "npm_config_registry=http://127.0.0.1:1/")
		look(at, c, map[string]string{paramBefore: "not_happened"}, machine.VerdictInconclusive)
	})
	if measured().Level < confine.LevelSealed {
		t.Log("the looks ran at level", measured().Level)
	}
}
