// Reading: from what a run left behind to its numbers: in its output, in the store, or in how long
// it took.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "compare/process.h"
#include "compare/records.h"
#include "compare/stored.h"

namespace assay::compare {

bool reads_output(const Experiment& experiment);

class Reading {
 public:
  // The experiment and the interrupts must outlive it. An error where a store is missing.
  static base::Result<Reading> of(const Experiment& experiment, const Interrupts& interrupts);

  // What is stored from now on is the next run's.
  base::Result<void> begin();
  // Fills in what the run's outcome and output say. `started_ns` by the wall clock.
  base::Result<void> read(const ProcessOutcome& outcome, const ProcessRequest& request,
                          std::int64_t started_ns, ArmRun& record);

 private:
  // What a run printed, as far as it is asked about.
  struct Texts {
    std::string out;
    std::string err;
  };

  Reading(const Experiment& experiment, const Interrupts& interrupts)
      : experiment_(&experiment), interrupts_(&interrupts) {}
  base::Result<void> read_steps(const Texts& texts, const ProcessOutcome& outcome,
                                std::int64_t started_ns, ArmRun& record);
  base::Result<void> read_stored_steps(std::int64_t started_ns, ArmRun& record);
  base::Result<std::vector<StepValue>> stored_above_zero(const Metric& metric);
  base::Result<double> value_of(const Metric& metric, const Texts& texts, const ArmRun& record);
  base::Result<double> quality_of(const Metric& metric, const Texts& texts, const ArmRun& record);
  [[nodiscard]] Patience patience() const;

  const Experiment* experiment_;
  const Interrupts* interrupts_;
  std::optional<StoredMetrics> store_;
};

// Runs of one block, by whatever order: an error where an arm has no step in common with the
// baseline, so that no pair could ever be made.
base::Result<void> check_common_steps(const Experiment& experiment, std::span<const ArmRun> block);

}  // namespace assay::compare
