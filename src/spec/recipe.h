// What a job that does not say how fast to learn should use. docs/train.md gives the sources.
#pragma once

#include <cstdint>

namespace assay::spec {

// At its highest, for AdamW: 3e-4 for a width of 4,096 and 4,194,304 tokens per step, as Llama 3 8B
// was trained; inversely with the width, and with the square root of the tokens. Two digits of it,
// at most 0.003.
double usual_learning_rate(std::int64_t dim, std::int64_t tokens_per_step);

// A tenth of the steps, at most 2,000 and at least 1.
std::int64_t usual_warmup(std::int64_t steps);

}  // namespace assay::spec
