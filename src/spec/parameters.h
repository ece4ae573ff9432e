// The parameters of a model by group: the basis for counting, sharding, optimising and
// communicating.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "spec/model.h"

namespace assay::spec {

// nanochat's gate for value embeddings reads this many channels of the residual stream.
inline constexpr std::int64_t kValueGateChannels = 32;

enum class Role {
  kEmbedding,  // looked up by token or position
  kMatrix,     // multiplies activations inside the blocks
  kHead,       // multiplies activations to make logits
  kVector,     // norms, biases, scales
};

struct ParameterGroup {
  std::string name;
  Role role = Role::kMatrix;
  std::int64_t rows = 1;  // 1 for vectors
  std::int64_t cols = 0;
  std::int64_t count = 0;  // tensors of this shape in the model
  bool expert = false;     // one per expert; a token uses only some

  [[nodiscard]] std::int64_t elements_each() const { return rows * cols; }
  [[nodiscard]] std::int64_t parameters() const { return elements_each() * count; }
};

struct Parameters {
  std::vector<ParameterGroup> groups;
  std::int64_t total = 0;
  std::int64_t active = 0;  // used for one token: without the experts that it is not routed to
  std::int64_t matmul = 0;  // part of `total` that multiplies activations (including a tied head)
};

// Fails only if the counts do not fit into 64 bits.
base::Result<Parameters> count_parameters(const ModelSpec& model);

// The same for a model that has passed rules.cc, which includes counting.
Parameters parameters_of(const ModelSpec& model);

// Flops per token under the two common definitions of model flops utilisation. They differ in
// whether the embedding counts; neither halves attention for being causal. For mixtures, only what
// a token uses counts.
struct FlopsPerToken {
  double with_embedding = 0;     // 6 N + 12 L D S, N all parameters
  double without_embedding = 0;  // 6 N + 12 L D S, N those that multiply activations
};

FlopsPerToken flops_per_token(const ModelSpec& model, std::int64_t sequence);

// [{"name": …, "shape": […], "tensors": …, "parameters": …}, …]
base::Json to_json(const std::vector<ParameterGroup>& groups);

}  // namespace assay::spec
