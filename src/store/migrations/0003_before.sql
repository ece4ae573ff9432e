-- What stood in a file that a job changed in place, so that a step that adds to a file can be told
-- from one that makes it anew.
ALTER TABLE job_output ADD COLUMN before BLOB CHECK (length(before) = 32);
