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

// Where something else started the ranks of a job, each is recorded by a process of its own, and
// those hand over what they recorded to the one of rank 0 (lineage/record/part.h). Which run that
// is, rank 0's program tells the others when they meet, so that nothing of an earlier attempt at
// the job can be taken for a part of this one.
struct JoinedRun {
  std::string told;            // rank 0: its run, by uid; empty: rank 0 is not recorded
  std::filesystem::path note;  // others: the file in which to note what they were told; empty: none
};
JoinedRun joined_run();
// Sets the variables for a command, or removes those of an enclosing run.
void set_joined_run(const JoinedRun& run, base::Environment& environment);
// Writes the note into its file, which exists: the recorder has it open. And what a note says:
// nothing if it has not been written yet, else `told`.
base::Result<void> note_joined_run(const std::filesystem::path& note, const std::string& told);
std::optional<std::string> joined_run_of_note(std::string_view text);

}  // namespace assay::store
