-- What a job might have of a device when it ended, and what it had. The device '' stands for all
-- that have no limits of their own.
CREATE TABLE gpu_share (
  job               INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  device            TEXT NOT NULL,
  memory_bytes      INTEGER CHECK (memory_bytes > 0),
  share_thousandths INTEGER CHECK (share_thousandths BETWEEN 1 AND 1000),
  priority          TEXT NOT NULL,
  borrow            INTEGER NOT NULL CHECK (borrow IN (0, 1)),
  had_ns            INTEGER NOT NULL CHECK (had_ns >= 0),
  waited_ns         INTEGER NOT NULL CHECK (waited_ns >= 0),
  PRIMARY KEY (job, device)
) STRICT, WITHOUT ROWID;
