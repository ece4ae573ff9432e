// `assay run @N --set key=value`: turns a recorded stage into a request to run it again.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/record/run.h"

namespace assay::lineage {

// The command with some values replaced. Each of `sets` is "k=v" and replaces the value of k
// wherever the command has it: --k v, --k=v, -k v, -k=v and k=v; dashes and underscores in k are
// equal. Every occurrence is replaced, and of several values for one k the last counts. A k without
// a value in the command is a usage error that lists the keys that have one. Pure.
base::Result<std::vector<std::string>> replace_values(std::span<const std::string> command,
                                                      std::span<const std::string> sets);

// The stage with its command, directory, redirects, name, `--build` flag, tracer (if one was named)
// and filters. `number` is what the user wrote after "@"; `sets` are "key=value". An error if there
// is no such stage in the project of the working directory, if a key is not an argument of it, or
// if its command contained a secret, which was redacted.
base::Result<RunRequest> stage_request(const std::string& number,
                                       const std::vector<std::string>& sets);

// Changes to the stage's directory and applies its redirects to this process.
base::Result<void> enter_stage(const RunRequest& request);

}  // namespace assay::lineage
