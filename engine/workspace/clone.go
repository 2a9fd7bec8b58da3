package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// clonePath is where the private clone of a repository lies. Runs on one repository share it, and through it the
// objects that each writes.
func (m *Manager) clonePath(repoGit string) string {
	sum := sha256.Sum256([]byte(repoGit))
	return m.at("repos", hex.EncodeToString(sum[:8])+".git")
}

// ensureClone makes the private clone or brings its copies of the user's branches up to date. It borrows the user's
// objects, so the user's repository must pin what a run starts from.
func (m *Manager) ensureClone(ctx context.Context, ws Workspace) error {
	lock, err := lockFile(ctx, m.clonePath(ws.RepoGit)+".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	clone := m.clonePath(ws.RepoGit)
	user := userGit(ws.RepoGit)
	if _, err := os.Stat(filepath.Join(clone, "config")); err != nil {
		if err := newClone(ctx, user, ws.RepoGit, clone); err != nil {
			return fmt.Errorf("making the private clone of %s: %w", ws.Repo, err)
		}
	}
	g := cloneGit(clone, clone, "")
	g.hold, g.free = lock, true
	if err := dropRefLocks(clone); err != nil {
		return fmt.Errorf("the private clone of %s: %w", ws.Repo, err)
	}
	if err := copyRefs(ctx, user, g); err != nil {
		return fmt.Errorf("copying the branches of %s: %w", ws.Repo, err)
	}
	return nil
}

// newClone builds the clone beside its place and moves it there whole.
func newClone(ctx context.Context, user git, repoGit, clone string) error {
	tmp := clone + ".new"
	if err := os.RemoveAll(tmp); err != nil { // a leftover of an interrupted start; nobody has used it
		return err
	}
	format := "sha1"
	if f, err := user.line(ctx, "rev-parse", "--show-object-format"); err == nil {
		format = f
	}
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "info", packedDir} {
		if err := os.MkdirAll(filepath.Join(tmp, d), 0o755); err != nil {
			return err
		}
	}
	config, err := cloneConfig(ctx, user, format)
	if err != nil {
		return err
	}
	refs, err := listRefs(ctx, user)
	if err != nil {
		return err
	}
	// All in one file: thousands of small ones are slow to make and to read.
	packed := []byte("# pack-refs with: sorted \n")
	for _, ref := range sortedKeys(refs) {
		packed = fmt.Appendf(packed, "%s %s\n", refs[ref], ref)
	}
	files := map[string][]byte{
		"HEAD": []byte("ref: refs/heads/pawl-none\n"), "config": config,
		"objects/info/alternates":  []byte(quoteAlternate(filepath.Join(repoGit, "objects")) + "\n"),
		packedDir + "/packed-refs": packed,
	}
	for _, f := range []string{"shallow", "info/exclude"} {
		if b, err := os.ReadFile(filepath.Join(repoGit, f)); err == nil {
			files[f] = b
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(tmp, name), b, 0o644); err != nil {
			return err
		}
	}
	if err := os.Symlink(packedDir+"/packed-refs", filepath.Join(tmp, "packed-refs")); err != nil {
		return err
	}
	return os.Rename(tmp, clone)
}

// packedDir holds the packed refs, behind a link. To remove any ref at all, even one of a finished rebase, git locks
// them by making a file beside the link's end: this directory can be opened to commands for that, and nothing else of
// the clone need be.
const packedDir = "packed"

// cloneConfig is the clone's own configuration and, from the user's repository, where it pushes to and who commits.
// Nothing that names a program is taken over.
func cloneConfig(ctx context.Context, user git, format string) ([]byte, error) {
	var b bytes.Buffer
	version := 0
	if format != "sha1" {
		version = 1
	}
	fmt.Fprintf(&b, "[core]\n\trepositoryformatversion = %d\n\tbare = true\n\tfilemode = true\n\thooksPath = /dev/null\n\tlogAllRefUpdates = true\n", version)
	b.WriteString("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n[advice]\n\tdetachedHead = false\n")
	if version == 1 {
		fmt.Fprintf(&b, "[extensions]\n\tobjectFormat = %s\n", format)
	}
	out, err := user.run(ctx, nil, "config", "--local", "-z", "--get-regexp", `^(remote\..*\.(url|pushurl|fetch)|branch\..*\.(remote|merge)|user\.(name|email))$`)
	if err != nil && gitCode(err) != 1 { // 1: nothing matches
		return nil, err
	}
	for _, kv := range zero(out) {
		key, value, _ := strings.Cut(kv, "\n")
		section, rest, _ := strings.Cut(key, ".")
		name := rest
		sub := ""
		if i := strings.LastIndexByte(rest, '.'); i >= 0 {
			sub, name = rest[:i], rest[i+1:]
		}
		if sub != "" {
			section += " " + quoteConfig(sub)
		}
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, name, quoteConfig(value))
	}
	return b.Bytes(), nil
}

func quoteConfig(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// copyRefs makes the clone's branches and tags those of the user, but for the runs' own.
func copyRefs(ctx context.Context, user, clone git) error {
	want, err := listRefs(ctx, user)
	if err != nil {
		return err
	}
	have, err := listRefs(ctx, clone)
	if err != nil {
		return err
	}
	var cmds bytes.Buffer
	for ref := range have {
		if _, ok := want[ref]; !ok {
			fmt.Fprintf(&cmds, "delete %s\x00\x00", ref)
		}
	}
	for ref, oid := range want {
		if have[ref] != oid {
			fmt.Fprintf(&cmds, "update %s\x00%s\x00\x00", ref, oid)
		}
	}
	if cmds.Len() == 0 {
		return nil
	}
	_, err = clone.run(ctx, cmds.Bytes(), "update-ref", "--no-deref", "-z", "--stdin")
	return err
}

// dropRefLocks removes git's lock files on the copies of the user's refs. The clone's lock must be held, and every git
// that changes these refs inherits it: what is there was left by a machine that went down.
func dropRefLocks(clone string) error {
	return filepath.WalkDir(filepath.Join(clone, "refs"), func(p string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && p == filepath.Join(clone, "refs", "heads", "pawl"):
			return fs.SkipDir // the runs' own, and their commands'
		case strings.HasSuffix(p, ".lock"):
			return os.Remove(p)
		}
		return nil
	})
}

func listRefs(ctx context.Context, g git) (map[string]string, error) {
	out, err := g.run(ctx, nil, "for-each-ref", "--format=%(objectname) %(symref) %(refname)", "refs/heads", "refs/remotes", "refs/tags")
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for l := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(l, "\n"), " ")
		if len(f) == 3 && f[1] == "" && !strings.HasPrefix(f[2], "refs/heads/pawl/") {
			refs[f[2]] = f[0]
		}
	}
	return refs, nil
}

// sendObjects copies what wants reach and haves do not from one repository to another, without asking either to serve
// the other: a repository that commands have written to is not to be trusted with that.
func sendObjects(ctx context.Context, from, to git, wants, haves []string) error {
	var revs bytes.Buffer
	for _, w := range wants {
		fmt.Fprintln(&revs, w)
	}
	for _, h := range haves {
		if h != "" {
			fmt.Fprintln(&revs, "^"+h)
		}
	}
	pack, err := from.run(ctx, revs.Bytes(), "pack-objects", "-q", "--revs", "--stdout", "--delta-base-offset")
	if err != nil {
		return err
	}
	_, err = to.run(ctx, pack, "index-pack", "--stdin", "--fix-thin")
	return err
}

// quoteAlternate writes a path so that it may stand in a list of object directories.
func quoteAlternate(path string) string {
	if !strings.ContainsAny(path, "\"\\:\n#") {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
