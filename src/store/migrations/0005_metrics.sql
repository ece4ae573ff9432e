-- What jobs measured of themselves while they ran: numbers by step. A series is one quantity of one
-- source; a source is one process that measured, since a job may run several. A series lies in one
-- piece, because that is what is asked for: a curve, or two of them matched by step.
CREATE TABLE metric_series (
  id     INTEGER PRIMARY KEY,
  job    INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  source INTEGER NOT NULL CHECK (source > 0),
  name   TEXT NOT NULL CHECK (name <> ''),
  unit   TEXT NOT NULL,
  UNIQUE (job, source, name)
) STRICT;

CREATE TABLE metric_point (
  series INTEGER NOT NULL REFERENCES metric_series (id) ON DELETE CASCADE,
  step   INTEGER NOT NULL,
  value  REAL,
  PRIMARY KEY (series, step)
) STRICT, WITHOUT ROWID;
