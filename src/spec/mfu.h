// Model flops utilisation under the two definitions in use. They differ in whether the embedding
// counts; neither halves attention for being causal. Of a mixture, only what a token uses counts.
// Systems are compared by tokens per second.
#pragma once

#include <cstdint>

#include "spec/model.h"

namespace assay::spec {

struct FlopsPerToken {
  double with_embedding = 0;     // 6 N + 12 L D S, N all parameters
  double without_embedding = 0;  // 6 N + 12 L D S, N those that multiply activations
};

FlopsPerToken flops_per_token(const ModelSpec& model, std::int64_t sequence);

}  // namespace assay::spec
