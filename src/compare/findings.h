// Findings: the result of an experiment, computed only from the journal's records.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/effect.h"
#include "compare/pairs.h"
#include "compare/ranking.h"

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
  Estimate judged;  // used for the verdict; wider than the effect's after interim analyses
  // With steps; `effect` is then that of steady steps:
  std::int64_t steps = 0;            // common to both arms, over all pairs
  std::int64_t unmatched = 0;        // pairs without a common step, which are left out
  std::optional<Effect> whole_runs;  // wall time
  std::optional<Shift> startup_s;    // before the first step
  std::optional<Shift> after_s;      // after the last
  std::optional<Shift> outside_s;    // wall time minus steps
  // With --quality:
  std::optional<Shift> quality;
  std::optional<bool> quality_within_noise;  // deviates no further than the second baseline
};

struct ArmSummary {
  std::size_t arm = 0;
  std::int64_t runs = 0;
  double median = 0;
  double low = 0;  // smallest and largest; like all that follow, 0 without runs
  double high = 0;
  double deviation_pct = 0;  // robust, between single runs
  double wall_s = 0;         // median
  double cpu_s = 0;
  std::int64_t least_steps = 0;  // per run
  std::int64_t most_steps = 0;
};

struct Findings {
  Blocks blocks;
  std::vector<ArmSummary> arms;
  std::vector<Comparison> comparisons;        // arm 1, 2, …
  Ranking ranking;                            // of three or more arms
  std::optional<Comparison> second_baseline;  // A' against A
  std::optional<double> noise_floor_pct;      // the largest distance of its interval from 0
  std::int64_t marked = 0;                    // blocks with host problems
  std::vector<std::string> warnings;
  IntervalVerdict verdict = IntervalVerdict::kInconclusive;  // the worst of all
  std::size_t decided_by = 0;  // index of the comparison with the worst verdict

  [[nodiscard]] const Comparison& deciding() const { return comparisons[decided_by]; }
};

// `alpha_share`: the share of alpha that may be spent on the verdict
// (InterimAnalysis::alpha_share): 1 at the planned end, less after other interim analyses, 0 after
// an interruption. Every verdict is then inconclusive, because a person who stops on seeing the
// estimate has chosen it.
Findings findings_of(const Measured& measured, double alpha_share);

// What could make the findings wrong, a sentence each (findings_warnings.cc).
std::vector<std::string> warnings_about(const Measured& measured, double alpha_share,
                                        const Findings& findings);

// The arms of a scan that may be the best: the one with the best estimate, then those that cannot
// be told from it. One arm only where it differs from every other one, with the confidence of
// Experiment::alpha(); so of equal arms one is called the best in at most 5 % of experiments.
std::vector<std::size_t> best_arms(const Experiment& experiment, const Findings& findings);
// What an experiment that judges nothing is about: the best value of a scan, the order of three or
// more arms. Empty for two.
std::string headline(const Experiment& experiment, const Findings& findings);
// "fastest: N=4, 1.92 × faster than N=1", "fastest: N=4 or N=8, not distinguishable: …".
std::string best_value_text(const Experiment& experiment, const Findings& findings);

// The estimate with the widest interval, for which the stopping rule waits.
Estimate widest_estimate(const Measured& measured);

}  // namespace assay::compare
