// Spot machines: cheaper, but preempted. Cost and time of a run, and the chance that it misses its
// deadline, by policy.
//
//   SpotRun run{.work = hours(40), .deadline = hours(60), .resilience = r, .market = market};
//   ASSAY_TRY(const SpotOutcome o, spot_outcome(run, SpotPolicy::kUniformProgress));
//
// The market does not react to the run: periods with and without spot machines are exponential, and
// a run begins at a random moment. What is rented is paid for while it is held: on demand also
// during outages of hardware, spot machines until they are preempted. Waiting for them costs time
// only.
#pragma once

#include <optional>

#include "base/money.h"
#include "plan/failures/failures.h"

namespace assay::plan {

enum class SpotPolicy : std::uint8_t {
  kOnDemand,
  kSpot,  // wait for spot machines, whatever the deadline
  // Spot machines where there are any; without them, on demand only while the work done is less
  // than the part of the deadline that has passed (W t / D), and in any case in time to finish on
  // demand. From Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines" (NSDI
  // 2024).
  kUniformProgress,
};

struct SpotMarket {
  base::Money on_demand_per_hour;  // for the whole gang
  base::Money spot_per_hour;       // likewise, in the same currency
  base::Seconds available;         // mean time until one of the gang's spot machines is preempted
  base::Seconds gone;              // mean time until the gang is available again
  base::Seconds notice;            // before preemption; if long enough, a checkpoint is made
  base::Seconds interval;          // work between checkpoints on spot machines
};

struct SpotRun {
  base::Seconds work;                     // useful time
  std::optional<base::Seconds> deadline;  // kUniformProgress needs one
  Resilience resilience;                  // of the hardware; its interval is for on demand
  SpotMarket market;
};

struct SpotOutcome {
  base::Money cost_p50;
  base::Money cost_p90;
  base::Seconds time_p50;
  base::Seconds time_p90;
  double preemptions = 0;  // expected
  double miss_chance = 0;  // of the deadline; 0 without one
};

// A usage error for invalid durations, two currencies, a missing deadline, or a market in which the
// run would hardly ever reach a checkpoint.
base::Result<SpotOutcome> spot_outcome(const SpotRun& run, SpotPolicy policy,
                                       const Sampling& sampling = {});

}  // namespace assay::plan
