// Package ledger keeps what must survive: events, the rows projected from
// them, blobs, and leases, in one SQLite file.
//
// It owns durability, ordering, fencing and the append-only guarantee. It
// never interprets an event: rows are derived by the engine's one Fold and
// handed down with the events they follow from. It is the only package that
// knows SQL.
//
// # Files
//
// Beside PATH lie PATH-wal and PATH-shm (SQLite's own), PATH.head (how far the
// ledger had come, see anchor.go), PATH.procs/ (one locked file for each living
// process, see proc.go) and PATH.before-vN (a copy from before each migration).
// Everything is readable by its owner only.
//
// # Durability
//
// A Full commit returns after SQLite synced the write-ahead file. A Lazy one is
// visible to all processes and survives kill -9 when it returns, and is synced
// with the next full commit or 50 ms later. What a power cut leaves is always a
// prefix of what was committed: nothing durable ever rests on something lost.
//
// # Layout
//
// The bytes of a part's events that are the same for all (run, command, epoch,
// first time, hash of the last) are stored once, in part; event holds the rest.
// The hash of every event can be recomputed from its run's previous part, and
// each read does that. The view "events" shows them as one table to people with
// a SQLite shell. Run ids and frequent words are numbers inside.
//
// # Size of the write-ahead file
//
// It is kept under Options.WALBound (64 MiB; usually it stays near 8) as long
// as no process keeps a read transaction open. No method of this package does:
// each reads and lets go. What remains is a process stopped by a signal within
// the microseconds of a read, or another program's open transaction. SQLite
// offers no way to end those; then Stats.WALPinned is set, the file grows with
// what is written, and it shrinks within a second of the reader's end.
//
// # Not on network file systems
//
// SQLite's shared memory and the locks that tell the living from the dead hold
// between processes of one kernel only (containers included). Open refuses
// known network, FUSE and hypervisor file systems by name.
package ledger
