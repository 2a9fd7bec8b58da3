package effect

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine/machine"
)

func TestMatchPush(t *testing.T) {
	for _, line := range []string{
		"git push", "git push origin", "git push origin main", "git push -u origin main", "git push --set-upstream origin HEAD",
		"git push origin HEAD:refs/heads/x", "git push origin a:b", "git push origin +a:b", "git push origin :x",
		"git push origin --delete x", "git push -d origin x", "git push --force-with-lease origin main",
		"git push --force-with-lease=main:abc origin main", "git push origin v1.0", "git push /srv/r.git main",
		"git push ../r.git HEAD:refs/heads/x", "git push https://h/r main", "git push host:r main", "git push -- origin main",
		"git push -q --no-verify origin main", "git push 'origin' \"main\"",
	} {
		if r, ok := match(t, line); !ok || r.Name != PushName {
			t.Errorf("%q is not recognised", line)
		}
	}
	for _, line := range []string{
		"", "git", "git pull", "git pushx", "/usr/bin/git push", "git -C d push", "git -c a=b push", "git --git-dir=x push",
		"git push --all", "git push --mirror", "git push --tags", "git push --follow-tags", "git push --prune origin main",
		"git push origin a b", "git push origin tag v1", "git push -n origin main", "git push --dry-run", "git push -o x origin main",
		"git push --receive-pack=x origin main", "git push --exec=x origin main", "git push --repo=x", "git push -4 origin main",
		"git push origin 'refs/heads/*:refs/heads/*'", "git push origin :", "git push origin a:", "git push origin '^a'",
		"git push origin a..b", "git push --delete origin", "git push . main", "git push '' main", "git push origin ''", "git push origin a:b:c",
		"git push origin main && x", "git push origin main > f", "X=1 git push origin main", "env git push origin main",
		"git push origin $b", "git push origin *", "git push origin a:HEAD", "git push --recurse-submodules=only origin main",
		"git push -uf origin main", "git push --signed origin main",
	} {
		if _, ok := match(t, line); ok {
			t.Errorf("%q is recognised", line)
		}
	}
}

// What is planned and measured is exactly what git then does: one ref, the
// measured value before, the measured value after.
func TestPlanIsWhatGitDoes(t *testing.T) {
	for _, tt := range []struct {
		name, line, ref string
		setup           func(w *world)
	}{
		{"branch", "git push origin main", "refs/heads/main", nil},
		{"HEAD", "git push origin HEAD", "refs/heads/main", nil},
		{"HEAD of another branch", "git push -u origin HEAD", "refs/heads/fix/a", func(w *world) { w.git("checkout", "-q", "-b", "fix/a"); w.commit("x") }},
		{"to a full name", "git push origin HEAD:refs/heads/fix/retry", "refs/heads/fix/retry", nil},
		{"to a short name", "git push origin main:topic", "refs/heads/topic", nil},
		{"HEAD to a short name", "git push origin HEAD:topic", "refs/heads/topic", nil},
		{"another branch", "git push origin side", "refs/heads/side", func(w *world) { w.git("branch", "side") }},
		{"a commit by expression", "git push origin HEAD~1:refs/heads/old", "refs/heads/old", nil},
		{"detached", "git push origin HEAD:refs/heads/d", "refs/heads/d", func(w *world) { w.git("checkout", "-q", "--detach") }},
		{"light tag", "git push origin v1", "refs/tags/v1", func(w *world) { w.git("tag", "v1") }},
		{"annotated tag", "git push origin v2", "refs/tags/v2", func(w *world) { w.git("tag", "-a", "-m", "x", "v2") }},
		{"tag to a short name", "git push origin v3:w3", "refs/tags/w3", func(w *world) { w.git("tag", "v3") }},
		{"forced", "git push -f origin main", "refs/heads/main", func(w *world) { w.git("commit", "-q", "--amend", "--allow-empty", "-m", "other") }},
		{"forced by plus", "git push origin +HEAD~1:refs/heads/main", "refs/heads/main", func(w *world) { w.git("push", "-q", "origin", "main") }},
		{"with lease", "git push --force-with-lease origin main", "refs/heads/main", func(w *world) {
			w.git("fetch", "-q")
			w.git("commit", "-q", "--amend", "--allow-empty", "-m", "other")
		}},
		{"deletion", "git push origin --delete gone", "refs/heads/gone", func(w *world) { w.git("push", "-q", "origin", "HEAD:refs/heads/gone") }},
		{"deletion by colon", "git push origin :refs/heads/gone", "refs/heads/gone", func(w *world) { w.git("push", "-q", "origin", "HEAD:refs/heads/gone") }},
		{"by path", "git push ../remote.git main", "refs/heads/main", nil},
		{"without a refspec", "git push", "refs/heads/main", func(w *world) { w.git("branch", "-q", "--set-upstream-to=origin/main") }},
		{"to a remote without a refspec", "git push origin", "refs/heads/main", func(w *world) { w.git("branch", "-q", "--set-upstream-to=origin/main") }},
		{"push.default current", "git push origin", "refs/heads/b", func(w *world) {
			w.git("checkout", "-q", "-b", "b")
			w.git("config", "push.default", "current")
			w.git("config", "branch.b.remote", "origin")
		}},
		{"push.default upstream", "git push", "refs/heads/there", func(w *world) {
			w.git("push", "-q", "origin", "main:there")
			w.git("fetch", "-q")
			w.git("config", "push.default", "upstream")
			w.git("branch", "-q", "--set-upstream-to=origin/there")
			w.commit("more")
		}},
		{"a triangle", "git push", "refs/heads/main", func(w *world) {
			w.git("remote", "add", "up", w.home)
			w.git("config", "branch.main.remote", "up")
			w.git("config", "branch.main.merge", "refs/heads/main")
			w.git("config", "remote.pushDefault", "origin")
		}},
		{"a pushurl of its own", "git push origin main", "refs/heads/main", func(w *world) {
			w.git("config", "remote.origin.url", "https://example.invalid/r")
			w.git("config", "remote.origin.pushurl", w.remote)
		}},
		{"a file URL", "git push origin main", "refs/heads/main", func(w *world) { w.git("config", "remote.origin.url", "file://"+w.remote) }},
		{"a rewritten URL", "git push origin main", "refs/heads/main", func(w *world) {
			w.git("config", "remote.origin.url", "short:r.git")
			w.git("config", "url."+filepath.Dir(w.remote)+"/.insteadOf", "short:")
			if err := os.Symlink(w.remote, filepath.Join(filepath.Dir(w.remote), "r.git")); err != nil {
				w.t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.commit("second")
			if tt.setup != nil {
				tt.setup(w)
			}
			before := w.refs()
			_, p := w.planned(tt.line)
			c, params := w.dispatched(tt.line)
			if c.Params[ParamRef] != tt.ref || !strings.HasSuffix(p.Target, " "+tt.ref) {
				t.Errorf("planned %q, target %q, want %s", c.Params[ParamRef], p.Target, tt.ref)
			}
			if len(p.OutsideWrite) != 1 || p.OutsideWrite[0] != w.remote || c.Network || c.InFlight != 0 || !c.Probe.ProvesNot {
				t.Errorf("a path is not treated as one: %+v %+v", p.OutsideWrite, c)
			}
			if params[ParamOld] != before[tt.ref] {
				t.Errorf("old value %q, is %q", params[ParamOld], before[tt.ref])
			}
			w.want(w.probe(c, params), machine.VerdictNotHappened, "as before the push")

			if code, out := w.run("sh", "-c", tt.line); code != 0 {
				t.Fatalf("git: %d\n%s", code, out)
			}
			want := maps.Clone(before)
			want[tt.ref] = params[ParamNew]
			if params[ParamNew] == "" {
				delete(want, tt.ref)
			}
			if got := w.refs(); !maps.Equal(got, want) {
				t.Errorf("git made\n%v of\n%v, planned was\n%v", got, before, want)
			}
			w.want(w.probe(c, params), machine.VerdictHappened, "as the push wants it")
		})
	}
}

func TestPlanRefusesWhatItCannotTell(t *testing.T) {
	for _, tt := range []struct {
		name, line, why string
		setup           func(w *world)
	}{
		{"no remote", "git push", "no remote that", nil},
		{"no upstream", "git push origin", "no place to be pushed to", nil},
		{"no such remote", "git push nowhere main", "no remote called nowhere", nil},
		{"no such source", "git push origin nosuch", "neither a branch nor a tag", nil},
		{"no such source, full", "git push origin nosuch:refs/heads/x", "no commit or tag", nil},
		{"a commit without a full name", "git push origin HEAD~0:x", "write refs/heads/x", nil},
		{"detached", "git push origin HEAD", "neither a branch nor a tag", func(w *world) { w.git("checkout", "-q", "--detach") }},
		{"branch and tag", "git push origin both", "is a branch and a tag", func(w *world) { w.git("branch", "both"); w.git("tag", "both") }},
		{"matching", "git push origin", "or more than one", func(w *world) { w.git("config", "push.default", "matching") }},
		{"mirror", "git push origin main", "remote.origin.mirror", func(w *world) { w.git("config", "remote.origin.mirror", "true") }},
		{"mapped", "git push origin main", "remote.origin.push", func(w *world) { w.git("config", "remote.origin.push", "refs/heads/main:refs/heads/q") }},
		{"mapped by upstream", "git push origin main", "push.default is upstream", func(w *world) { w.git("config", "push.default", "upstream") }},
		{"tags follow", "git push origin main", "push.followtags", func(w *world) { w.git("config", "push.followTags", "true") }},
		{"submodules", "git push origin main", "submodule.recurse", func(w *world) { w.git("config", "submodule.recurse", "true") }},
		{"push options", "git push origin main", "push.pushoption", func(w *world) { w.git("config", "push.pushOption", "ci.skip") }},
		{"receive-pack", "git push origin main", "receivepack", func(w *world) { w.git("config", "remote.origin.receivepack", "/bin/x") }},
		{"a directory that is no repository", "git push ../home main", "no git repository at", nil},
		{"the root", "git push / main", "no git repository at /", nil},
		{"two places", "git push origin main", "2 places", func(w *world) { w.git("remote", "set-url", "--add", "origin", "/srv/x") }},
		{"a transport that is a program", "git push origin main", "kind that is not known", func(w *world) { w.git("config", "remote.origin.url", "ext::sh -c x") }},
		{"rewritten on the command line", "git push /srv/x main", "rewrites URLs", func(w *world) { w.git("config", "url./srv/y.pushInsteadOf", "/srv/x") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tt.setup != nil {
				tt.setup(w)
			}
			r, ok := match(t, tt.line)
			if !ok {
				t.Fatal("not recognised")
			}
			_, err := r.Plan(t.Context(), w.at)
			var u *Unresolved
			if !errors.As(err, &u) || !strings.Contains(u.Why, tt.why) {
				t.Errorf("got %v, want %q", err, tt.why)
			}
		})
	}
}

func TestPlanOutsideARepository(t *testing.T) {
	w := newWorld(t)
	at := w.at
	at.Dir = w.home
	r, _ := match(t, "git push origin main")
	_, err := r.Plan(t.Context(), at)
	var u *Unresolved
	if !errors.As(err, &u) {
		t.Errorf("got %v", err)
	}
}

// What was shown names a commit; a commit made in between is another plan, so
// that an approval of the first does not cover it.
func TestPlanNamesTheCommitThatWasShown(t *testing.T) {
	w := newWorld(t)
	_, before := w.planned("git push origin main:topic")
	w.git("commit", "-q", "--allow-empty", "-m", "in between")
	_, after := w.planned("git push origin main:topic")
	was, now := before.Contract.Params[ParamPlanned], after.Contract.Params[ParamPlanned]
	if was == "" || was == now {
		t.Fatalf("planned %q, then %q", was, now)
	}
}

func TestMeasureRefusesAnotherAim(t *testing.T) {
	for name, setup := range map[string]func(w *world){
		"remote moved":          func(w *world) { w.git("remote", "set-url", "origin", w.home) },
		"now mapped":            func(w *world) { w.git("config", "push.followTags", "true") },
		"source gone":           func(w *world) { w.git("branch", "-q", "-M", "main", "other") },
		"a tag of that name":    func(w *world) { w.git("--git-dir="+w.remote, "tag", "topic", "main") },
		"configured elsewhere":  func(w *world) { w.git("config", "remote.origin.pushurl", w.home) },
		"no longer a directory": func(w *world) { w.at.Dir = filepath.Join(w.home, "gone") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r, p := w.planned("git push origin main:topic")
			setup(w)
			_, err := r.Measure(t.Context(), w.at, p.Contract)
			if err == nil || !strings.Contains(err.Error(), "the push was not sent") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNetworkContract(t *testing.T) {
	w := newWorld(t)
	for url, kind := range map[string]remoteKind{
		"https://bob:secret@example.com/r.git": remoteHTTP, "git@example.com:r.git": remoteSSH, "ssh://git@example.com/r.git": remoteSSH, "git://example.com/r": remoteGit,
	} {
		w.git("remote", "set-url", "origin", url)
		_, p := w.planned("git push origin main")
		c := p.Contract
		if !c.Network || c.InFlight == 0 || c.Probe.ProvesNot || c.Class != machine.ClassProbeable || c.Sender != machine.SenderCommand || c.Params[ParamKind] != string(kind) {
			t.Errorf("%s: %+v", url, c)
		}
		if len(p.OutsideWrite) > 0 || len(p.Env) == 0 {
			t.Errorf("%s: %+v", url, p)
		}
		if all := p.Target + p.Text + c.Params[ParamURL]; strings.Contains(all, "secret") {
			t.Errorf("%s: the password is on record: %s", url, all)
		}
	}
}

// What has to be written is the repository, never the directory around it.
func TestPathRemoteIsItsRepository(t *testing.T) {
	w := newWorld(t)
	checkout := filepath.Join(w.home, "checkout")
	w.git("clone", "-q", w.remote, checkout)
	for given, want := range map[string]string{
		checkout:                              filepath.Join(checkout, ".git"),
		filepath.Join(checkout, ".git"):       filepath.Join(checkout, ".git"),
		w.remote:                              w.remote,
		strings.TrimSuffix(w.remote, ".git"):  w.remote,
		"file://" + w.remote:                  w.remote,
		"../" + filepath.Base(w.remote) + "/": w.remote,
	} {
		line := "git push " + given + " main:refs/heads/x"
		_, p := w.planned(line)
		if len(p.OutsideWrite) != 1 || p.OutsideWrite[0] != want {
			t.Errorf("%s: %q, want %q", given, p.OutsideWrite, want)
		}
		c, params := w.dispatched(line)
		w.git("push", "-q", given, "main:refs/heads/x")
		w.want(w.probe(c, params), machine.VerdictHappened, "")
		w.git("push", "-q", given, ":refs/heads/x")
	}
}

func TestPlanNamesHooks(t *testing.T) {
	w := newWorld(t)
	hook := filepath.Join(w.work, ".git", "hooks", "pre-push")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, p := w.planned("git push origin main"); len(p.Files) != 1 || p.Files[0] != hook || !strings.Contains(p.Text, hook) {
		t.Errorf("%+v", p)
	}
	w.git("config", "core.hooksPath", "elsewhere")
	if _, p := w.planned("git push origin main"); len(p.Files) != 0 {
		t.Errorf("%+v", p)
	}
}
