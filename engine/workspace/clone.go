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
	if err := copyRefs(ctx, user, cloneGit(clone, clone, "")); err != nil {
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
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(tmp, d), 0o755); err != nil {
			return err
		}
	}
	config, err := cloneConfig(ctx, user, format)
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"HEAD": []byte("ref: refs/heads/pawl-none\n"), "config": config,
		"objects/info/alternates": []byte(filepath.Join(repoGit, "objects") + "\n"),
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
	return os.Rename(tmp, clone)
}

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
	added := 0
	for ref, oid := range want {
		if have[ref] != oid {
			fmt.Fprintf(&cmds, "update %s\x00%s\x00\x00", ref, oid)
			added++
		}
	}
	if cmds.Len() == 0 {
		return nil
	}
	if _, err := clone.run(ctx, cmds.Bytes(), "update-ref", "--no-deref", "-z", "--stdin"); err != nil {
		return err
	}
	if added > 100 {
		// Thousands of small files are slow to read; the runs' own branches stay files of their own.
		_, err = clone.run(ctx, nil, "-c", "core.logAllRefUpdates=false", "pack-refs", "--all", "--no-prune")
	}
	return err
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
