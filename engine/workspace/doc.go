// Package workspace owns the files that a run works on: a worktree of a private clone, the snapshots of it in a shadow
// repository, how a snapshot comes back, how one file is written without losing somebody else's edit, and how the
// work lands on the user's branch.
//
// It never runs a hook, filter or file monitor of anybody's while it looks after files, never takes a lock or writes
// a ref in the user's repository but refs/pawl/<run> (landing apart), and deletes nothing that exists nowhere else. It
// knows no ledger: what it must remember between processes is in a [Workspace], a [Snapshot], or a journal beside the
// worktree.
package workspace
