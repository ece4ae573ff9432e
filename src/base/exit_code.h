// What the program says to the shell. Every verb ends with one of these; a wrapped command's own
// exit code is passed through instead.
#pragma once

namespace assay::base {

enum class ExitCode {
  kYes = 0,           // done, or the answer is yes
  kNo = 1,            // failed, or the answer is no
  kInconclusive = 2,  // measured, but the evidence does not decide
  kUnfit = 3,         // the environment cannot do this: missing package, full disk, newer database
  kUsage = 64,        // the input is wrong: arguments, spec files
};

}  // namespace assay::base
