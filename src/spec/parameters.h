// The parameters of a model, group by group: what is counted, sharded, optimised and sent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "spec/model.h"

namespace assay::spec {

// nanochat's gate that mixes value embeddings in reads this many channels of the residual stream.
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
  bool expert = false;     // one per expert: a token uses only some

  [[nodiscard]] std::int64_t elements_each() const { return rows * cols; }
  [[nodiscard]] std::int64_t parameters() const { return elements_each() * count; }
};

struct Parameters {
  std::vector<ParameterGroup> groups;
  std::int64_t total = 0;
  std::int64_t active = 0;  // used for one token: all but the experts it is not sent to
  std::int64_t matmul = 0;  // of `total`: those that multiply activations (a tied head included)
};

// Fails only when the counts do not fit 64 bits.
base::Result<Parameters> count_parameters(const ModelSpec& model);

// The same for a model that went through rules.cc, where counting it is one of the rules.
Parameters parameters_of(const ModelSpec& model);

// Flops of a token under the two definitions of model flops utilisation in use. They differ in
// whether the embedding counts; neither halves attention for being causal. Of a mixture, only what
// a token uses counts.
struct FlopsPerToken {
  double with_embedding = 0;     // 6 N + 12 L D S, N all parameters
  double without_embedding = 0;  // 6 N + 12 L D S, N those that multiply activations
};

FlopsPerToken flops_per_token(const ModelSpec& model, std::int64_t sequence);

// [{"name": …, "shape": […], "tensors": …, "parameters": …}, …]
base::Json to_json(const std::vector<ParameterGroup>& groups);

}  // namespace assay::spec
