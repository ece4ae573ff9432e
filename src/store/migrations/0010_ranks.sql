-- What ranks measured of themselves, one row each: a training run on several ranks has them. Sums
-- over the steps so far, because a row per step and rank would be most of the store.
CREATE TABLE run_rank (
  run           INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  rank          INTEGER NOT NULL CHECK (rank >= 0),
  host          TEXT NOT NULL,
  place         TEXT NOT NULL,
  step          INTEGER NOT NULL,
  steps         INTEGER NOT NULL,
  step_s        REAL NOT NULL,
  wait_s        REAL,
  last_step_s   REAL NOT NULL,
  last_wait_s   REAL,
  planned_bytes INTEGER NOT NULL,
  memory_bytes  INTEGER NOT NULL,
  host_bytes    INTEGER NOT NULL,
  PRIMARY KEY (run, rank)
) STRICT, WITHOUT ROWID;

-- Of processes on other nodes than the run's own.
ALTER TABLE process ADD COLUMN host TEXT;
