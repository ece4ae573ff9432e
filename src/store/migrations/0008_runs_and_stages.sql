-- The project's vocabulary: a recorded execution is a run, a node of the pipeline is a stage, a
-- command has arguments. Renaming moves no rows; indexes are recreated because SQLite cannot rename
-- them.
DROP INDEX job_by_command;
DROP INDEX job_by_environment;
DROP INDEX job_by_files;
DROP INDEX job_by_machine;
DROP INDEX job_by_name;
DROP INDEX job_by_status;
DROP INDEX job_by_step;
DROP INDEX job_git_by_diff;
DROP INDEX job_input_by_content;
DROP INDEX job_input_by_path;
DROP INDEX job_output_by_content;
DROP INDEX job_output_by_path;
DROP INDEX job_package_by_package;
DROP INDEX job_rule_by_paths;
DROP INDEX label_by_job;

ALTER TABLE job RENAME TO run;
ALTER TABLE job_git RENAME TO run_git;
ALTER TABLE job_input RENAME TO run_input;
ALTER TABLE job_output RENAME TO run_output;
ALTER TABLE job_package RENAME TO run_package;
ALTER TABLE job_rule RENAME TO run_rule;
ALTER TABLE step RENAME TO stage;

ALTER TABLE gpu_collective RENAME COLUMN job TO run;
ALTER TABLE gpu_memory RENAME COLUMN job TO run;
ALTER TABLE gpu_share RENAME COLUMN job TO run;
ALTER TABLE gpu_share RENAME COLUMN had_ns TO busy_ns;
ALTER TABLE gpu_use RENAME COLUMN job TO run;
ALTER TABLE run RENAME COLUMN step TO stage;
ALTER TABLE run_git RENAME COLUMN job TO run;
ALTER TABLE run_input RENAME COLUMN job TO run;
ALTER TABLE run_output RENAME COLUMN job TO run;
ALTER TABLE run_package RENAME COLUMN job TO run;
ALTER TABLE run_rule RENAME COLUMN job TO run;
ALTER TABLE label RENAME COLUMN job TO run;
ALTER TABLE metric_series RENAME COLUMN job TO run;
ALTER TABLE missed RENAME COLUMN job TO run;
ALTER TABLE process RENAME COLUMN job TO run;
ALTER TABLE process RENAME COLUMN words TO arguments;
ALTER TABLE stage RENAME COLUMN job TO run;

CREATE INDEX run_by_command ON run (substr(command, 1, 64)) WHERE stage IS NOT NULL;
CREATE INDEX run_by_environment ON run (environment);
CREATE INDEX run_by_files ON run (files) WHERE files IS NOT NULL;
CREATE INDEX run_by_machine ON run (machine);
CREATE INDEX run_by_name ON run (name) WHERE name <> '';
CREATE INDEX run_by_status ON run (status) WHERE status = 'running';
CREATE INDEX run_by_stage ON run (stage) WHERE stage IS NOT NULL;
CREATE INDEX run_git_by_diff ON run_git (diff) WHERE diff IS NOT NULL;
CREATE INDEX run_input_by_content ON run_input (substr(blake3, 1, 8));
CREATE UNIQUE INDEX run_input_by_path ON run_input (path, run);
CREATE INDEX run_output_by_content ON run_output (substr(blake3, 1, 8));
CREATE UNIQUE INDEX run_output_by_path ON run_output (path, run);
CREATE INDEX run_package_by_package ON run_package (package);
CREATE INDEX run_rule_by_paths ON run_rule (paths) WHERE paths IS NOT NULL;
CREATE INDEX label_by_run ON label (run) WHERE run IS NOT NULL;
