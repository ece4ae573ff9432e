// Parameter: a weight of the model as the trainer keeps it. Weights that multiply the same
// activations are one matrix (q, k, v; gate, up).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/job.h"
#include "step/op.h"

namespace assay::step {

// How the optimizer treats a parameter.
enum class Group : std::uint8_t {
  kMuon,       // matrices of the blocks, where the optimizer is Muon
  kDecayed,    // other matrices and embeddings: AdamW with weight decay
  kUndecayed,  // norms and biases: AdamW without
};

enum class Init : std::uint8_t { kNormal, kOnes, kZeros };

struct Parameter {
  std::string name;  // "layers.3.qkv", "layers.3.qkv_bias", "embedding"
  Part part = Part::kQkv;
  std::int32_t layer = kNoLayer;
  Group group = Group::kDecayed;
  std::int64_t rows = 1;
  std::int64_t cols = 0;
  std::int64_t padding_rows = 0;  // zeros after the last row, for matrix products of a round size
  Init init = Init::kNormal;
  double init_std = 0;
  std::int32_t unit = -1;   // see units.h
  std::int64_t offset = 0;  // elements into its unit

  [[nodiscard]] std::int64_t elements() const { return rows * cols; }
  [[nodiscard]] bool is_vector() const { return init != Init::kNormal; }
};

// All of a model's, in its order.
std::vector<Parameter> list_parameters(const spec::ModelSpec& model, spec::Optimizer optimizer);

}  // namespace assay::step
