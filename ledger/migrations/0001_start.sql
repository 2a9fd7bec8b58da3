-- The first ledger. Every table is STRICT; times are Unix microseconds.

CREATE TABLE migration(
  version INTEGER PRIMARY KEY,
  name    TEXT NOT NULL,
  sha256  TEXT NOT NULL,
  at      INTEGER NOT NULL
) STRICT;

-- Losses of a tail that an operator acknowledged.
CREATE TABLE loss(
  id        INTEGER PRIMARY KEY,
  at        INTEGER NOT NULL,
  want_seq  INTEGER NOT NULL,
  want_hash BLOB NOT NULL,
  have_seq  INTEGER NOT NULL,
  have_hash BLOB NOT NULL
) STRICT;

-- Words that repeat in every event: kinds, actors, states, tools.
CREATE TABLE word(
  id   INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;

-- A run's id, spelt once. k stands for it everywhere else.
CREATE TABLE chain(
  k  INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE
) STRICT;

-- One committed part: count events of one run, numbered seq first.. and n n0...
-- hash is the chain's head after its last event. What all its events share
-- (command, epoch, time of the first) is kept here once.
CREATE TABLE part(
  first INTEGER PRIMARY KEY,
  run   INTEGER NOT NULL,
  n0    INTEGER NOT NULL,
  count INTEGER NOT NULL CHECK(count > 0),
  at    INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  cmd   BLOB NOT NULL CHECK(length(cmd) = 16),
  hash  BLOB NOT NULL CHECK(length(hash) = 32)
) STRICT;
CREATE UNIQUE INDEX part_run ON part(run, n0);
CREATE UNIQUE INDEX part_cmd ON part(cmd);

-- One event; the part it belongs to is the one with the greatest first <= seq.
CREATE TABLE event(
  seq     INTEGER PRIMARY KEY,
  kind    INTEGER NOT NULL,
  actor   INTEGER NOT NULL,
  late    INTEGER NOT NULL,
  payload BLOB NOT NULL
) STRICT;

-- Commands that appended nothing (rows, claims, releases), so that they too
-- can be read back.
CREATE TABLE quiet(
  cmd  BLOB PRIMARY KEY,
  run  INTEGER NOT NULL,
  tail INTEGER NOT NULL,
  hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Content by the SHA-256 of its plain bytes, in zstd frames of at most 1 MiB
-- plain. The frame at offset 0 is written last: a blob without it is not there.
CREATE TABLE blob(
  id   INTEGER PRIMARY KEY,
  hash BLOB NOT NULL CHECK(length(hash) = 32),
  off  INTEGER NOT NULL,
  size INTEGER NOT NULL,
  data BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX blob_hash ON blob(hash, off);

CREATE TABLE lease(
  run    INTEGER PRIMARY KEY,
  holder TEXT NOT NULL,
  epoch  INTEGER NOT NULL,
  boot   TEXT NOT NULL,
  until  INTEGER NOT NULL, -- microseconds of the monotonic clock of boot
  owner  TEXT NOT NULL
) STRICT;
CREATE INDEX lease_held ON lease(holder) WHERE holder <> '';

-- Projections: written whole by whoever appends, rebuilt from events at any time.

CREATE TABLE run(
  k             INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  parent        TEXT NOT NULL,
  root          TEXT NOT NULL,
  goal          TEXT NOT NULL,
  state         TEXT NOT NULL,
  model         TEXT NOT NULL,
  repo          TEXT NOT NULL,
  turn          INTEGER NOT NULL,
  spend         INTEGER NOT NULL,
  at_most       INTEGER NOT NULL,
  budget        INTEGER NOT NULL,
  open          INTEGER NOT NULL,
  waiting       INTEGER NOT NULL,
  created       INTEGER NOT NULL,
  updated       INTEGER NOT NULL,
  last_operator INTEGER NOT NULL,
  note          TEXT NOT NULL,
  flags         INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX run_created ON run(created, id);
CREATE INDEX run_state ON run(state, created, id);
CREATE INDEX run_parent ON run(parent, created, id);

CREATE TABLE effect(
  k        INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  run      INTEGER NOT NULL,
  ord      INTEGER NOT NULL,
  turn     INTEGER NOT NULL,
  tool     INTEGER NOT NULL,
  class    INTEGER NOT NULL,
  state    INTEGER NOT NULL,
  forced   INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  digest   BLOB NOT NULL,
  summary  TEXT NOT NULL,
  updated  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX effect_run ON effect(run, ord);

CREATE TABLE approval(
  id      TEXT PRIMARY KEY,
  run     INTEGER NOT NULL,
  effect  TEXT NOT NULL,
  state   TEXT NOT NULL,
  digest  BLOB NOT NULL,
  updated INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX approval_run ON approval(run, updated, id);

CREATE TABLE inbox(
  id      TEXT PRIMARY KEY,
  run     INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  ref     TEXT NOT NULL,
  summary TEXT NOT NULL,
  rank    INTEGER NOT NULL,
  since   INTEGER NOT NULL,
  latent  INTEGER NOT NULL -- waits only if the owner of its run is gone
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_rank ON inbox(rank, since, id);
CREATE INDEX inbox_run ON inbox(run, rank, since, id);

CREATE TABLE context(
  run    INTEGER NOT NULL,
  n      INTEGER NOT NULL,
  opened INTEGER NOT NULL,
  turns  INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  PRIMARY KEY(run, n)
) STRICT, WITHOUT ROWID;

-- Guards. They hold for every program that opens this file, whatever pragmas
-- it sets: a REPLACE is refused before it could delete, because what it would
-- replace is looked up first.

CREATE TRIGGER part_next BEFORE INSERT ON part BEGIN
  SELECT RAISE(ABORT, 'ledger: a part must follow the last event')
    WHERE NEW.first IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM event);
  SELECT RAISE(ABORT, 'ledger: a part must follow the last one of its run')
    WHERE NEW.n0 IS NOT coalesce((SELECT n0 + count FROM part WHERE run = NEW.run ORDER BY n0 DESC LIMIT 1), 1);
  SELECT RAISE(ABORT, 'ledger: this command is recorded already')
    WHERE EXISTS(SELECT 1 FROM part WHERE cmd = NEW.cmd);
  SELECT RAISE(ABORT, 'ledger: stale epoch')
    WHERE NEW.epoch <> 0 AND NEW.epoch IS NOT (SELECT epoch FROM lease WHERE run = NEW.run);
END;
CREATE TRIGGER part_no_update BEFORE UPDATE ON part BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;
CREATE TRIGGER part_no_delete BEFORE DELETE ON part BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;

CREATE TRIGGER event_next BEFORE INSERT ON event BEGIN
  SELECT RAISE(ABORT, 'ledger: an event must follow the last one')
    WHERE NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM event)
       OR NEW.seq >= coalesce((SELECT first + count FROM part ORDER BY first DESC LIMIT 1), 0);
END;
CREATE TRIGGER event_no_update BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;

CREATE TRIGGER quiet_new BEFORE INSERT ON quiet BEGIN
  SELECT RAISE(ABORT, 'ledger: this command is recorded already') WHERE EXISTS(SELECT 1 FROM quiet WHERE cmd = NEW.cmd);
END;
CREATE TRIGGER quiet_no_update BEFORE UPDATE ON quiet BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;
CREATE TRIGGER quiet_no_delete BEFORE DELETE ON quiet BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;

CREATE TRIGGER blob_new BEFORE INSERT ON blob BEGIN
  SELECT RAISE(ABORT, 'ledger: this blob is there already')
    WHERE EXISTS(SELECT 1 FROM blob WHERE hash = NEW.hash AND off = NEW.off) OR EXISTS(SELECT 1 FROM blob WHERE id = NEW.id);
END;
CREATE TRIGGER blob_no_update BEFORE UPDATE ON blob BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;
CREATE TRIGGER blob_no_delete BEFORE DELETE ON blob BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;

CREATE TRIGGER word_new BEFORE INSERT ON word BEGIN
  SELECT RAISE(ABORT, 'ledger: this word is there already') WHERE EXISTS(SELECT 1 FROM word WHERE text = NEW.text OR id = NEW.id);
END;
CREATE TRIGGER word_no_update BEFORE UPDATE ON word BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;
CREATE TRIGGER word_no_delete BEFORE DELETE ON word BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;

CREATE TRIGGER chain_new BEFORE INSERT ON chain BEGIN
  SELECT RAISE(ABORT, 'ledger: this run is there already') WHERE EXISTS(SELECT 1 FROM chain WHERE id = NEW.id OR k = NEW.k);
END;
CREATE TRIGGER chain_no_update BEFORE UPDATE ON chain BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;
CREATE TRIGGER chain_no_delete BEFORE DELETE ON chain BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;

CREATE TRIGGER loss_no_update BEFORE UPDATE ON loss BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;
CREATE TRIGGER loss_no_delete BEFORE DELETE ON loss BEGIN SELECT RAISE(ABORT, 'ledger: append only'); END;

CREATE TRIGGER lease_new BEFORE INSERT ON lease BEGIN
  SELECT RAISE(ABORT, 'ledger: epochs are for ever') WHERE EXISTS(SELECT 1 FROM lease WHERE run = NEW.run);
END;
CREATE TRIGGER lease_grows BEFORE UPDATE ON lease
  WHEN NEW.run <> OLD.run OR NEW.epoch < OLD.epoch
    OR (NEW.holder <> OLD.holder AND NEW.holder <> '' AND NEW.epoch <= OLD.epoch)
BEGIN SELECT RAISE(ABORT, 'ledger: an epoch must grow'); END;
CREATE TRIGGER lease_no_delete BEFORE DELETE ON lease BEGIN SELECT RAISE(ABORT, 'ledger: epochs are for ever'); END;

-- What people read with any SQLite shell. hash is that of the part's last event.
CREATE VIEW events AS
  SELECT e.seq AS seq, c.id AS run, p.n0 + e.seq - p.first AS n, lower(hex(p.cmd)) AS cmd, k.text AS kind,
         p.at + e.late AS at, a.text AS actor, p.epoch AS epoch, e.payload AS payload,
         CASE WHEN e.seq = p.first + p.count - 1 THEN lower(hex(p.hash)) END AS hash
  FROM part p
  JOIN event e ON e.seq BETWEEN p.first AND p.first + p.count - 1
  JOIN chain c ON c.k = p.run
  JOIN word k ON k.id = e.kind
  JOIN word a ON a.id = e.actor;
