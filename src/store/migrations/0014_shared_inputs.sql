-- Runs that read the same files share their inputs: a run's inputs are lists of files, and a list
-- with the same files, contents and sizes is stored once. A second run over twenty thousand files
-- writes no row per file.
CREATE TABLE input_list (
  id     INTEGER PRIMARY KEY,
  blake3 BLOB UNIQUE CHECK (length(blake3) = 32)
) STRICT;

CREATE TABLE listed_input (
  list   INTEGER NOT NULL REFERENCES input_list (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  path   TEXT NOT NULL,
  blake3 BLOB CHECK (length(blake3) = 32),
  size   INTEGER NOT NULL,
  PRIMARY KEY (list, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_list (
  run    INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  before INTEGER NOT NULL,
  list   INTEGER NOT NULL REFERENCES input_list (id) ON DELETE CASCADE,
  PRIMARY KEY (run, before)
) STRICT, WITHOUT ROWID;

INSERT INTO input_list (id) SELECT DISTINCT run FROM run_input;
INSERT INTO listed_input SELECT run, number, path, blake3, size FROM run_input ORDER BY run, number;
INSERT INTO run_list SELECT id, 0, id FROM input_list;
DROP TABLE run_input;

CREATE UNIQUE INDEX listed_input_by_path ON listed_input (path, list);
CREATE INDEX listed_input_by_content ON listed_input (substr(blake3, 1, 8));
CREATE INDEX run_list_by_list ON run_list (list, run);

CREATE VIEW run_input (run, number, path, blake3, size) AS
  SELECT u.run, u.before + i.number, i.path, i.blake3, i.size
  FROM run_list u JOIN listed_input i ON i.list = u.list;

-- Sixteen inodes to a row, because files that were made together are read together.
CREATE TABLE new_hash_cache (
  device    INTEGER NOT NULL,
  block     INTEGER NOT NULL,
  files     TEXT NOT NULL,
  hashed_ns INTEGER NOT NULL,
  UNIQUE (device, block)
) STRICT;
INSERT INTO new_hash_cache
  SELECT device, inode >> 4, group_concat(printf('%016x%016x%016x%016x', inode, size, mtime_ns,
         ctime_ns) || lower(hex(blake3)), ''), max(hashed_ns)
  FROM hash_cache GROUP BY 1, 2;
DROP TABLE hash_cache;
ALTER TABLE new_hash_cache RENAME TO hash_cache;
