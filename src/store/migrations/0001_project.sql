-- What every store has: the migrations that made it and the project it belongs to.

CREATE TABLE migration (
  version    INTEGER PRIMARY KEY CHECK (version > 0),
  name       TEXT NOT NULL CHECK (name <> ''),
  applied_at TEXT NOT NULL CHECK (applied_at GLOB '????-??-??T??:??:??*Z'),
  program    TEXT NOT NULL CHECK (program <> '')
) STRICT;

CREATE TABLE project (
  only_row   INTEGER PRIMARY KEY CHECK (only_row = 1),
  id         TEXT NOT NULL CHECK (length(id) = 32 AND id NOT GLOB '*[^0-9a-f]*'),
  created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??*Z'),
  created_by TEXT NOT NULL CHECK (created_by <> ''),
  root       TEXT NOT NULL CHECK (root <> '')
) STRICT;
