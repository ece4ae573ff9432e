// Starts the ranks of a job on this machine, one process each, and ends them together.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "cli/verb.h"

namespace assay::cli {

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> arguments;  // of assay-train, for every rank
  std::filesystem::path out;           // gets ranks/rank-3.log, what rank 3 printed
  bool append_logs = false;            // of a run that is resumed
};

// Rank 0 has this process's terminal. Ctrl-C reaches all ranks, other signals are passed on. When
// one rank fails, the others are told by the channel that joins them, and killed if they do not
// end.
struct LaunchEnd {
  int code = 0;                      // of rank 0, as a shell says it, if it has printed why
  std::optional<base::Error> error;  // else which rank failed first
  bool log_is_named = false;         // by the error: a rank's log says more
};
base::Result<LaunchEnd> launch_ranks(const LaunchOptions& options);

// Rank 0 of such a job gives its error to the launcher, which knows whether another rank was killed
// and prints the one line that says why the job ended. False: nobody is there to take it.
bool give_to_launcher(const base::Error& error);

}  // namespace assay::cli
