// Default learning rate and warm-up, for jobs that set none. docs/train.md gives the sources.
#pragma once

#include <cstdint>

namespace assay::spec {

// Rounds to two significant digits.
double two_digits(double rate);

// The fastest safe increase of the learning rate per step: 3e-4 in 2,000 steps for a width of
// 4,096, which is the fastest that Llama 2 and 3 used, inversely proportional to the width. Adam's
// first steps move all weights by the full rate in one direction, so the loss of a wide and deep
// model jumps if the rate rises faster.
double usual_rise(std::int64_t dim);

// The peak learning rate for AdamW: 3e-4 for a width of 4,096 and 4,194,304 tokens per step, as for
// Llama 3 8B; inversely proportional to the width, and proportional to the square root of the
// tokens. Rounded to two digits, at most 0.003.
double usual_learning_rate(std::int64_t dim, std::int64_t tokens_per_step);

// The steps needed to reach `rate` at that rise, but at least the smaller of a tenth of the steps
// and 2,000, and at most a third of the steps. A run too short for that gets the rate that it can
// reach.
std::int64_t usual_warmup(std::int64_t dim, double rate, std::int64_t steps);

}  // namespace assay::spec
