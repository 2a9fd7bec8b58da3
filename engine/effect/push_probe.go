package effect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pawl/engine/machine"
)

// probeRef compares a ref on a remote with the values of a push:
//
//	the pushed value, or a commit that contains it   happened
//	the old value                                    not happened
//	anything else                                    conflict
//
// A value that somebody put back to the old one in between cannot be told from
// a push that never arrived.
func probeRef(ctx context.Context, at Place, params map[string]string) Finding {
	ref, shown := params[ParamRef], params[ParamURL]
	if ref == "" || shown == "" || params[ParamDelete] == "" && !isOID(params[ParamNew]) {
		return inconclusive("what was pushed where is not on record")
	}
	dir, remove, err := at.scratchRepo(ctx, at.reach(ctx, params[ParamRemote], shown))
	if err != nil {
		return inconclusive(at.reason(err))
	}
	defer remove()
	seen, err := at.lsIn(ctx, dir, ref)
	if err != nil {
		return inconclusive(at.reason(err))
	}
	v := values{ref: ref, url: shown, now: seen[ref], old: params[ParamOld], want: params[ParamNew], oldKnown: params[ParamOldUnknown] == "" && hasKey(params, ParamOld)}
	if params[ParamDelete] != "" {
		v.want = ""
	}
	f, sure := v.compare()
	if !sure {
		f = at.contains(ctx, dir, v)
	}
	f.Detail = v.detail()
	return f
}

func hasKey(m map[string]string, k string) bool { _, ok := m[k]; return ok }

// values are the three values that a verdict rests on; "" is "no such ref".
type values struct {
	ref, url       string
	now, old, want string
	oldKnown       bool
}

func (v values) detail() string {
	old := named(v.old)
	if !v.oldKnown {
		old = "not known"
	}
	return fmt.Sprintf("remote %s\nref %s\nnow %s\nbefore %s\npushed %s\n", v.url, v.ref, named(v.now), old, named(v.want))
}

func named(oid string) string {
	if oid == "" {
		return "(no such ref)"
	}
	return oid
}

func short(oid string) string {
	if oid == "" {
		return "absent"
	}
	return oid[:min(10, len(oid))]
}

// compare settles what the values alone can settle.
func (v values) compare() (f Finding, sure bool) {
	switch {
	case v.now == v.want && v.oldKnown && v.old == v.want:
		return v.say(machine.VerdictHappened, "is %s, as the push wants it; it was so before, too", short(v.now)), true
	case v.now == v.want:
		return v.say(machine.VerdictHappened, "is now %s, as the push wants it", short(v.now)), true
	case v.oldKnown && v.now == v.old:
		return v.say(machine.VerdictNotHappened, "is still %s, as before the push", short(v.now)), true
	case v.want == "" || v.now == "":
		return v.other(), true
	}
	return Finding{}, false
}

func (v values) say(verdict machine.Verdict, format string, args ...any) Finding {
	return Finding{Verdict: verdict, Text: v.ref + " on " + v.url + " " + fmt.Sprintf(format, args...)}
}

// other is a value that is neither of ours: somebody else's, or unknown.
func (v values) other() Finding {
	if !v.oldKnown {
		return v.say(machine.VerdictInconclusive, "is %s and does not hold the pushed commit; its value before the push is not known", short(v.now))
	}
	return v.say(machine.VerdictConflict, "is %s: neither the pushed %s nor the old %s", short(v.now), short(v.want), short(v.old))
}

// contains finds out whether the ref has moved on from the pushed commit. If
// the old value held that commit already (a push that goes back), containing
// it proves nothing.
func (at Place) contains(ctx context.Context, scratch string, v values) Finding {
	if !strings.HasPrefix(v.ref, "refs/heads/") {
		return v.other() // only branches move on
	}
	fetching, cancel := context.WithTimeout(ctx, at.timeout())
	defer cancel()
	_, err := at.git(fetching, scratch, scratch, "fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
		"--no-recurse-submodules", "--no-show-forced-updates", "probe", "+"+v.ref+":refs/probe/now")
	if err != nil {
		return inconclusive("the ref has moved, and what it holds could not be read: " + at.reason(err))
	}
	holds, err := at.ancestor(ctx, scratch, v.want, "refs/probe/now")
	if err != nil {
		return inconclusive("the ref has moved, and what it holds could not be read: " + at.reason(err))
	}
	if !holds {
		return v.other()
	}
	if v.oldKnown && v.old != "" {
		if !at.has(ctx, scratch, v.old) {
			return v.other() // what the old value held cannot be told any more
		}
		held, err := at.ancestor(ctx, scratch, v.want, v.old)
		if err != nil || held {
			return v.other()
		}
	}
	if !v.oldKnown {
		// Without the old value it may have held the commit before.
		return v.say(machine.VerdictHappened, "is %s, which contains the pushed %s", short(v.now), short(v.want))
	}
	return v.say(machine.VerdictHappened, "is %s, which contains the pushed %s and did not before", short(v.now), short(v.want))
}

// ancestor reports whether commit a is b or lies before it. A commit that the
// repository does not have lies before nothing in it: histories are fetched whole.
func (at Place) ancestor(ctx context.Context, scratch, a, b string) (bool, error) {
	if !at.has(ctx, scratch, a) {
		return false, ctx.Err()
	}
	_, err := at.git(ctx, scratch, scratch, "merge-base", "--is-ancestor", a, b)
	var ge *gitError
	if errors.As(err, &ge) && ge.code == 1 {
		return false, nil
	}
	return err == nil, err
}

func (at Place) has(ctx context.Context, scratch, commit string) bool {
	_, err := at.git(ctx, scratch, scratch, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// reach returns the URL to look at. The record holds it without credentials;
// if the remote of that name still leads to the same place, its configured URL
// is used, credentials and all.
func (at Place) reach(ctx context.Context, name, shown string) string {
	if at.Dir == "" || name == "" {
		return shown
	}
	out, err := at.git(ctx, at.Dir, "", "remote", "get-url", "--push", name)
	if err != nil {
		return shown
	}
	if full := strings.TrimSuffix(out, "\n"); HideCredentials(full) == shown && readRemote(full, "/").kind != remoteOther {
		return full
	}
	return shown
}

// pushAnswered looks for the other side's own word in what git printed. Git
// ends with 1 or 128 both for a refusal and for a connection that broke after
// the ref had moved, so the code alone says nothing.
func pushAnswered(code string, output []byte) (bool, string) {
	text := string(output)
	for _, s := range []string{"hung up unexpectedly", "unexpected disconnect", "RPC failed", "[remote failure]", "sideband", "early EOF", "Broken pipe", "Connection reset", "Connection closed"} {
		if strings.Contains(text, s) {
			return false, "the connection broke, so the code " + code + " does not say whether the remote had taken the push"
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line[strings.LastIndexByte(strings.TrimRight(line, "\r\n"), '\r')+1:], "\r\n")
		for _, s := range []string{" ! [rejected]", " ! [remote rejected]", " ! [no match]", "!\t"} {
			if strings.HasPrefix(line, s) {
				return true, "the push was refused: " + strings.TrimSpace(line)
			}
		}
		for _, s := range []string{"error: src refspec ", "fatal: unable to access ", "fatal: Authentication failed for ", "fatal: could not read Username", "fatal: Could not read from remote repository.", "fatal: The current branch ", "fatal: No configured push destination"} {
			if strings.HasPrefix(line, s) {
				return true, "nothing was sent: " + hideInText(line)
			}
		}
	}
	return false, "the code " + code + " does not say whether the remote had taken the push"
}
