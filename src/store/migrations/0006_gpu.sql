-- What a job had GPUs do, as its processes counted it. Quantities are rows, not columns: there will
-- be others.
CREATE TABLE gpu_use (
  job      INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  number   INTEGER NOT NULL,
  quantity TEXT NOT NULL CHECK (quantity <> ''),
  calls    INTEGER NOT NULL CHECK (calls >= 0),
  amount   INTEGER NOT NULL CHECK (amount >= 0),
  PRIMARY KEY (job, number),
  UNIQUE (job, quantity)
) STRICT, WITHOUT ROWID;

CREATE TABLE gpu_memory (
  job        INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  device     TEXT NOT NULL,
  peak_bytes INTEGER NOT NULL CHECK (peak_bytes >= 0),
  PRIMARY KEY (job, device)
) STRICT, WITHOUT ROWID;

CREATE TABLE gpu_collective (
  job          INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  communicator TEXT NOT NULL,
  ranks        INTEGER NOT NULL,
  operation    TEXT NOT NULL,
  type         TEXT NOT NULL,
  calls        INTEGER NOT NULL CHECK (calls >= 0),
  bytes        INTEGER NOT NULL CHECK (bytes >= 0),
  PRIMARY KEY (job, communicator, operation, type)
) STRICT, WITHOUT ROWID;
