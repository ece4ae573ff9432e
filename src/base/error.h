// Error: what failed, on what, and what to do about it. Travels up inside base::Result and is
// printed once, as one line, by main().
#pragma once

#include <string>
#include <string_view>

namespace assay::base {

// The exit code of a verb; a wrapped command's own exit code is passed through instead.
enum class ExitCode {
  kYes = 0,           // done, or the answer is yes
  kNo = 1,            // failed, or the answer is no
  kInconclusive = 2,  // measured, but the evidence does not decide
  kUnfit = 3,         // the environment cannot do this: missing package, full disk, newer database
  kUsage = 64,        // the input is wrong: arguments, spec files
};

struct Error {
  ExitCode code = ExitCode::kNo;
  std::string where;  // what it happened on: "job.toml:12", a path, a device; may be empty
  std::string what;   // what is wrong
  std::string hint;   // what to do; may be empty

  // "where: what; hint" — always one line of printable text under 1000 columns, whatever the parts
  // contain: input that is echoed may be a megabyte.
  [[nodiscard]] std::string line() const;
};

// The input is wrong (exit 64).
Error usage_error(std::string where, std::string what, std::string hint = {});
// The machine or the project directory cannot do this (exit 3).
Error unfit_error(std::string where, std::string what, std::string hint = {});
// It was tried and failed (exit 1).
Error failed_error(std::string where, std::string what, std::string hint = {});
// A system call failed: the code is kUnfit and `what` ends with the text of `errno_value`.
Error system_error(std::string where, std::string_view what, int errno_value,
                   std::string hint = {});

}  // namespace assay::base
