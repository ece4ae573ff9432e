// Letting a model go on with tokens: the forward pass of a step, one new token at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "train/backend.h"

namespace assay::train {

struct GenerateOptions {
  std::int64_t tokens = 0;
  double temperature = 1;  // 0: always the likeliest
  std::uint64_t seed = 1;
};

// The program is of purpose kLogits with one sequence, its weights in place. `told` is given every
// new token; false ends it. What lies further back than the sequence is forgotten.
base::Result<void> generate(Backend& backend, const step::Program& program,
                            std::vector<std::int32_t> tokens, const GenerateOptions& options,
                            const std::function<bool(std::int32_t)>& told);

// One of them, by probability. `word` is uniform.
std::int32_t choose(std::vector<float>& logits, double temperature, std::uint32_t word);

}  // namespace assay::train
