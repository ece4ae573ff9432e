// What a job that does not say how fast to learn should use. docs/train.md gives the sources.
#pragma once

#include <cstdint>

namespace assay::spec {

// Rounded to two digits.
double two_digits(double rate);

// How fast the rate may rise: 3e-4 in 2,000 steps for a width of 4,096, as Llama 2 and 3 did at the
// fastest, inversely with the width. Adam's first steps move all weights by the whole rate and in
// one direction, so that a wide and deep model's loss jumps where the rate rises faster.
double usual_rise(std::int64_t dim);

// At its highest, for AdamW: 3e-4 for a width of 4,096 and 4,194,304 tokens per step, as Llama 3 8B
// was trained; inversely with the width, and with the square root of the tokens. Two digits of it,
// at most 0.003.
double usual_learning_rate(std::int64_t dim, std::int64_t tokens_per_step);

// As many steps as `rate` takes at that rise, but at least a tenth of the steps or 2,000, and at
// most a third of them. A run too short for that gets the rate that it can reach.
std::int64_t usual_warmup(std::int64_t dim, double rate, std::int64_t steps);

}  // namespace assay::spec
