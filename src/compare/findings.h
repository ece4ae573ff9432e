// Findings: the result of an experiment, computed from the journal's records and nothing else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/effect.h"
#include "compare/pairs.h"

namespace assay::compare {

// Difference of a quantity from the baseline, in its own unit, with an interval.
struct Shift {
  double baseline = 0;  // median
  Estimate estimate;    // of arm - baseline
};

struct Comparison {
  std::size_t arm = 1;
  Effect effect;
  IntervalVerdict verdict = IntervalVerdict::kInconclusive;
  Estimate judged;  // what the verdict is read off: wider than the effect's after interim analyses
  // With steps, in which case `effect` is of steady steps:
  std::int64_t steps = 0;            // in common, over all pairs
  std::int64_t unmatched = 0;        // pairs without a common step, which are left out
  std::optional<Effect> whole_runs;  // wall time
  std::optional<Shift> startup_s;    // before the first step
  std::optional<Shift> after_s;      // after the last
  std::optional<Shift> outside_s;    // wall time minus steps
  // With --quality:
  std::optional<Shift> quality;
  std::optional<bool> quality_within_noise;  // no further off than the second baseline
};

struct ArmSummary {
  std::size_t arm = 0;
  std::int64_t runs = 0;
  double median = 0;
  double low = 0;  // least and most; 0 without runs, as all that follow
  double high = 0;
  double deviation_pct = 0;  // robust, of single runs
  double wall_s = 0;         // median
  double cpu_s = 0;
  std::int64_t least_steps = 0;  // per run
  std::int64_t most_steps = 0;
};

struct Findings {
  Blocks blocks;
  std::vector<ArmSummary> arms;
  std::vector<Comparison> comparisons;        // arm 1, 2, …
  std::optional<Comparison> second_baseline;  // A' against A
  std::optional<double> noise_floor_pct;      // how far from 0 its interval reaches
  std::int64_t marked = 0;                    // blocks with problems of the host
  std::vector<std::string> warnings;
  IntervalVerdict verdict = IntervalVerdict::kInconclusive;  // the worst of all
  std::size_t decided_by = 0;  // index of the comparison with that verdict

  [[nodiscard]] const Comparison& deciding() const { return comparisons[decided_by]; }
};

// `alpha_share` of alpha may be spent on the verdict (InterimAnalysis::alpha_share): 1 at the
// planned end, less after other interim analyses, 0 after an interruption, when every verdict is
// inconclusive: a person who stops on seeing the estimate has chosen it.
Findings findings_of(const Measured& measured, double alpha_share);

// "fastest: N=4, 1.92 × faster than N=1", of the arms of a scan.
std::string best_value_text(const Experiment& experiment, const Findings& findings);

// Of the comparison with the widest interval, which the stopping rule waits for.
Estimate widest_estimate(const Measured& measured);

}  // namespace assay::compare
