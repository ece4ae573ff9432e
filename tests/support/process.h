// Runs a program to its end and keeps what it printed. For tests of the command line.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::support {

struct Outcome {
  int exit_code = -1;  // 128 + signal when it was killed by one
  std::string out;
  std::string err;
};

struct Invocation {
  std::vector<std::string> arguments;  // the program first
  std::string input = {};
  std::filesystem::path directory = {};  // working directory; empty: this one's
};

// The command-line program under test: ASSAY_PROGRAM of the environment, which ctest sets.
const std::string& program();
// Whether that is the program's twin with sanitizers, which is much slower.
bool program_is_checked();

// Ends the program with SIGKILL after a minute, so that a hang is a failure and not a hang.
Outcome run(const Invocation& invocation);

}  // namespace assay::support
