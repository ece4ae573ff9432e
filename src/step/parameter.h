// Parameter: a weight of the model as the trainer stores it. Weights that multiply the same
// activations form one matrix (q, k, v; gate, up).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spec/job.h"
#include "step/op.h"

namespace assay::step {

// How the optimizer treats a parameter.
enum class UpdateRule : std::uint8_t {
  kMuon,       // matrices of the blocks, where the optimizer is Muon
  kDecayed,    // other matrices and embeddings: AdamW with weight decay
  kUndecayed,  // norms and biases: AdamW without
  kBalanced,   // biases of routers: a fixed step towards an even load
};

enum class Init : std::uint8_t { kNormal, kOnes, kZeros };

// The rows and columns that a tensor-parallel rank has of the model's parameter: concatenated
// ranges of rows, or a range of columns; or all of it.
struct Slice {
  std::int64_t whole_rows = 1;
  std::int64_t whole_cols = 0;
  std::vector<Range> rows;  // in the model's numbering, in the order in which the rank stores them
  Range cols;
  bool cut = false;  // tensor-parallel ranks have different parts

  // A range of the rank's elements as runs of contiguous elements of the model's parameter, at
  // equal distances: as few as possible, in order.
  struct Runs {
    std::int64_t first = 0;  // index in the model's parameter
    std::int64_t count = 0;  // total number of elements
    std::int64_t run = 0;    // contiguous elements
    std::int64_t apart = 0;  // distance between the starts of two runs
  };
  [[nodiscard]] std::vector<Runs> runs_of(const Range& elements) const;
};

struct Parameter {
  std::string name;  // "layers.3.qkv", "layers.3.qkv_bias", "embedding"
  ModelPart part = ModelPart::kQkv;
  std::int32_t layer = kNoLayer;
  UpdateRule rule = UpdateRule::kDecayed;
  std::int64_t rows = 1;
  std::int64_t cols = 0;
  std::int64_t padding_rows = 0;  // zeros after the last row, for matrix products of a round size
  Slice slice;                    // which part of the model's parameter this is
  // Every tensor-parallel rank has all of it and computes a part of its gradient; the parts are
  // summed.
  bool partial_gradient = false;
  bool of_experts = false;  // of all experts of a mixture, or of those that this rank has
  Init init = Init::kNormal;
  double init_std = 0;
  std::int32_t unit = -1;   // see units.h
  std::int64_t offset = 0;  // elements into its unit

  [[nodiscard]] std::int64_t elements() const { return rows * cols; }
  [[nodiscard]] bool is_vector() const { return init != Init::kNormal; }
  // Of the model's parameter, of which this may be a part.
  [[nodiscard]] std::int64_t whole_rows() const { return is_vector() ? 1 : slice.whole_rows; }
  [[nodiscard]] std::int64_t whole_cols() const {
    return is_vector() ? slice.whole_rows : slice.whole_cols;
  }
};

// Standard deviation of initial matrices and tables, unless another is chosen.
inline constexpr double kInitStd = 0.02;

// All parameters of a model, in its order; of each the part that this rank has along the tensor and
// expert axes.
std::vector<Parameter> list_parameters(const spec::ModelSpec& model, spec::Optimizer optimizer,
                                       const Layout& layout = {});

// Only those of these layers, and those before and after all layers.
std::vector<Parameter> list_parameters(const spec::ModelSpec& model, spec::Optimizer optimizer,
                                       const Layout& layout, std::span<const std::int32_t> layers);

}  // namespace assay::step
