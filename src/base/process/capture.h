// CapturedProcess: runs a helper program (git) and captures its output; kills it, with everything
// it started, if it takes too long or writes too much.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/process/environment.h"
#include "base/process/process.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::base {

struct CaptureOptions {
  std::vector<std::string> arguments;  // the first is looked up in this process's PATH
  Environment environment;
  std::filesystem::path directory = {};
  std::string input = {};  // its standard input; empty: /dev/null
  std::chrono::milliseconds timeout{10'000};
  std::size_t output_limit = std::size_t{256} << 20;
};

struct Captured {
  int exit_code = 0;  // 128+N for signal N
  std::string output;
  std::string errors;      // the first 64 KiB
  bool timed_out = false;  // and was killed
  bool too_long = false;   // wrote more than the limit, and was killed
  [[nodiscard]] bool ok() const { return exit_code == 0 && !timed_out && !too_long; }
};

class CapturedProcess {
 public:
  // Fails if the program cannot be started, usually because it is not installed.
  static Result<CapturedProcess> start(CaptureOptions options);
  // Reads to the end and waits. If this object is destroyed before, the process is killed.
  Captured finish();

 private:
  CapturedProcess(Process process, UniqueFd output, UniqueFd errors);

  Process process_;
  UniqueFd output_, errors_;
  std::chrono::steady_clock::time_point deadline_;
  std::size_t output_limit_ = 0;
};

// start() and finish().
Result<Captured> run_captured(CaptureOptions options);

struct Pipe {
  UniqueFd read_end, write_end;
};
// Both ends are close-on-exec; a Redirection makes an inherited copy.
Result<Pipe> make_pipe();

}  // namespace assay::base
