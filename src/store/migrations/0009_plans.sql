-- What was predicted about a run when it started.
CREATE TABLE plan (
  run          INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
  planned_ns   INTEGER NOT NULL,
  job          TEXT NOT NULL,
  device       TEXT NOT NULL,
  step_s       REAL CHECK (step_s > 0),
  memory_bytes INTEGER CHECK (memory_bytes > 0),
  plan         TEXT NOT NULL
) STRICT;
