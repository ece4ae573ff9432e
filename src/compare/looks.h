// Who looks at the estimate and goes on until they like it has decided it themselves: with a look
// after every few pairs, one experiment of five without an effect shows one. So a verdict at the
// end that was planned may err as often as was said, and all verdicts after it together a quarter
// as often.
#pragma once

#include <span>

#include "compare/records.h"

namespace assay::compare {

// What a look at all that is measured now would be. With no run since the last look it is that one
// again, if it had a verdict.
Look look_at(const Measured& measured, Stop stop, std::int64_t pairs);

// Of differences, with `share` of the errors that `alpha` allows.
Verdict verdict_after(std::span<const double> differences, double alpha, double share,
                      const Judgement& judgement);

}  // namespace assay::compare
