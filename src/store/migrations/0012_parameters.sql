-- What a run said it was run with: names and values, as text.
CREATE TABLE run_parameter (
  run   INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;
