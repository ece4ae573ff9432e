// Runs a program and captures its output. For tests of the command line.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::support {

struct ProcessResult {
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
// Whether it is from a sanitized build tree (make asan, make tsan), where it is much slower.
bool program_is_sanitized();

// Kills the program after five minutes, so that a hang is a failed test and load is not.
ProcessResult run(const Invocation& invocation);

}  // namespace assay::support
