// The run that this process is part of. `assay run` passes it to the command in an environment
// variable, so that a program that measures itself (the trainer) adds its metrics to that run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/process/environment.h"
#include "base/result.h"
#include "store/location.h"

namespace assay::store {

struct ThisRun {
  Location location;
  std::string uid;
};

// Nothing if the process was not started by `assay run`.
std::optional<ThisRun> this_run();

// Sets the variable for a command, replacing that of an enclosing run.
void set_run_variable(const ThisRun& run, base::Environment& environment);

// When a launcher such as srun starts the ranks of a job, each rank has its own recorder, and the
// others hand their records to that of rank 0 (lineage/record/part.h). At rendezvous rank 0's
// program sends the uid of its run to the other ranks, so that records of an earlier attempt cannot
// be mistaken for parts of this run.
struct JoinedRun {
  std::string run_uid;         // on rank 0: the uid of its run; empty: rank 0 is not recorded
  std::filesystem::path note;  // on others: the file that gets the uid they receive; empty: none
};
JoinedRun joined_run();
// Sets the variables for a command, or removes those of an enclosing run.
void set_joined_run(const JoinedRun& run, base::Environment& environment);
// Writes `run_uid` to the note file, which exists because the recorder holds it open; and parses a
// note: nothing if it has not been written yet, else `run_uid`.
base::Result<void> note_joined_run(const std::filesystem::path& note, const std::string& run_uid);
std::optional<std::string> joined_run_of_note(std::string_view text);

}  // namespace assay::store
