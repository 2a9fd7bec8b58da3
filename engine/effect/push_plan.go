package effect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pawl/engine/machine"
)

// Parameters of a git push that its contract or its dispatch records.
const (
	ParamURL        = "url"     // without credentials
	ParamRemote     = "remote"  // as written or configured
	ParamRef        = "ref"     // full name on the remote
	ParamSource     = "source"  // as written
	ParamPlanned    = "planned" // object that the source named when the push was planned: what was shown
	ParamNew        = "new"     // object to be put there, "" for a deletion
	ParamOld        = "old"     // object there before, "" if none
	ParamOldUnknown = "old_unknown"
	ParamDelete     = "delete" // "true"
	ParamForce      = "force"  // "true"
	ParamKind       = "kind"   // path, http, ssh, git
	paramGuessed    = "guessed"
)

// How long a push to a network remote may still land after its sender is dead:
// the server goes on with what it has received.
const networkInFlight = 2 * time.Minute

// settleTime is how long a network remote may show an old value after an update.
const settleTime = time.Minute

// aim is where a push goes: the resolved line.
type aim struct {
	remote  remote
	name    string // of the remote, as written or configured
	ref     string // full name on the remote
	guessed bool   // ref was completed from a short name; the remote may know it otherwise
	source  string // what to resolve for the new value, "" for a deletion
}

// plan resolves the line against the repository's configuration.
func (p push) plan(ctx context.Context, at Place) (Planned, error) {
	a, err := p.resolve(ctx, at)
	if err != nil {
		return Planned{}, err
	}
	out := Planned{Contract: p.contract(a), Target: a.remote.shown() + " " + a.ref}
	var text strings.Builder
	fmt.Fprintf(&text, "remote  %s (%s)\nref     %s\n", a.name, a.remote.shown(), a.ref)
	if p.delete {
		text.WriteString("        the ref is deleted there\n")
	} else {
		what, err := at.git(ctx, at.Dir, "", "log", "-1", "--no-show-signature", "--no-color", "--format=%h %s", a.source, "--")
		if err != nil {
			return Planned{}, unresolved("the source %s is no commit or tag here: %v", a.source, err)
		}
		fmt.Fprintf(&text, "commit  %s", what)
		oid, err := at.git(ctx, at.Dir, "", "rev-parse", "--verify", "--quiet", a.source)
		if err != nil {
			return Planned{}, unresolved("the source %s is no commit or tag here: %v", a.source, err)
		}
		out.Contract.Params[ParamPlanned] = strings.TrimSpace(oid)
	}
	if p.force {
		text.WriteString("force   commits that the remote alone has may be dropped from the ref\n")
	}
	if hook := at.hook(ctx, "pre-push"); hook != "" {
		out.Files = append(out.Files, hook)
		fmt.Fprintf(&text, "hook    %s of this repository runs first\n", hook)
	}
	out.Text = text.String()
	switch a.remote.kind {
	case remotePath:
		out.OutsideWrite = []string{a.remote.path}
	case remoteSSH:
		out.Env, out.Reveal = []string{"SSH_AUTH_SOCK"}, []string{".ssh", ".gitconfig", ".config/git"}
	case remoteHTTP, remoteGit:
		out.Env = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"}
		out.Reveal = []string{".gitconfig", ".config/git", ".git-credentials", ".netrc"}
	case remoteOther:
	}
	return out, nil
}

// contract is what a push promises. With a path for a remote everything that
// could still write is a descendant of the command, so nothing lands once they
// are dead. Over a network the server may finish by itself, and servers that
// we have not tested may answer from a copy that lags: there the probe proves
// only that it happened.
func (p push) contract(a aim) machine.Contract {
	c := machine.Contract{
		Name: PushName, Version: pushVersion, Class: machine.ClassProbeable, Sender: machine.SenderCommand,
		Writes:        true, // hooks run, and -u writes configuration
		Network:       a.remote.kind != remotePath,
		ProvesNothing: []string{"1", "128"},
		Params: map[string]string{
			ParamURL: a.remote.shown(), ParamRemote: a.name, ParamRef: a.ref, ParamKind: string(a.remote.kind),
		},
		Probe: &machine.Probe{Kind: ProbeGitRef},
	}
	if c.Network {
		c.InFlight = networkInFlight.Microseconds()
		c.Probe.Settle = settleTime.Microseconds()
	} else {
		c.Probe.ReadsOwnWrites, c.Probe.ProvesNot = true, true
	}
	if a.source != "" {
		c.Params[ParamSource] = a.source
	}
	if p.delete {
		c.Params[ParamDelete] = "true"
	}
	if p.force {
		c.Params[ParamForce] = "true"
	}
	if a.guessed {
		c.Params[paramGuessed] = "true"
	}
	return c
}

// resolve finds the remote and the ref that the line means.
func (p push) resolve(ctx context.Context, at Place) (aim, error) {
	top, err := at.git(ctx, at.Dir, "", "rev-parse", "--show-toplevel")
	if err != nil {
		return aim{}, unresolved("the directory is no git working tree: %v", err)
	}
	cfg, err := at.config(ctx)
	if err != nil {
		return aim{}, fmt.Errorf("read git's configuration: %w", err)
	}
	if err := cfg.plainPush(); err != nil {
		return aim{}, err
	}
	a := aim{name: p.remote}
	if !p.spec {
		if err := p.current(ctx, at, cfg, &a); err != nil {
			return aim{}, err
		}
	}
	if a.name == "" {
		return aim{}, unresolved("it names no remote")
	}
	if a.remote, err = at.remote(ctx, cfg, a.name, strings.TrimSuffix(top, "\n")); err != nil {
		return aim{}, err
	}
	if p.spec {
		err = p.aimAt(ctx, at, cfg, &a)
	}
	return a, err
}

// current fills in what git push means without a refspec: the current branch,
// to where its configuration says.
func (p push) current(ctx context.Context, at Place, cfg gitConfig, a *aim) error {
	head, err := at.git(ctx, at.Dir, "", "symbolic-ref", "-q", "HEAD")
	if err != nil {
		return unresolved("no branch is checked out, so it does not say what to push; name the branch")
	}
	head = strings.TrimSuffix(head, "\n")
	key := "branch." + strings.TrimPrefix(head, "refs/heads/") + "."
	fetch, merge := cfg.last(key+"remote"), cfg.last(key+"merge")
	for _, name := range []string{a.name, cfg.last(key + "pushremote"), cfg.last("remote.pushdefault"), fetch} {
		if a.name == "" {
			a.name = name
		}
	}
	if a.name == "" || len(cfg["remote."+a.name+".url"]) == 0 {
		return unresolved("the branch has no remote that it is pushed to by itself; name remote and branch")
	}
	if len(cfg["remote."+a.name+".push"]) > 0 {
		return unresolved("remote.%s.push is configured, so it may push more than one ref", a.name)
	}
	a.source, a.ref = head, head
	switch d := strings.ToLower(cfg.last("push.default")); {
	case d == "current", (d == "" || d == "simple") && fetch != "" && fetch != a.name:
	case (d == "" || d == "simple") && fetch == a.name && merge == head:
	case (d == "upstream" || d == "tracking") && fetch == a.name && strings.HasPrefix(merge, "refs/heads/"):
		a.ref = merge
	default:
		return unresolved("the branch has no place to be pushed to by itself, or more than one; name remote and branch")
	}
	return nil
}

// aimAt resolves a refspec as git does.
func (p push) aimAt(ctx context.Context, at Place, cfg gitConfig, a *aim) error {
	if p.delete {
		a.ref = p.dst
		if !strings.HasPrefix(a.ref, "refs/") {
			a.ref, a.guessed = "refs/heads/"+p.dst, true
		}
		return nil
	}
	full, err := at.sourceRef(ctx, p.src)
	if err != nil {
		return err
	}
	a.source = p.src
	if full != "" {
		a.source = full
	}
	kind := ""
	for _, k := range []string{"refs/heads/", "refs/tags/"} {
		if strings.HasPrefix(full, k) {
			kind = k
		}
	}
	switch {
	case strings.HasPrefix(p.dst, "refs/"):
		a.ref = p.dst
	case p.dst != "" && kind != "":
		a.ref, a.guessed = kind+p.dst, true
	case p.dst != "":
		return unresolved("%s is neither a branch nor a tag here, so git does not know what %s is to be; write refs/heads/%s", p.src, p.dst, p.dst)
	case kind == "":
		return unresolved("%s is neither a branch nor a tag here; write where it goes, as in %s:refs/heads/NAME", p.src, p.src)
	case len(cfg["remote."+a.name+".push"]) > 0:
		return unresolved("remote.%s.push is configured, so %s may go elsewhere; write %s:%s", a.name, p.src, p.src, full)
	case kind == "refs/heads/" && strings.Contains("upstream tracking", cfg.last("push.default")) && cfg.last("push.default") != "":
		return unresolved("push.default is upstream, so %s may go elsewhere; write %s:%s", p.src, p.src, full)
	default:
		a.ref = full
	}
	return nil
}

// sourceRef is the full name of the branch or tag that src names, "" if it is
// another expression for an object.
func (at Place) sourceRef(ctx context.Context, src string) (string, error) {
	if src == "HEAD" || src == "@" {
		out, err := at.git(ctx, at.Dir, "", "symbolic-ref", "-q", "HEAD")
		var ge *gitError
		if errors.As(err, &ge) && ge.code == 1 {
			return "", nil // detached
		}
		return strings.TrimSuffix(out, "\n"), err
	}
	names := []string{"refs/heads/" + src, "refs/tags/" + src}
	if strings.HasPrefix(src, "refs/") {
		names = []string{src}
	}
	out, err := at.git(ctx, at.Dir, "", append([]string{"for-each-ref", "--format=%(refname)"}, names...)...)
	if err != nil {
		return "", fmt.Errorf("read the refs: %w", err)
	}
	var found []string
	for line := range strings.Lines(out) { // patterns match what lies below a name too
		for _, n := range names {
			if strings.TrimSuffix(line, "\n") == n {
				found = append(found, n)
			}
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", unresolved("%s is a branch and a tag; write refs/heads/%s or refs/tags/%s", src, src, src)
}

// remote resolves a remote's name, or a URL or path given in its place.
func (at Place) remote(ctx context.Context, cfg gitConfig, name, top string) (remote, error) {
	key := "remote." + name + "."
	for _, k := range []string{"mirror", "receivepack", "vcs", "proxy"} {
		if v := cfg.last(key + k); v != "" && v != "false" {
			return remote{}, unresolved("%s%s is configured, which changes what a push does", key, k)
		}
	}
	target := name
	if len(cfg[key+"url"])+len(cfg[key+"pushurl"]) > 0 {
		out, err := at.git(ctx, at.Dir, "", "remote", "get-url", "--push", "--all", name)
		if err != nil {
			return remote{}, unresolved("the remote %s cannot be read: %v", name, err)
		}
		urls := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if len(urls) != 1 {
			return remote{}, unresolved("the remote %s pushes to %d places", name, len(urls))
		}
		target = urls[0]
	} else if cfg.rewrites() {
		return remote{}, unresolved("the configuration rewrites URLs, and %s is not a configured remote", name)
	} else if !strings.ContainsAny(name, "/:") {
		return remote{}, unresolved("there is no remote called %s", name)
	}
	r := readRemote(target, top)
	if r.kind == remoteOther {
		return remote{}, unresolved("the remote %s is of a kind that is not known here", HideCredentials(target))
	}
	if r.kind == remotePath && r.path == "" {
		return remote{}, unresolved("there is no git repository at %s", r.url)
	}
	return r, nil
}

// hook is the path of an executable hook that git would run, "" if there is none.
func (at Place) hook(ctx context.Context, name string) string {
	// Our own commands switch hooks off, so ask for the configured place.
	dir := ""
	if cfg, err := at.config(ctx); err == nil {
		dir = cfg.last("core.hookspath")
	}
	if dir == "" {
		out, err := at.git(ctx, at.Dir, "", "rev-parse", "--path-format=absolute", "--git-common-dir")
		if err != nil {
			return ""
		}
		dir = filepath.Join(strings.TrimSuffix(out, "\n"), "hooks")
	}
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			dir = filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(at.Dir, dir)
	}
	path := filepath.Join(dir, name)
	if st, err := os.Stat(path); err != nil || st.IsDir() || st.Mode()&0o111 == 0 {
		return ""
	}
	return path
}
