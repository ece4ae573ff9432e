// Failures: how often one of a gang of machines fails, what that costs with checkpoints, and how
// long a run takes. Times between failures are exponential: they have no memory, and rates add up.
//
//   const Seconds mtbf = gang_mtbf(unit_mtbf(16'384, days(54), 419), gpus);
//   Resilience r{.mtbf = mtbf, .checkpoint = Seconds(5), .restart = Seconds(300)};
//   r.interval = best_interval(r.checkpoint, r.mtbf);
//   ASSAY_TRY(const Completion c, completion(r, work));    // c.expected, c.p50, c.p90
//
// An attempt begins with a restart (loading, compiling, connecting), then segments of `interval`
// useful work and a checkpoint follow, until the work is done and saved or something fails. What
// was not saved is lost. The first attempt has its restart too.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/units.h"

namespace assay::plan {

struct Resilience {
  base::Seconds mtbf;        // of the gang, whose members stop together; infinite: nothing fails
  base::Seconds checkpoint;  // how long training pauses for each checkpoint
  base::Seconds restart;     // from the beginning of an attempt to its first useful step
  base::Seconds outage;      // from a failure to the next attempt; 0 if spare machines are ready
  base::Seconds interval;    // useful work from one checkpoint to the next
};

// Everything must be finite and not negative, except that mtbf may be infinite; mtbf and interval
// must not be zero. Also a usage error if an attempt would reach its first checkpoint less than
// once in 10^8.
base::Result<void> check(const Resilience& r);

// Mean time between failures of `units` machines (or devices), any of which stops all.
base::Seconds gang_mtbf(base::Seconds unit_mtbf, std::int64_t units);
// Of one unit, if `units` of them had `interruptions` in the observed time.
base::Seconds unit_mtbf(std::int64_t units, base::Seconds observed, std::int64_t interruptions);
// When a gang stops for either of two reasons.
base::Seconds either_mtbf(base::Seconds a, base::Seconds b);

// Useful work from checkpoint to checkpoint that minimizes lost time: the exact optimum in this
// model, of which Young's sqrt(2 C M) is the limit for rare failures. 0 when checkpoints cost
// nothing: then take a step. Infinite when nothing fails.
base::Seconds best_interval(base::Seconds checkpoint, base::Seconds mtbf);

// The part of a long run's time that ends up in the model, 0 to 1: with q = e^-(interval +
// checkpoint)/mtbf, e^-restart/mtbf q/(1-q) interval/(mtbf + outage). For an r that passed check.
double useful_fraction(const Resilience& r);

// Mean time to do `work`, exactly. For an r that passed check.
base::Seconds expected_time(const Resilience& r, base::Seconds work);
// Mean number of failures on the way.
double expected_failures(const Resilience& r, base::Seconds work);

// The same seed gives the same figures, on every machine.
struct Sampling {
  std::uint64_t seed = 1;
  std::int64_t trials = 2000;  // with 2,000, a P90 is between P89.3 and P90.7 in two of three cases
};
base::Result<void> check(const Sampling& sampling);  // 1 to 1,000,000 trials

struct Completion {
  base::Seconds expected;
  base::Seconds p50;  // half of all runs are done by then
  base::Seconds p90;
  double failures = 0;         // expected
  double useful_fraction = 0;  // work / expected
};

// Time of a run that does `work` of useful time, simulated `trials` times; by the central limit
// where hundreds of failures make that exact enough. Takes milliseconds at most.
base::Result<Completion> completion(const Resilience& r, base::Seconds work,
                                    const Sampling& sampling = {});

}  // namespace assay::plan
