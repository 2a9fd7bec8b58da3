package workspace

import (
	"os"
	"path/filepath"
)

// Confinement says what of a workspace a confined command may write to, and what within that stays read-only. The
// scratch directory is not part of it: the toolchain's defaults expose what is needed of that. Of git, a worktree gets
// what add, commit, branch and rebase need for the run's own branches; configuration, hooks and other branches stay
// closed. The user's own repository is closed altogether.
func (m *Manager) Confinement(ws Workspace) (writable, protected []string) {
	writable = []string{ws.Path}
	switch ws.Kind {
	case KindWorktree:
		run := filepath.Join("refs", "heads", "pawl", ws.Run)
		for _, d := range []string{filepath.Join(ws.CommonDir, "objects"), filepath.Join(ws.CommonDir, packedDir), ws.GitDir, filepath.Join(ws.CommonDir, run), filepath.Join(ws.CommonDir, "logs", run)} {
			// git removes a branch's directory with its last branch; a command needs it to be there.
			if err := os.MkdirAll(d, 0o755); err == nil {
				writable = append(writable, d)
			}
		}
		// Whoever could rewrite these would choose which configuration a later git goes by.
		protected = append(protected, filepath.Join(ws.Path, ".git"), filepath.Join(ws.GitDir, "commondir"), filepath.Join(ws.GitDir, "gitdir"),
			filepath.Join(ws.CommonDir, "objects", "info"), filepath.Join(ws.CommonDir, packedDir, "packed-refs"))
	case KindInPlace:
		protected = append(protected, filepath.Join(ws.Path, ".git"))
		for _, d := range []string{ws.GitDir, ws.CommonDir} {
			if d != "" && within(d, ws.Path) {
				protected = append(protected, d)
			}
		}
	case KindFolder:
		if _, err := os.Lstat(filepath.Join(ws.Path, ".git")); err == nil {
			protected = append(protected, filepath.Join(ws.Path, ".git"))
		}
	}
	return writable, protected
}

// Visible lists what a confined command must be able to read although it lies below the state directory, which is
// hidden from it.
func (m *Manager) Visible(ws Workspace) []string {
	if ws.Kind == KindWorktree {
		return []string{ws.CommonDir}
	}
	return nil
}

// Env names the author of the run's commits, for the environment of its commands.
func (ws Workspace) Env() []string {
	if ws.Name == "" {
		return nil
	}
	return []string{
		"GIT_AUTHOR_NAME=" + ws.Name, "GIT_AUTHOR_EMAIL=" + ws.Email,
		"GIT_COMMITTER_NAME=" + ws.Name, "GIT_COMMITTER_EMAIL=" + ws.Email,
	}
}
