// What is known in closed form. From a checkpoint on, a turn of s = interval + checkpoint is done
// when s seconds pass without a failure; a failure costs what has passed, the outage, and a restart
// before the next try. With exponential failures of mean M that takes on average
//   (M + outage) e^(restart/M) (e^(s/M) - 1).
#include "plan/failures/failures.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "plan/failures/turns.h"

namespace assay::plan {
namespace {

using base::Seconds;

constexpr double kHopelessExponent = 18.4;  // e^-18.4 is 10^-8

bool is_duration(Seconds s) {
  return std::isfinite(s.count()) && s.count() >= 0;
}

base::Result<void> need_duration(const char* what, Seconds s) {
  if (is_duration(s)) return {};
  return base::fail(base::usage_error(what, fmt::format("{} s is not a duration", s.count())));
}

}  // namespace

base::Result<void> check(const Resilience& r) {
  ASSAY_TRY_VOID(need_duration("checkpoint time", r.checkpoint));
  ASSAY_TRY_VOID(need_duration("restart time", r.restart));
  ASSAY_TRY_VOID(need_duration("outage", r.outage));
  if (!(r.mtbf.count() > 0)) {
    return base::fail(base::usage_error("mean time between failures",
                                        fmt::format("{} s; it must be more", r.mtbf.count())));
  }
  if (!is_duration(r.interval) || r.interval.count() == 0) {
    return base::fail(base::usage_error(
        "checkpoint interval", fmt::format("{} s of work between checkpoints", r.interval.count()),
        "set it; one step is the least"));
  }
  if ((r.restart + r.interval + r.checkpoint) / r.mtbf > kHopelessExponent) {
    return base::fail(base::usage_error(
        "checkpoint interval",
        fmt::format("with a failure every {}, no attempt lives to its first checkpoint",
                    base::to_text(r.mtbf)),
        "save more often, or use fewer machines"));
  }
  return {};
}

Seconds gang_mtbf(Seconds unit_mtbf, std::int64_t units) {
  return unit_mtbf / static_cast<double>(units);
}

Seconds unit_mtbf(std::int64_t units, Seconds observed, std::int64_t interruptions) {
  if (interruptions <= 0) return Seconds(std::numeric_limits<double>::infinity());
  return observed * (static_cast<double>(units) / static_cast<double>(interruptions));
}

Seconds either_mtbf(Seconds a, Seconds b) {
  return Seconds(1 / (1 / a.count() + 1 / b.count()));
}

Seconds young_interval(Seconds checkpoint, Seconds mtbf) {
  if (checkpoint.count() == 0) return Seconds(0);
  return Seconds(std::sqrt(2 * checkpoint.count() * mtbf.count()));
}

// Where the useful fraction is flat: x = 1 - e^-(x + c), in units of the mtbf. The difference of
// both sides is convex and the solution below 1, so that Newton's steps come down to it.
Seconds best_interval(Seconds checkpoint, Seconds mtbf) {
  if (checkpoint.count() == 0) return Seconds(0);
  if (std::isinf(mtbf.count())) return mtbf;
  const double c = checkpoint / mtbf;
  double x = 1;
  for (int i = 0; i < 60; ++i) {
    const double value = x + std::expm1(-(x + c));
    const double slope = 1 - std::exp(-(x + c));
    const double next = x - value / slope;
    if (std::abs(next - x) <= 1e-15 * x) break;
    x = next;
  }
  return x * mtbf;
}

double useful_fraction(const Resilience& r) {
  const double turn = (r.interval + r.checkpoint).count();
  if (std::isinf(r.mtbf.count())) return r.interval.count() / turn;
  return r.interval.count() / mean_turn(r, turn);
}

Seconds expected_time(const Resilience& r, Seconds work) {
  const Turns turns = turns_of(r, work);
  if (turns.count == 0) return Seconds(0);
  if (std::isinf(r.mtbf.count())) return Seconds(r.restart.count() + turns.undisturbed);
  const double first = turns.count > 1 ? turns.turn : turns.last;
  // The first turn begins with a restart, as after a failure that cost nothing.
  double sum = mean_retried_turn(r, first);
  if (turns.count > 1)
    sum += (turns.count - 2) * mean_turn(r, turns.turn) + mean_turn(r, turns.last);
  return Seconds(sum);
}

// Failures come at their rate while something runs; outages are when nothing does.
double expected_failures(const Resilience& r, Seconds work) {
  if (std::isinf(r.mtbf.count())) return 0;
  return expected_time(r, work) / (r.mtbf + r.outage);
}

}  // namespace assay::plan
