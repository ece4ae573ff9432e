// Findings: everything that an experiment says, made from what was measured and nothing else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/effect.h"
#include "compare/pairs.h"

namespace assay::compare {

// A quantity's difference to the baseline in its own unit, with an interval.
struct Shift {
  double baseline = 0;  // median
  Estimate estimate;    // of arm - baseline
};

struct Comparison {
  std::size_t arm = 1;
  Effect effect;
  Verdict verdict = Verdict::kInconclusive;
  Estimate judged;  // what the verdict is read off: wider than the effect's after looks
  // Step by step, where steps are known. `effect` is of steady steps then.
  std::int64_t steps = 0;            // in common, over all pairs
  std::int64_t unmatched = 0;        // pairs without one, which are left out
  std::optional<Effect> whole_runs;  // wall time
  std::optional<Shift> startup_s;    // before the first step
  std::optional<Shift> after_s;      // after the last
  std::optional<Shift> outside_s;    // wall time less steps
  // Of quality, where it is asked about:
  std::optional<Shift> quality;
  std::optional<bool> quality_within_noise;  // no further off than the second baseline is
};

struct ArmSummary {
  std::size_t arm = 0;
  std::int64_t runs = 0;
  double median = 0;
  double low = 0;  // least and most
  double high = 0;
  double deviation_pct = 0;  // robust, of one run
  double wall_s = 0;         // median
  double cpu_s = 0;
  std::int64_t least_steps = 0;  // found in a run
  std::int64_t most_steps = 0;
};

struct Findings {
  Blocks blocks;
  std::vector<ArmSummary> arms;
  std::vector<Comparison> comparisons;        // arm 1, 2, …
  std::optional<Comparison> second_baseline;  // A' against A
  std::optional<double> noise_floor_pct;      // how far from 0 that interval reaches
  std::int64_t marked = 0;                    // blocks in which the host misbehaved
  std::vector<std::string> remarks;           // what a sceptic should know
  Verdict verdict = Verdict::kInconclusive;   // the worst of all
  std::size_t decided_by = 0;                 // the place of the comparison that it is of

  // There is one as long as there are two arms.
  [[nodiscard]] const Comparison& deciding() const { return comparisons[decided_by]; }
};

// `share` of the errors that are allowed may be spent on this verdict: 1 at the end that was
// planned, less after looks (Look::share), and 0 where it was cut off by hand, which makes every
// verdict inconclusive: who watches the estimate and stops when they like it has decided it
// themselves.
Findings findings_of(const Measured& measured, double share);

// "1 block", "2 blocks"
std::string counted(std::int64_t count, std::string_view what);

// The comparison whose interval is widest: what stopping waits for.
Estimate widest_estimate(const Measured& measured);

}  // namespace assay::compare
