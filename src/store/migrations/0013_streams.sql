-- An output that was only the run's standard output or error, and is no artifact (store/streams.h):
-- a log beside the run's files, or of the job that the run was part of.
ALTER TABLE run_output ADD COLUMN stream INTEGER NOT NULL DEFAULT 0 CHECK (stream IN (0, 1));
CREATE INDEX run_output_streams ON run_output (path, run) WHERE stream = 1;

-- Earlier runs: logs beside other files, which no run has read.
UPDATE run_output SET stream = 1
WHERE status <> 'deleted'
  AND run IN (SELECT id FROM run WHERE length(redirects) > 0)
  AND EXISTS (SELECT 1 FROM run j WHERE j.id = run_output.run
              AND instr(j.redirects, CAST('>' || run_output.path || char(0) AS BLOB)) > 0)
  AND EXISTS (SELECT 1 FROM run_output o JOIN run j ON j.id = o.run
              WHERE o.run = run_output.run AND o.status <> 'deleted'
              AND instr(j.redirects, CAST('>' || o.path || char(0) AS BLOB)) = 0)
  AND NOT EXISTS (SELECT 1 FROM run_input i WHERE i.path = run_output.path
                  AND (i.run = run_output.run OR i.blake3 = run_output.blake3));
UPDATE run SET outputs = (SELECT count(*) FROM run_output o WHERE o.run = run.id AND o.stream = 0)
WHERE id IN (SELECT run FROM run_output WHERE stream = 1);
