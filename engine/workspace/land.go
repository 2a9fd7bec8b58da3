package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// How is the way a run's work gets onto a branch.
type How string

// The ways of landing.
const (
	HowNothing     How = "nothing"      // the branch has it already
	HowFastForward How = "fast-forward" // the branch has not moved since the run started
	HowMerge       How = "merge"
)

// LandPlan is what landing would do, fixed to the commits it was made from: carried out, it does that or nothing.
type LandPlan struct {
	Run        string   `json:"run"`
	Branch     string   `json:"branch"`                // the run's branch, short
	Onto       string   `json:"onto"`                  // the user's branch, short
	Base       string   `json:"base"`                  // commit that Onto is on
	Tip        string   `json:"tip"`                   // commit that the run has come to
	Commit     string   `json:"commit,omitempty"`      // commit that Onto will be on; "" while leftovers or conflicts stand in the way
	How        How      `json:"how"`                   //
	Files      []string `json:"files,omitempty"`       // files that differ on Onto afterwards, leftovers apart
	Conflicts  []string `json:"conflicts,omitempty"`   // files that do not merge by themselves
	Leftovers  []string `json:"leftovers,omitempty"`   // uncommitted files of the run, to be committed first
	CheckedOut string   `json:"checked_out,omitempty"` // the user's checkout of Onto, which will be updated too
	Blocked    string   `json:"blocked,omitempty"`     // why it cannot land now, and what to do
}

// Preview says what landing the run's work onto a branch of the user's would do. onto "" is the branch it started
// from. Nothing of the user's is changed.
func (m *Manager) Preview(ctx context.Context, ws Workspace, onto string) (LandPlan, error) {
	if ws.Kind != KindWorktree {
		return LandPlan{}, refuse("there is nothing to land", "the run works in your own folder "+ws.Path, "commit there as usual")
	}
	if ws.RepoGit == "" {
		return LandPlan{}, refuse("the work cannot land", "the run was imported without a repository of yours to land in",
			"take its branch from "+ws.CommonDir+" with git fetch, or import it again with --repo")
	}
	if onto == "" {
		onto = ws.Onto
	}
	p := LandPlan{Run: ws.Run, Branch: ws.Branch, Onto: onto, How: HowNothing}
	if onto == "" {
		return p, refuse("the work cannot land", "your checkout was on no branch when the run started", "name a branch with --onto")
	}
	if ws.Parent != "" {
		return p, refuse("the work of "+ws.Run+" is not landed by itself", "run "+ws.Parent+" delegated it", "`pawl review "+ws.Run+"` takes it over into that run, which is landed then")
	}
	user, clone, tree := userGit(ws.RepoGit), cloneGit(ws.CommonDir, ws.CommonDir, ""), cloneGit(ws.CommonDir, ws.GitDir, ws.Path)
	var err error
	if p.Base, err = branchCommit(ctx, user, onto); err != nil {
		return p, err
	}
	if p.Base == "" {
		return p, refuse("the work cannot land", "your repository has no branch "+onto, "make it or name another with --onto")
	}
	if p.Tip, err = tree.line(ctx, "rev-parse", "--verify", "HEAD^{commit}"); err != nil {
		return p, fmt.Errorf("the run's branch: %w", err)
	}
	if p.Leftovers, err = changedFiles(ctx, tree); err != nil {
		return p, fmt.Errorf("the run's files: %w", err)
	}
	if err := m.merge(ctx, clone, &p); err != nil {
		return p, fmt.Errorf("trying the merge: %w", err)
	}
	if p.CheckedOut, err = checkoutOf(ctx, user, onto); err != nil {
		return p, err
	}
	p.Blocked, err = blocked(ctx, ws, p)
	return p, err
}

func branchCommit(ctx context.Context, g git, branch string) (string, error) {
	oid, err := g.line(ctx, "rev-parse", "-q", "--verify", "--end-of-options", "refs/heads/"+branch+"^{commit}")
	if gitCode(err) == 1 {
		return "", nil
	}
	return oid, err
}

// merge finds out how the tip gets onto the base, without touching a file, and makes the commit for it in the private
// clone. Made again from the same two commits, it is the same commit.
func (m *Manager) merge(ctx context.Context, clone git, p *LandPlan) error {
	in, err := isAncestor(ctx, clone, p.Tip, p.Base)
	if err != nil {
		return err
	}
	ahead, err := isAncestor(ctx, clone, p.Base, p.Tip)
	if err != nil {
		return err
	}
	result := ""
	switch {
	case in && len(p.Leftovers) == 0:
		p.How, p.Commit = HowNothing, p.Base
		return nil
	case ahead:
		p.How, result = HowFastForward, p.Tip
	case in:
		p.How = HowMerge // the leftovers alone will be merged
		return nil
	default:
		p.How = HowMerge
		merged, err := mergeTree(ctx, clone, p)
		if err != nil || len(p.Conflicts) > 0 {
			return err
		}
		if result, err = mergeCommit(ctx, clone, p, merged); err != nil {
			return err
		}
	}
	if p.Files, err = changedPaths(ctx, clone, p.Base, result); err != nil {
		return err
	}
	if len(p.Leftovers) == 0 {
		p.Commit = result
	}
	return nil
}

func isAncestor(ctx context.Context, g git, a, b string) (bool, error) {
	_, err := g.run(ctx, nil, "merge-base", "--is-ancestor", a, b)
	if gitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

func mergeTree(ctx context.Context, clone git, p *LandPlan) (string, error) {
	out, err := clone.run(ctx, nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", p.Base, p.Tip)
	if err != nil && gitCode(err) != 1 {
		return "", err
	}
	f := zero(out)
	if len(f) == 0 {
		return "", errors.New("git merge-tree answered nothing")
	}
	if err != nil {
		p.Conflicts = slices.Compact(f[1:])
		if len(p.Conflicts) == 0 {
			p.Conflicts = []string{"(git names no file)"}
		}
	}
	return f[0], nil
}

// mergeCommit makes the merge, dated by the younger of its parents so that it comes out the same each time.
func mergeCommit(ctx context.Context, clone git, p *LandPlan, tree string) (string, error) {
	out, err := clone.line(ctx, "log", "--no-walk", "--format=%ct", p.Base, p.Tip)
	if err != nil {
		return "", err
	}
	var date int64
	for _, f := range strings.Fields(out) {
		at, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return "", err
		}
		date = max(date, at)
	}
	who, err := clone.line(ctx, "log", "-1", "--format=%an%x00%ae", p.Tip)
	if err != nil {
		return "", err
	}
	name, email, _ := strings.Cut(who, "\x00")
	when := strconv.FormatInt(date, 10) + " +0000"
	g := clone.with("GIT_AUTHOR_NAME="+name, "GIT_AUTHOR_EMAIL="+email, "GIT_COMMITTER_NAME="+name, "GIT_COMMITTER_EMAIL="+email,
		"GIT_AUTHOR_DATE="+when, "GIT_COMMITTER_DATE="+when)
	message := fmt.Sprintf("Merge %s into %s\n\nPawl-Run: %s\n", p.Branch, p.Onto, p.Run)
	b, err := g.run(ctx, []byte(message), "commit-tree", tree, "-p", p.Base, "-p", p.Tip)
	return strings.TrimSpace(string(b)), err
}

// checkoutOf finds the checkout, if any, that has the branch checked out.
func checkoutOf(ctx context.Context, user git, branch string) (string, error) {
	out, err := user.run(ctx, nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return "", err
	}
	path := ""
	for _, l := range zero(out) {
		if p, ok := strings.CutPrefix(l, "worktree "); ok {
			path = p
		}
		if l == "bare" {
			path = ""
		}
		if l == "branch refs/heads/"+branch && path != "" {
			return path, nil
		}
	}
	return "", nil
}

func blocked(ctx context.Context, ws Workspace, p LandPlan) (string, error) {
	for file, what := range map[string]string{"rebase-merge": "rebase", "rebase-apply": "rebase", "MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"} {
		if _, err := os.Stat(filepath.Join(ws.GitDir, file)); err == nil {
			return fmt.Sprintf("the run is in the middle of a %s: let it finish that, or abort it in %s", what, ws.Path), nil
		}
	}
	if p.CheckedOut == "" || p.How == HowNothing {
		return "", nil
	}
	dirty, err := changedFiles(ctx, userGit(p.CheckedOut), "--untracked-files=no")
	if err != nil {
		return "", fmt.Errorf("your checkout %s: %w", p.CheckedOut, err)
	}
	if len(dirty) > 0 {
		return fmt.Sprintf("your checkout of %s in %s has uncommitted changes in %s: commit or stash them, then land again", p.Onto, p.CheckedOut, few(dirty)), nil
	}
	return "", nil
}

func few(files []string) string {
	const most = 5
	if len(files) > most {
		return fmt.Sprintf("%q and %d more", files[:most], len(files)-most)
	}
	return fmt.Sprintf("%q", files)
}

// Commit commits the run's leftovers to its branch and returns the plan with the commit that will land. It refuses if
// the user's branch has moved since the plan was made, or if the work does not merge.
func (m *Manager) Commit(ctx context.Context, ws Workspace, p LandPlan) (LandPlan, error) {
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return p, err
	}
	defer lock.Close()
	if len(p.Leftovers) > 0 {
		g := cloneGit(ws.CommonDir, ws.GitDir, ws.Path).with(ws.Env()...)
		g.hold = lock
		if _, err := g.run(ctx, nil, "add", "-A", "--", "."); err != nil {
			return p, fmt.Errorf("committing what the run left uncommitted: %w", err)
		}
		title := ws.Title
		if title == "" {
			title = "run " + ws.Run
		}
		line, _, _ := strings.Cut(title, "\n")
		message := fmt.Sprintf("%s: uncommitted work\n\nPawl-Run: %s\n", line, ws.Run)
		_, err := g.run(ctx, []byte(message), "commit", "-q", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "-F", "-")
		if err != nil && gitCode(err) != 1 { // 1: nothing to commit after all
			return p, fmt.Errorf("committing what the run left uncommitted: %w", err)
		}
	}
	now, err := m.Preview(ctx, ws, p.Onto)
	switch {
	case err != nil:
		return p, err
	case now.Base != p.Base:
		return p, refuse("the work was not landed", p.Onto+" has moved since it was looked at", "look at the preview again")
	case len(now.Conflicts) > 0:
		return now, refuse("the work was not landed", "it conflicts with "+p.Onto+" in "+few(now.Conflicts), "let the run merge or rebase, or merge by hand")
	case now.Blocked != "":
		return now, refuse("the work was not landed", now.Blocked, "land again afterwards")
	case now.Commit == "":
		return now, refuse("the work was not landed", "the run's files keep changing", "land again when nothing works on them")
	}
	return now, nil
}

// Land carries a plan out, at most once however often it is called: the branch goes from Base to Commit in one step or
// not at all. A [*RefusedError] means that nothing was changed; after any other error ask [Manager.Landed].
func (m *Manager) Land(ctx context.Context, ws Workspace, p LandPlan) error {
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return err
	}
	defer lock.Close()
	if p.Commit == "" || len(p.Conflicts) > 0 {
		return refuse("the work was not landed", "the plan names no commit to land", "look at the preview again")
	}
	done, err := landed(ctx, ws, p)
	if err != nil || done {
		return err
	}
	user := userGit(ws.RepoGit)
	at, err := branchCommit(ctx, user, p.Onto)
	if err != nil {
		return err
	}
	if at != p.Base {
		return refuse("the work was not landed", p.Onto+" has moved since it was looked at", "look at the preview again")
	}
	checkout, err := checkoutOf(ctx, user, p.Onto)
	if err != nil {
		return err
	}
	p.CheckedOut = checkout
	if why, err := blocked(ctx, ws, p); err != nil || why != "" {
		if err == nil {
			err = refuse("the work was not landed", why, "nothing was changed")
		}
		return err
	}
	if err := handOver(ctx, ws, p, lock); err != nil {
		return fmt.Errorf("copying the run's commits into your repository: %w", err)
	}
	message := "pawl: land " + p.Run
	if checkout == "" {
		_, err = userWrite(ws.RepoGit, lock).run(ctx, nil, "update-ref", "-m", message, "refs/heads/"+p.Onto, p.Commit, p.Base)
	} else {
		g := userWrite(checkout, lock).with("GIT_REFLOG_ACTION=" + message)
		_, _, err = g.both(ctx, nil, "merge", "-q", "--ff-only", "--no-autostash", "--no-verify-signatures", p.Commit)
	}
	if there, lerr := landed(context.WithoutCancel(ctx), ws, p); lerr == nil && there {
		return nil
	}
	if refusedLanding(err) {
		return refuse("the work was not landed", strings.TrimSpace(gitStderr(err)), "see to that, then land again")
	}
	if err == nil {
		err = fmt.Errorf("%s does not contain %s although git reported success", p.Onto, p.Commit)
	}
	return err
}

// handOver gives the user's repository the commits to land, under refs/pawl/<run>, which takes along the base that it
// held until now.
func handOver(ctx context.Context, ws Workspace, p LandPlan, lock *os.File) error {
	if err := sendObjects(ctx, cloneGit(ws.CommonDir, ws.CommonDir, ""), userWrite(ws.RepoGit, lock), []string{p.Commit}, []string{p.Base, ws.Base}); err != nil {
		return err
	}
	return pin(ctx, ws.RepoGit, ws.Run, p.Commit, lock)
}

// refusedLanding recognises the failures after which git has changed nothing.
func refusedLanding(err error) bool {
	for _, s := range []string{"would be overwritten by merge", "Not possible to fast-forward", "index.lock", "cannot lock ref", "but expected", "have not concluded your merge"} {
		if strings.Contains(gitStderr(err), s) {
			return true
		}
	}
	return false
}

func gitStderr(err error) string {
	var g *GitError
	if errors.As(err, &g) {
		return string(bytes.ToValidUTF8([]byte(g.Stderr), []byte("?")))
	}
	return ""
}

// Landed says whether the user's branch contains the plan's commit, however it got there. A landing that is under way,
// be it of a process that has died since, is waited for: the answer does not change by itself.
func (m *Manager) Landed(ctx context.Context, ws Workspace, p LandPlan) (bool, error) {
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	return landed(ctx, ws, p)
}

func landed(ctx context.Context, ws Workspace, p LandPlan) (bool, error) {
	user := userGit(ws.RepoGit)
	at, err := branchCommit(ctx, user, p.Onto)
	if err != nil {
		return false, err
	}
	if at == "" || p.Commit == "" {
		return false, nil
	}
	if _, err := user.run(ctx, nil, "cat-file", "-e", p.Commit+"^{commit}"); err != nil {
		if gitCode(err) == 1 || gitCode(err) == 128 {
			return false, nil // it never got there
		}
		return false, err
	}
	return isAncestor(ctx, user, p.Commit, at)
}
