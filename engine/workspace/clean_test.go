//go:build unix

package workspace

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestCleanRefusesByNameWhatIsNowhereElse(t *testing.T) {
	cases := map[string]struct{ script, reason string }{
		"untracked":  {"echo new >new.txt", `not committed: "new.txt"`},
		"modified":   {"echo more >>a.txt", `not committed: "a.txt"`},
		"staged":     {"echo more >>a.txt; git add a.txt", `not committed: "a.txt"`},
		"commit":     {"echo more >>a.txt; git commit -qam more", `in no branch or tag of yours: "pawl/r1/work"`},
		"side":       {"git checkout -q -b pawl/r1/side; echo more >>a.txt; git commit -qam more; git checkout -q -", `"pawl/r1/side"`},
		"detached":   {"git checkout -q --detach; echo more >>a.txt; git commit -qam more", "no branch has"},
		"rebase":     {"echo x >>a.txt; git commit -qam x; GIT_SEQUENCE_EDITOR=true git rebase -q -i HEAD~1 --exec false || true", "in the middle of a rebase"},
		"large":      {"head -c 2000000 /dev/zero >big.log", `large ignored files: "big.log"`},
		"broken":     {"echo nonsense >$(git rev-parse --git-dir)/HEAD", "cannot be told"},
		"odd name":   {"echo new >\"$(printf 'a\\033[31m\\nb')\"", `"a\x1b[31m\nb"`},
		"nested git": {"git init -q sub; echo s >sub/s", `"sub/"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, ws := newSpace(t)
			sh(t, ws.Path, c.script)
			before := picture(t, ws.Path)
			_, err := m.Clean(ctx, ws, false)
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.reason) || !strings.Contains(refused.Next, "--save") {
				t.Errorf("got %v", err)
			}
			if picture(t, ws.Path) != before {
				t.Error("something was changed")
			}
		})
	}
}

func TestCleanRemovesWhatIsLandedAndItCanBeMadeAgain(t *testing.T) {
	m, ws := newSpace(t)
	sh(t, ws.Path, "echo more >>a.txt && git commit -qam more && mkdir -p node_modules/ro && touch node_modules/ro/x x.log && chmod 555 node_modules/ro")
	p, err := m.Preview(ctx, ws, "")
	must(t, err)
	must(t, m.Land(ctx, ws, p))
	user := refsOf(t, ws.Repo)
	last, err := m.Clean(ctx, ws, false)
	must(t, err)
	for _, p := range []string{ws.Path, ws.GitDir, ws.Scratch} {
		if _, err := os.Lstat(p); err == nil {
			t.Errorf("%s is still there", p)
		}
	}
	if got := refsOf(t, ws.Repo); got != user {
		t.Errorf("the user's repository changed:\n%s\nwas:\n%s", got, user)
	}
	if _, err := m.Clean(ctx, ws, false); err != nil {
		t.Errorf("a second time: %v", err)
	}
	_, err = m.Rebuild(ctx, ws, last)
	must(t, err)
	if read(t, ws.Path+"/a.txt") != "one\ntwo\nthree\nfour\nmore\n" || sh(t, ws.Path, "git log -1 --format=%s") != "more\n" {
		t.Error("it is not as it was")
	}
}

func TestSavedWorkIsUnderARef(t *testing.T) {
	m, ws, _, _, _ := worked(t)
	put(t, ws.Path+"/x.log", "ignored")
	before := sh(t, ws.Repo, "git status --porcelain --branch; git for-each-ref refs/heads refs/tags")
	refs, err := m.Save(ctx, ws)
	must(t, err)
	if got := strings.Join(refs, " "); got != "refs/pawl/saved/r1/branch/side refs/pawl/saved/r1/branch/work refs/pawl/saved/r1/files" {
		t.Errorf("saved under %s", got)
	}
	if s, err := m.Standing(ctx, ws); err != nil || len(s.Unlanded) != 0 {
		t.Errorf("what is saved is not landed: %+v %v", s, err)
	}
	_, err = m.Clean(ctx, ws, true)
	must(t, err)
	must(t, os.RemoveAll(m.state))
	if got := sh(t, ws.Repo, "git fsck --connectivity-only --no-dangling && git show refs/pawl/saved/r1/files:loose.txt refs/pawl/saved/r1/files:staged.txt && git log -1 --format=%s refs/pawl/saved/r1/branch/side"); got != "loose\nchanged since it was staged\nfourth\n" {
		t.Errorf("saved: %q", got)
	}
	if got := sh(t, ws.Repo, "git status --porcelain --branch; git for-each-ref refs/heads refs/tags"); got != before {
		t.Errorf("the user's branches changed:\n%s\nwas:\n%s", got, before)
	}
}

func TestStrangersAreNamed(t *testing.T) {
	m, ws := newSpace(t)
	put(t, m.at("work", "whose", "f"), "x")
	known, strangers, err := m.All()
	if err != nil || len(known) != 1 || known[0].Path != ws.Path || len(strangers) != 1 || strangers[0] != m.at("work", "whose") {
		t.Errorf("%+v %q %v", known, strangers, err)
	}
}
