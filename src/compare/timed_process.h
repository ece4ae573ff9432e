// One timed run of a command: wall time by the monotonic clock from just before the start until the
// process descriptor reports the end. Files and arguments are prepared before the clock starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/process/environment.h"
#include "base/process/interrupts.h"
#include "base/result.h"
#include "base/units.h"

namespace assay::compare {

using base::Interrupts;

// The arguments of a command that needs no shell: plain or single-quoted words, of which the first
// is an existing program. Nothing if a shell is needed.
std::optional<std::vector<std::string>> plain_arguments(const std::string& command);
// The name of a command's program if neither PATH nor the shell knows it, i.e. if it is misspelt.
// Nothing for commands that only a shell can interpret.
std::optional<std::string> unknown_program(const std::string& command,
                                           const base::Environment& environment);
// {"/bin/sh", "-c", command}
std::vector<std::string> shell_arguments(const std::string& command);

struct ProcessRequest {
  std::vector<std::string> arguments;
  base::Environment environment;
  std::filesystem::path out;  // file for its standard output
  std::filesystem::path err;
  std::optional<base::Seconds> timeout = std::nullopt;
  bool time_output = false;  // record when output arrives; pipes it through this process
};

struct OutputMoment {
  std::size_t end = 0;  // bytes that had arrived
  double seconds = 0;   // since the start
};

struct ProcessOutcome {
  double wall_s = 0;
  double cpu_s = 0;  // its own, and that of children it waited for
  int wait_status = 0;
  bool timed_out = false;
  bool interrupted = false;
  std::vector<OutputMoment> moments;      // of standard output
  std::vector<OutputMoment> err_moments;  // of standard error

  [[nodiscard]] bool ok() const { return wait_status == 0 && !timed_out && !interrupted; }
  // "exited with 1", "was killed by signal 9", "timed out"
  [[nodiscard]] std::string how() const;
};

// On an interruption or timeout the process group gets SIGTERM, and SIGKILL two seconds later.
base::Result<ProcessOutcome> run_process(const ProcessRequest& request,
                                         const Interrupts& interrupts);

}  // namespace assay::compare
