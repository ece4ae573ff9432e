// Starts the ranks of a job on this machine, one process each, and makes sure that they end
// together.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "cli/verb.h"

namespace assay::cli {

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> arguments;  // of assay-train, for every rank
  std::filesystem::path out;           // gets the output of rank 3 as ranks/rank-3.log
  bool append_logs = false;            // for a resumed run
};

// Rank 0 has this process's terminal. Ctrl-C reaches all ranks, other signals are forwarded. When
// one rank fails, the control channel informs the others; those that do not end are killed.
struct LaunchEnd {
  int code = 0;                      // rank 0's shell exit code, if it has printed the error
  std::optional<base::Error> error;  // otherwise: which rank failed first
  bool log_is_named = false;         // the error refers to a rank's log
};
base::Result<LaunchEnd> launch_ranks(const LaunchOptions& options);

// Passes rank 0's error to the launcher, which knows whether another rank was killed and prints the
// one line that says why the job ended. False: there is no launcher.
bool send_error_to_launcher(const base::Error& error);

}  // namespace assay::cli
