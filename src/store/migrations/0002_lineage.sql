-- What `assay run` records: jobs, the files they read and wrote by content, and the steps they make.

CREATE TABLE package (
  id      INTEGER PRIMARY KEY,
  manager TEXT NOT NULL,
  name    TEXT NOT NULL,
  version TEXT NOT NULL,
  UNIQUE (name, version, manager)
) STRICT;

-- Long texts that many jobs share: diffs, environments, machines.
CREATE TABLE document (
  id     INTEGER PRIMARY KEY,
  blake3 BLOB NOT NULL UNIQUE CHECK (length(blake3) = 32),
  size   INTEGER NOT NULL CHECK (size >= 0),
  zlib   BLOB NOT NULL
) STRICT;

-- AUTOINCREMENT: a number that was seen once never comes to mean another job.
CREATE TABLE job (
  id                    INTEGER PRIMARY KEY AUTOINCREMENT,
  uid                   TEXT NOT NULL UNIQUE CHECK (length(uid) = 16 AND uid NOT GLOB '*[^0-9a-f]*'),
  command               BLOB NOT NULL,
  directory             TEXT NOT NULL,
  redirects             BLOB NOT NULL,
  name                  TEXT NOT NULL,
  build                 INTEGER NOT NULL CHECK (build IN (0, 1)),
  status                TEXT NOT NULL CHECK (status IN ('running', 'done', 'failed', 'interrupted')),
  exit_code             INTEGER,
  signal                INTEGER,
  tracer                TEXT NOT NULL,
  complete              INTEGER NOT NULL CHECK (complete IN (0, 1)),
  dropped               INTEGER NOT NULL CHECK (dropped >= 0),
  started_ns            INTEGER NOT NULL,
  duration_s            REAL NOT NULL,
  step                  INTEGER REFERENCES step (number),
  collector_pid         INTEGER NOT NULL,
  collector_start_ticks INTEGER NOT NULL,
  spool                 TEXT NOT NULL,
  inputs                INTEGER NOT NULL DEFAULT 0,
  outputs               INTEGER NOT NULL DEFAULT 0,
  processes             INTEGER NOT NULL DEFAULT 0,
  user_s                REAL NOT NULL,
  system_s              REAL NOT NULL,
  max_rss_bytes         INTEGER NOT NULL,
  read_bytes            INTEGER NOT NULL,
  written_bytes         INTEGER NOT NULL,
  user                  TEXT NOT NULL,
  host                  TEXT NOT NULL,
  environment           INTEGER REFERENCES document (id),
  machine               INTEGER REFERENCES document (id)
) STRICT;
CREATE INDEX job_by_name ON job (name) WHERE name <> '';
CREATE INDEX job_by_status ON job (status) WHERE status = 'running';
CREATE INDEX job_by_step ON job (step) WHERE step IS NOT NULL;
CREATE INDEX job_by_environment ON job (environment);
CREATE INDEX job_by_machine ON job (machine);

CREATE TABLE job_git (
  job       INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
  root      TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  branch    TEXT NOT NULL,
  remote    TEXT NOT NULL,
  dirty     INTEGER NOT NULL CHECK (dirty IN (0, 1)),
  diff      INTEGER REFERENCES document (id),
  left_out  BLOB NOT NULL
) STRICT;
CREATE INDEX job_git_by_diff ON job_git (diff) WHERE diff IS NOT NULL;

-- Files stand here as text and digest, not as references to tables of paths and contents: a job may
-- have a million of them, and every table and index more is another random insert for each. An
-- index of 8 bytes of the digest finds it as well as one of 32, at a third of the size. (And no
-- CHECK (… IN (…)) here: SQLite builds a table for it at every insert.)
CREATE TABLE job_input (
  job    INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  path   TEXT NOT NULL,
  blake3 BLOB CHECK (length(blake3) = 32),
  size   INTEGER NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX job_input_by_path ON job_input (path, job);
CREATE INDEX job_input_by_content ON job_input (substr(blake3, 1, 8));

CREATE TABLE job_output (
  job    INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  path   TEXT NOT NULL,
  blake3 BLOB CHECK (length(blake3) = 32),
  size   INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status = 'created' OR status = 'modified' OR status = 'renamed' OR
                              status = 'linked' OR status = 'deleted'),
  source TEXT,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX job_output_by_path ON job_output (path, job);
CREATE INDEX job_output_by_content ON job_output (substr(blake3, 1, 8));

CREATE TABLE process (
  job         INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  number      INTEGER NOT NULL,
  pid         INTEGER NOT NULL,
  parent      INTEGER NOT NULL,
  program     TEXT NOT NULL,
  words       BLOB NOT NULL,
  started_ns  INTEGER NOT NULL,
  ended_ns    INTEGER,
  wait_status INTEGER,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE missed (
  job    INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  what   TEXT NOT NULL,
  text   TEXT NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_package (
  job     INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  package INTEGER NOT NULL REFERENCES package (id),
  PRIMARY KEY (job, package)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_package_by_package ON job_package (package);

-- Why files are in a job's lineage or not: the filter's rules, each with the files it decided on.
CREATE TABLE job_rule (
  job      INTEGER NOT NULL REFERENCES job (id) ON DELETE CASCADE,
  name     TEXT NOT NULL,
  keep     INTEGER NOT NULL CHECK (keep IN (0, 1)),
  sentence TEXT NOT NULL,
  files    INTEGER NOT NULL CHECK (files >= 0),
  paths    INTEGER REFERENCES document (id),
  PRIMARY KEY (job, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_rule_by_paths ON job_rule (paths) WHERE paths IS NOT NULL;

CREATE TABLE step (
  number   INTEGER PRIMARY KEY CHECK (number > 0),
  identity BLOB NOT NULL UNIQUE CHECK (length(identity) = 32),
  job      INTEGER NOT NULL UNIQUE REFERENCES job (id)
) STRICT;

CREATE TABLE label (
  name   TEXT PRIMARY KEY CHECK (name <> ''),
  job    INTEGER REFERENCES job (id) ON DELETE CASCADE,
  blake3 BLOB CHECK (length(blake3) = 32),
  CHECK ((job IS NULL) <> (blake3 IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX label_by_job ON label (job) WHERE job IS NOT NULL;
CREATE INDEX label_by_content ON label (blake3) WHERE blake3 IS NOT NULL;

-- A file's stamp and the digest it had then. One row per file: a stamp that has passed never comes
-- back, because ctime only goes forward.
CREATE TABLE hash_cache (
  device    INTEGER NOT NULL,
  inode     INTEGER NOT NULL,
  size      INTEGER NOT NULL,
  mtime_ns  INTEGER NOT NULL,
  ctime_ns  INTEGER NOT NULL,
  blake3    BLOB NOT NULL CHECK (length(blake3) = 32),
  hashed_ns INTEGER NOT NULL,
  PRIMARY KEY (device, inode)
) STRICT, WITHOUT ROWID;
CREATE INDEX hash_cache_by_age ON hash_cache (hashed_ns);
