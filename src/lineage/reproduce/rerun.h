// `assay run @N --set key=value`: turns a recorded stage into a request to run it again.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/graph/edit_obstacle.h"
#include "lineage/record/run.h"

namespace assay::lineage {

// The command with some values replaced. Each of `sets` is "k=v" and replaces the value of k
// wherever the command has it: --k v, --k=v, -k v, -k=v and k=v; dashes and underscores in k are
// equal. Every occurrence is replaced, and of several values for one k the last counts. A k without
// a value in the command is a usage error that lists the keys that have one. Pure.
base::Result<std::vector<std::string>> replace_values(std::span<const std::string> command,
                                                      std::span<const std::string> sets);

struct RerunOptions {
  std::vector<std::string> sets;  // "key=value"
  bool here = false;              // the command's streams are those of this process
  EditedOutputs edited = EditedOutputs::kKeep;
};

// The stage with its command, directory, redirects, name, `--build` flag, tracer (if one was named)
// and filters. `number` is what the user wrote after "@". An error if there is no such stage in the
// project of the working directory, if a key is not an argument of it, if its command contained a
// secret, which was redacted, or if it would overwrite an edit (graph/edit_obstacle.h).
//
// A file that standard output or error went to is made anew if nothing that others wrote is lost:
// it is gone, or holds exactly what the stage or, if it is an output, some run left there.
// Otherwise it is appended to, which is an error for an output that the stage made anew. The log of
// a job, which was handed down to the stage, is not written again: it was not the stage's.
base::Result<RunRequest> stage_request(const std::string& number, const RerunOptions& options);

// Changes to the stage's directory and opens the files of its streams, for run_command(). Unless
// `quiet`, a line says which of them are not where this process's are.
base::Result<StageStreams> enter_stage(const RunRequest& request, bool quiet);

}  // namespace assay::lineage
