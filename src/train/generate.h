// Samples from a model: the forward pass of a step, one new token at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "train/backend.h"

namespace assay::train {

struct SamplingOptions {
  std::int64_t tokens = 0;
  double temperature = 1;  // 0: always the most likely token
  // Nucleus sampling: draws from the most likely tokens that together have this probability.
  double top_p = 1;
  std::uint64_t seed = 1;
};

// Continues `tokens`. The program must have purpose kLogits, one sequence, and its weights loaded.
// `on_token` gets every new token and returns false to stop. Only the last `sequence` tokens are
// used as context.
base::Result<void> generate(Backend& backend, const step::Program& program,
                            std::vector<std::int32_t> tokens, const SamplingOptions& options,
                            const std::function<bool(std::int32_t)>& on_token);

// Samples a token with the options' temperature and top_p. `random` is uniform over all 32-bit
// values.
std::int32_t choose(std::vector<float>& logits, const SamplingOptions& options,
                    std::uint32_t random);

}  // namespace assay::train
