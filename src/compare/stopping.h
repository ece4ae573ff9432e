// When an experiment stops, and how certain a verdict must be after results have been seen.
//
// - It stops when its interval is narrow enough, after a time or a number of pairs, but never
//   because of where the interval lies: stopping as soon as an effect is significant gives a false
//   alarm in one experiment of three.
// - Every report of the estimate is an interim analysis: a person who sees it can continue until
//   the result is the desired one. The planned end may spend all of the allowed error (alpha); all
//   later verdicts together spend at most another quarter of it (alpha spending).
#pragma once

#include <optional>
#include <span>

#include "base/units.h"
#include "compare/records.h"

namespace assay::compare {

StopReason stop_after(const StopRule& rule, const Estimate& estimate, base::Seconds elapsed);

// Time until the rule is met if noise and block times stay the same; nothing if unknown.
std::optional<base::Seconds> time_left(const StopRule& rule, const Estimate& estimate,
                                       base::Seconds elapsed, base::Seconds per_block);

// The interim analysis of everything measured so far. If no run was added since the last one and
// that one had a verdict, it is returned again.
InterimAnalysis interim_analysis(const Measured& measured, StopReason stop, std::int64_t pairs);

// The verdict if `alpha_share` of `alpha` may be spent on it.
IntervalVerdict verdict_spending(std::span<const double> differences, double alpha,
                                 double alpha_share, const Judgement& judgement);

}  // namespace assay::compare
