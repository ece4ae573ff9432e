// run_experiment(): runs blocks until the stopping rule is met, the user interrupts or an arm
// fails. In every case all completed runs are in the journal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "compare/host.h"
#include "compare/journal.h"
#include "compare/timed_process.h"

namespace assay::compare {

struct ExperimentProgress {
  std::int64_t blocks = 0;
  Estimate estimate;  // of the comparison with the widest interval
  base::Seconds elapsed;
  std::optional<base::Seconds> left;
};
using ProgressCallback = std::function<void(const ExperimentProgress&)>;

struct ExperimentEnd {
  StopReason stop = StopReason::kNo;        // kNo: it was interrupted
  Estimate estimate;                        // of the comparison with the widest interval
  std::optional<base::Error> failure = {};  // with kFailed: which run, and why
};

// Fails if an arm's program does not exist, as far as that is known without running it: commands
// that need a shell, and programs that a hook may create, are not checked.
base::Result<void> check_programs(const Experiment& experiment);

// Continues after the runs in `measured` and adds to them. A failing arm is a regular end; an error
// is a problem of this program, such as a full disk.
base::Result<ExperimentEnd> run_experiment(Measured& measured, Journal& journal, Host& host,
                                           Interrupts& interrupts,
                                           const ProgressCallback& callback);

}  // namespace assay::compare
