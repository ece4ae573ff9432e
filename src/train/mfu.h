// Model flops utilisation under the two definitions in use. They differ in whether the embedding
// counts; neither halves attention for being causal. Systems are compared by tokens per second.
#pragma once

#include "spec/model.h"

namespace assay::train {

struct FlopsPerToken {
  double with_embedding = 0;     // 6 N + 12 L D S, N all parameters
  double without_embedding = 0;  // 6 N + 12 L D S, N those that multiply activations
};

FlopsPerToken flops_per_token(const spec::ModelSpec& model, std::int64_t sequence);

}  // namespace assay::train
