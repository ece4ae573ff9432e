// MetricReader: reads a run's values (metric, steps, quality) from its output, its duration, or the
// project's store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compare/metric.h"
#include "compare/records.h"
#include "compare/timed_process.h"
#include "store/store.h"

namespace assay::compare {

// Metrics that runs recorded in the project's store (stored:NAME). Commands that record a run
// (`assay run`, `assay train`) add one.
class StoredMetrics {
 public:
  // Opens the store at or above the folder.
  static base::Result<StoredMetrics> open(const std::filesystem::path& directory);

  // Runs recorded after this call belong to the next run of the experiment.
  base::Result<void> remember();
  // The series, by step, of the newest run since remember(); fails if there is no such run or
  // series.
  base::Result<std::vector<StepValue>> steps(const std::string& name);
  // When that run's steps ended, in seconds since 1970; empty if it did not record that.
  base::Result<std::vector<StepValue>> step_ends();

 private:
  explicit StoredMetrics(store::Store store) : store_(std::move(store)) {}
  base::Result<std::int64_t> newest();

  store::Store store_;
  std::int64_t before_ = 0;
};

bool reads_output(const Experiment& experiment);

class MetricReader {
 public:
  // `experiment` and `interrupts` must outlive it. Fails if a store is needed and missing.
  static base::Result<MetricReader> of(const Experiment& experiment, const Interrupts& interrupts);

  // Call before a run: runs recorded in the store after this belong to it.
  base::Result<void> begin();
  // Fills in `record` after a run. `started_ns` is wall-clock time.
  base::Result<void> read(const ProcessOutcome& outcome, const ProcessRequest& request,
                          std::int64_t started_ns, ArmRun& record);

 private:
  struct OutputTexts {
    std::string out;
    std::string err;
  };

  MetricReader(const Experiment& experiment, const Interrupts& interrupts)
      : experiment_(&experiment), interrupts_(&interrupts) {}
  base::Result<void> read_steps(const OutputTexts& texts, const ProcessOutcome& outcome,
                                std::int64_t started_ns, ArmRun& record);
  base::Result<void> read_stored_steps(std::int64_t started_ns, ArmRun& record);
  base::Result<std::vector<StepValue>> stored_above_zero(const ComparedMetric& metric);
  base::Result<double> value_of(const ComparedMetric& metric, const OutputTexts& texts,
                                const ArmRun& record);
  base::Result<double> quality_of(const ComparedMetric& metric, const OutputTexts& texts,
                                  const ArmRun& record);
  [[nodiscard]] SearchLimit search_limit() const;

  const Experiment* experiment_;
  const Interrupts* interrupts_;
  std::optional<StoredMetrics> store_;
};

// When a run's first and last step ended, in seconds from its start.
struct StepEnds {
  double first = 0;
  double last = 0;
};
// Sets the run's time before the first and after the last step. Leaves them unset if output arrived
// too late to tell, because the program buffered it.
void split_time(double step_seconds, const StepEnds& ends, ArmRun& run);
void split_time(double step_seconds, std::span<const OutputMoment> moments, ArmRun& run);

// `block` has the runs of one block in any order. Fails if an arm has no step in common with the
// baseline: such an experiment would never have a pair.
base::Result<void> check_common_steps(const Experiment& experiment, std::span<const ArmRun> block);

}  // namespace assay::compare
