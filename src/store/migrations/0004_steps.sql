-- What a job is a repetition of is looked up among the jobs: by name, by command, by the files that
-- it read and left. A step is its number and its current job.
CREATE TABLE new_step (
  number INTEGER PRIMARY KEY CHECK (number > 0),
  job    INTEGER NOT NULL UNIQUE REFERENCES job (id)
) STRICT;
INSERT INTO new_step SELECT number, job FROM step;
DROP TABLE step;
ALTER TABLE new_step RENAME TO step;

ALTER TABLE job ADD COLUMN files BLOB CHECK (length(files) = 32);
ALTER TABLE job ADD COLUMN options BLOB NOT NULL DEFAULT x'';
CREATE INDEX job_by_files ON job (files) WHERE files IS NOT NULL;
CREATE INDEX job_by_command ON job (substr(command, 1, 64)) WHERE step IS NOT NULL;
