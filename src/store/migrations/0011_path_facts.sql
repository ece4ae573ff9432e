-- What a run found out about names, besides the contents of files: folders that it made, symbolic
-- links that it followed or left, folders whose names it listed, and paths where it found nothing.
CREATE TABLE path_fact (
  run    INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  kind   TEXT NOT NULL,
  path   TEXT NOT NULL,
  target TEXT,
  names  INTEGER REFERENCES document (id),
  PRIMARY KEY (run, kind, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX path_fact_by_path ON path_fact (path);
CREATE INDEX path_fact_by_names ON path_fact (names) WHERE names IS NOT NULL;
