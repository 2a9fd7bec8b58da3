package effect

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pawl/engine/machine"
)

const pushMain = "git push origin main"

func TestProbeAfterOthersMovedTheRef(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		setup      func(w *world) // before measuring
		then       func(w *world) // instead of, or after, the push
		want       machine.Verdict
		text       string
	}{
		{"somebody pushed on top of it", pushMain, nil, func(w *world) {
			w.git("push", "-q", "origin", "main")
			w.commit("third")
			w.git("push", "-q", "origin", "main")
		}, machine.VerdictHappened, "contains the pushed"},
		{"somebody merged it elsewhere", pushMain, nil, func(w *world) {
			other := w.clone()
			other.commit("theirs")
			other.git("pull", "-q", "--no-rebase", "--no-edit", w.work, "main")
			other.git("push", "-q", "origin", "main")
		}, machine.VerdictHappened, "contains the pushed"},
		{"somebody pushed something else", pushMain, nil, func(w *world) {
			other := w.clone()
			other.commit("theirs")
			other.git("push", "-q", "origin", "main")
		}, machine.VerdictConflict, "neither the pushed"},
		{"somebody deleted it", pushMain, nil, func(w *world) {
			w.git("--git-dir="+w.remote, "update-ref", "-d", "refs/heads/main")
		}, machine.VerdictConflict, "absent"},
		{"a new ref that is not there", "git push origin HEAD:refs/heads/new", nil, func(*world) {}, machine.VerdictNotHappened, "still absent"},
		{"a new ref that somebody else made", "git push origin HEAD:refs/heads/new", nil, func(w *world) {
			w.git("--git-dir="+w.remote, "branch", "new", "main")
		}, machine.VerdictConflict, "neither"},
		{
			"a push that goes back, not arrived", "git push -f origin HEAD~1:refs/heads/main", func(w *world) { w.git("push", "-q", "origin", "main") },
			func(*world) {}, machine.VerdictNotHappened, "is still",
		},
		{
			"a push that goes back, arrived", "git push -f origin HEAD~1:refs/heads/main", func(w *world) { w.git("push", "-q", "origin", "main") },
			func(w *world) { w.git("push", "-qf", "origin", "HEAD~1:refs/heads/main") }, machine.VerdictHappened, "is now",
		},
		{
			"a push that goes back, and somebody goes on", "git push -f origin HEAD~1:refs/heads/main", func(w *world) { w.git("push", "-q", "origin", "main") },
			func(w *world) { w.commit("third"); w.git("push", "-q", "origin", "main") }, machine.VerdictConflict, "neither",
		},
		{"nothing to push", pushMain, func(w *world) { w.git("push", "-q", "origin", "main") }, func(*world) {}, machine.VerdictHappened, "so before"},
		{
			"a deletion that did not arrive", "git push origin :refs/heads/gone", func(w *world) { w.git("push", "-q", "origin", "main:gone") },
			func(*world) {}, machine.VerdictNotHappened, "is still",
		},
		{
			"a deletion crossed by a push", "git push origin :refs/heads/gone", func(w *world) { w.git("push", "-q", "origin", "main:gone") },
			func(w *world) { w.commit("third"); w.git("push", "-q", "origin", "main:gone") }, machine.VerdictConflict, "neither",
		},
		{
			"a tag that somebody moved", "git push origin v1", func(w *world) { w.git("tag", "-a", "-m", "x", "v1") },
			func(w *world) { w.git("--git-dir="+w.remote, "tag", "v1", "main") }, machine.VerdictConflict, "neither",
		},
		{"a remote that is gone", pushMain, nil, func(w *world) {
			if err := os.RemoveAll(w.remote); err != nil {
				w.t.Fatal(err)
			}
		}, machine.VerdictInconclusive, "could not be read"},
		{"a working copy that is gone", pushMain, nil, func(w *world) {
			w.git("push", "-q", "origin", "main")
			other := w.clone()
			other.commit("theirs")
			other.git("push", "-q", "origin", "main")
			if err := os.RemoveAll(w.work); err != nil {
				w.t.Fatal(err)
			}
		}, machine.VerdictHappened, "contains the pushed"},
		{"a remote that now leads elsewhere", pushMain, nil, func(w *world) {
			w.git("push", "-q", "origin", "main")
			w.git("remote", "set-url", "origin", w.home)
		}, machine.VerdictHappened, "is now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.commit("second")
			if tt.setup != nil {
				tt.setup(w)
			}
			c, params := w.dispatched(tt.line)
			tt.then(w)
			f := w.probe(c, params)
			w.want(f, tt.want, tt.text)
			if f.Verdict != machine.VerdictInconclusive && !strings.Contains(f.Detail, "before ") {
				t.Errorf("no detail: %q", f.Detail)
			}
		})
	}
}

// clone is somebody else's working copy of the same remote.
func (w *world) clone() *world {
	other := *w
	other.work = filepath.Join(w.home, "other")
	w.git("clone", "-q", w.remote, other.work)
	return &other
}

// An old value that could not be read leaves room for "happened" alone.
func TestProbeWithoutTheOldValue(t *testing.T) {
	w := newWorld(t)
	w.commit("second")
	r, p := w.planned(pushMain)
	config := filepath.Join(w.remote, "config")
	good, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("[broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	params, err := r.Measure(t.Context(), w.at, p.Contract)
	if err != nil || params[ParamOldUnknown] == "" {
		t.Fatalf("%v %v", params, err)
	}
	if err := os.WriteFile(config, good, 0o600); err != nil {
		t.Fatal(err)
	}
	w.want(w.probe(p.Contract, params), machine.VerdictInconclusive, "before the push is not known")
	w.git("push", "-q", "origin", "main")
	w.want(w.probe(p.Contract, params), machine.VerdictHappened, "is now")
}

func TestProbeWithoutARecord(t *testing.T) {
	for name, r := range map[string]Request{
		"no probe":     {},
		"unknown kind": {Contract: machine.Contract{Probe: &machine.Probe{Kind: "oracle"}}},
		"no params":    {Contract: machine.Contract{Probe: &machine.Probe{Kind: ProbeGitRef}}},
		"no new value": {Contract: machine.Contract{Probe: &machine.Probe{Kind: ProbeGitRef}}, Params: map[string]string{ParamRef: "refs/heads/x", ParamURL: "/x", ParamNew: "--upload-pack=x"}},
	} {
		if f := Probe(t.Context(), r); f.Verdict != machine.VerdictInconclusive || f.Text == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// What git says at the end is believed only where it quotes the other side.
func TestAnswered(t *testing.T) {
	for _, tt := range []struct {
		name, hook, body string
		prepare          func(w *world)
		answered         bool
		happened         bool
	}{
		{name: "accepted", answered: true, happened: true},
		{name: "refused by a hook", hook: "pre-receive", body: "exit 1", answered: true},
		{name: "refused by the update hook", hook: "update", body: "exit 1", answered: true},
		{name: "died before the ref moved", hook: "pre-receive", body: "kill -9 $PPID"},
		{name: "died when the ref had moved", hook: "reference-transaction", body: `[ "$1" = committed ] && kill -9 $PPID; exit 0`, happened: true},
		{name: "died after the ref had moved", hook: "post-receive", body: "kill -9 $PPID", happened: true},
		{name: "died at the very end", hook: "post-update", body: "kill -9 $PPID", happened: true},
		{name: "a hook that fails too late", hook: "post-receive", body: "exit 1", answered: true, happened: true},
		{name: "not a fast-forward", prepare: func(w *world) {
			other := w.clone()
			other.commit("theirs")
			other.git("push", "-q", "origin", "main")
		}, answered: true},
		{name: "no repository there", prepare: func(w *world) {
			if err := os.Rename(w.remote, w.remote+".away"); err != nil {
				w.t.Fatal(err)
			}
		}, answered: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.commit("second")
			c, params := w.dispatched(pushMain)
			if tt.prepare != nil {
				tt.prepare(w)
			}
			if tt.hook != "" {
				w.hook(tt.hook, tt.body)
			}
			code, out := w.run("sh", "-c", pushMain)
			answered, why := Answered(c, fmt.Sprint(code), []byte(out))
			if answered != tt.answered || why == "" {
				t.Errorf("answered %v (%s), want %v; code %d\n%s", answered, why, tt.answered, code, out)
			}
			if f := w.probe(c, params); (f.Verdict == machine.VerdictHappened) != tt.happened {
				t.Errorf("found %v: %s", f.Verdict, f.Text)
			}
		})
	}
}

// Nothing that the workspace's configuration names is run by looking.
func TestLookingRunsNoCodeOfTheWorkspace(t *testing.T) {
	w := newWorld(t)
	w.commit("second")
	mark := filepath.Join(w.home, "ran")
	script := filepath.Join(w.home, "evil")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >> '"+mark+"'\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, kv := range [][2]string{
		{"core.fsmonitor", script},
		{"core.sshCommand", script},
		{"core.askPass", script},
		{"core.pager", script},
		{"core.editor", script},
		{"core.gitProxy", script},
		{"credential.helper", "!" + script},
		{"remote.origin.uploadpack", script},
		{"gpg.program", script},
		{"log.showSignature", "true"},
		{"protocol.ext.allow", "always"},
		{"core.alternateRefsCommand", script},
		{"uploadpack.packObjectsHook", script},
		{"core.hooksPath", filepath.Dir(script)},
		{"http.sslVerify", "false"},
		{"diff.external", script},
	} {
		w.git("config", kv[0], kv[1])
	}
	for _, url := range []string{w.remote, "https://127.0.0.1:1/r.git", "ssh://127.0.0.1:1/r.git", "git://127.0.0.1:1/r.git"} {
		w.git("config", "remote.origin.url", url)
		c, params := w.dispatched(pushMain)
		f := w.probe(c, params)
		if want := url == w.remote; (f.Verdict == machine.VerdictNotHappened) != want {
			t.Errorf("%s: %+v", url, f)
		}
		if b, err := os.ReadFile(mark); err == nil {
			t.Fatalf("%s: looking ran %s", url, b)
		}
	}
}

func needHTTP(t *testing.T, w *world) string {
	t.Helper()
	dir := w.git("--exec-path")
	for _, p := range []string{"git-remote-http", "git-http-backend"} {
		if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
			t.Skip("needs " + p)
		}
	}
	return dir
}

// A server that never answers, asks for a password, or goes away ends in
// "inconclusive", in bounded time, without anybody being asked.
func TestRemotesThatDoNotAnswer(t *testing.T) {
	w := newWorld(t)
	needHTTP(t, w)
	w.commit("second")

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() { // holds every connection open until the listener is closed
		var held []net.Conn
		for {
			conn, err := silent.Accept()
			if err != nil {
				for _, c := range held {
					c.Close()
				}
				return
			}
			held = append(held, conn)
		}
	}()
	locked := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		rw.WriteHeader(http.StatusUnauthorized)
	}))
	defer locked.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusBadGateway)
	}))
	defer broken.Close()

	password := strings.Replace(locked.URL, "http://", "http://bob:secret@", 1)
	for _, tt := range []struct{ name, url, text string }{
		{"silent by http", "http://" + silent.Addr().String() + "/r.git", "did not answer within"},
		{"silent by git", "git://" + silent.Addr().String() + "/r.git", "did not answer within"},
		{"silent by ssh", "ssh://x@" + silent.Addr().String() + "/r.git", ""}, // ssh may not be installed
		{"a password is wanted", locked.URL + "/r.git", "password or a key"},
		{"a wrong password", password + "/r.git", "password or a key"},
		{"bad gateway", broken.URL + "/r.git", "502"},
		{"nobody there", "http://127.0.0.1:1/r.git", "could not be read"},
	} {
		w.git("config", "remote.origin.url", tt.url)
		at := w.at
		if strings.HasPrefix(tt.name, "silent") {
			at.Timeout = 500 * time.Millisecond
		}
		r, p := w.planned(pushMain)
		start := time.Now()
		params, err := r.Measure(t.Context(), at, p.Contract)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		f := Probe(t.Context(), Request{Contract: p.Contract, Params: params, Place: at})
		if d := time.Since(start); d > 2*(at.Timeout+drain)+30*time.Second {
			t.Errorf("%s: took %v", tt.name, d)
		}
		w.want(f, machine.VerdictInconclusive, tt.text)
		if all := f.Text + f.Detail + fmt.Sprint(params); strings.Contains(all, "secret") || params[ParamOldUnknown] == "" {
			t.Errorf("%s: %s", tt.name, all)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.git("config", "remote.origin.url", "http://"+silent.Addr().String()+"/r.git")
	_, p := w.planned(pushMain)
	w.want(Probe(ctx, Request{Contract: p.Contract, Params: map[string]string{ParamNew: strings.Repeat("a", 40)}, Place: w.at}), machine.VerdictInconclusive, "")
}

// A real server behind a password: the record never holds it, the look uses it.
func TestProbeOverHTTP(t *testing.T) {
	w := newWorld(t)
	dir := needHTTP(t, w)
	w.git("--git-dir="+w.remote, "config", "http.receivepack", "true")
	backend := &cgi.Handler{
		Path: filepath.Join(dir, "git-http-backend"), Dir: filepath.Dir(w.remote), Stderr: io.Discard,
		Env: append(w.environ(), "GIT_PROJECT_ROOT="+filepath.Dir(w.remote), "GIT_HTTP_EXPORT_ALL=1"),
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != "bob" || p != "secret" {
			rw.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(rw, r)
	}))
	defer server.Close()
	u, _ := url.Parse(server.URL + "/remote.git")
	u.User = url.UserPassword("bob", "secret")
	w.git("remote", "set-url", "origin", u.String())
	w.commit("second")

	c, params := w.dispatched(pushMain)
	if params[ParamOldUnknown] != "" || params[ParamOld] == "" || params[ParamURL] != server.URL+"/remote.git" {
		t.Fatalf("%v", params)
	}
	w.want(w.probe(c, params), machine.VerdictNotHappened, "is still")
	if code, out := w.run("git", "push", "origin", "main"); code != 0 {
		t.Fatal(out)
	}
	w.want(w.probe(c, params), machine.VerdictHappened, "is now")
	w.commit("third")
	w.git("push", "-q", "origin", "main")
	w.want(w.probe(c, params), machine.VerdictHappened, "contains the pushed")
}

func TestTooMuchOutput(t *testing.T) {
	w := newWorld(t)
	big := filepath.Join(w.home, "big")
	if err := os.WriteFile(big, []byte(strings.Repeat("x", 3*maxOutput)), 0o600); err != nil {
		t.Fatal(err)
	}
	oid := w.git("hash-object", "-w", big)
	_, err := w.at.git(t.Context(), w.work, "", "cat-file", "blob", oid)
	if got := w.at.reason(err); !strings.Contains(got, "too much output") {
		t.Errorf("%v: %s", err, got)
	}
}

func BenchmarkMeasureAndProbe(b *testing.B) {
	w := newWorld(b)
	w.commit("second")
	for b.Loop() {
		c, params := w.dispatched(pushMain)
		if f := w.probe(c, params); f.Verdict != machine.VerdictNotHappened {
			b.Fatal(f.Text)
		}
	}
}
