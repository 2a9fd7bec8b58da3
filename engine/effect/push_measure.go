package effect

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"pawl/engine/machine"
)

// measure records the values on both sides, just before a dispatch.
func (p push) measure(ctx context.Context, at Place, c machine.Contract) (map[string]string, error) {
	a, err := p.resolve(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("the push was not sent: what it would do can no longer be told: %w; look at the repository's configuration", err)
	}
	for key, now := range map[string]string{ParamURL: a.remote.shown(), ParamRef: a.ref, ParamSource: a.source} {
		if was := c.Params[key]; was != now {
			return nil, fmt.Errorf("the push was not sent: its %s is now %q, and was %q when it was planned; propose it again", key, now, was)
		}
	}
	out := maps.Clone(c.Params)
	if out == nil {
		out = map[string]string{}
	}
	if !p.delete {
		oid, err := at.git(ctx, at.Dir, "", "rev-parse", "--verify", "--quiet", a.source)
		if err != nil {
			return nil, fmt.Errorf("the push was not sent: its source %s is not there any more: %w", a.source, err)
		}
		out[ParamNew] = strings.TrimSpace(oid)
	}
	seen, err := at.lsRemote(ctx, a)
	if err != nil {
		if ctx.Err() == context.Canceled {
			return nil, ctx.Err()
		}
		out[ParamOldUnknown] = at.reason(err)
		return out, nil
	}
	if a.guessed {
		if err := seen.check(a.ref, p.delete); err != nil {
			return nil, err
		}
	}
	out[ParamOld] = seen[a.ref]
	return out, nil
}

// refs are the values of refs on a remote.
type refs map[string]string

// lsRemote asks a remote for the ref of a push, and for what else its short
// name could mean there. It runs outside the workspace's configuration.
func (at Place) lsRemote(ctx context.Context, a aim) (refs, error) {
	dir, remove, err := at.scratchRepo(ctx, a.remote.url)
	if err != nil {
		return nil, err
	}
	defer remove()
	return at.lsIn(ctx, dir, a.ref)
}

func (at Place) lsIn(ctx context.Context, scratch, ref string) (refs, error) {
	want := []string{ref}
	for _, k := range []string{"refs/heads/", "refs/tags/"} {
		if short, ok := strings.CutPrefix(ref, k); ok {
			want = []string{"refs/heads/" + short, "refs/tags/" + short}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, at.timeout())
	defer cancel()
	out, err := at.git(ctx, scratch, scratch, append([]string{"ls-remote", "--refs", "probe"}, want...)...)
	if err != nil {
		return nil, err
	}
	seen := refs{}
	for line := range strings.Lines(out) {
		// A pattern also matches longer names that end in it.
		oid, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		for _, w := range want {
			if ok && name == w && isOID(oid) {
				seen[name] = oid
			}
		}
	}
	return seen, nil
}

// check refuses a short name that the remote reads otherwise than we do.
func (r refs) check(ref string, deletion bool) error {
	short := strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/tags/")
	for _, other := range []string{"refs/heads/" + short, "refs/tags/" + short} {
		if _, there := r[other]; other != ref && there {
			return fmt.Errorf("the push was not sent: the remote has %s, so the short name %s does not mean %s there; write the full name", other, short, ref)
		}
	}
	if _, there := r[ref]; deletion && !there {
		return fmt.Errorf("the push was not sent: the remote has no %s to delete; look at its branches", ref)
	}
	return nil
}

func isOID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
