// Parameter: a weight of the model as the trainer keeps it. Weights that multiply the same
// activations are one matrix (q, k, v; gate, up).
#pragma once

#include <cstdint>
#include <span>
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
  kBalanced,   // biases of routers: a fixed step towards an even load
};

enum class Init : std::uint8_t { kNormal, kOnes, kZeros };

// The model's rows and columns that a rank has of a parameter, where tensor-parallel ranks have a
// part each: some ranges of rows, one after the other, or a range of columns; or all of it.
struct Slice {
  std::int64_t whole_rows = 1;
  std::int64_t whole_cols = 0;
  std::vector<Range> rows;  // of the model's, in the order in which the rank has them
  Range cols;
  bool cut = false;  // tensor-parallel ranks have different parts, not all of it each

  // Elements [first, first + count) of what the rank has, as runs of neighbouring elements of the
  // model's parameter, at equal distances: as few as possible, in order.
  struct Runs {
    std::int64_t first = 0;  // of the model's
    std::int64_t count = 0;  // elements in all
    std::int64_t run = 0;    // elements side by side
    std::int64_t apart = 0;  // from one run's begin to the next one's
  };
  [[nodiscard]] std::vector<Runs> runs_of(const Range& elements) const;
};

struct Parameter {
  std::string name;  // "layers.3.qkv", "layers.3.qkv_bias", "embedding"
  Part part = Part::kQkv;
  std::int32_t layer = kNoLayer;
  Group group = Group::kDecayed;
  std::int64_t rows = 1;
  std::int64_t cols = 0;
  std::int64_t padding_rows = 0;  // zeros after the last row, for matrix products of a round size
  Slice slice;                    // what rows x cols are of the model's parameter
  // Every tensor-parallel rank has all of it and makes a part of its gradient: they are added up.
  bool partial_gradient = false;
  bool of_experts = false;  // of all of a mixture, or of those that this rank has
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

// All of a model's, in its order, as far as one of `layout`'s ranks along tensor and expert has
// them.
std::vector<Parameter> list_parameters(const spec::ModelSpec& model, spec::Optimizer optimizer,
                                       const Layout& layout = {});

// Of these layers alone, and what is before and after all layers.
std::vector<Parameter> list_parameters(const spec::ModelSpec& model, spec::Optimizer optimizer,
                                       const Layout& layout, std::span<const std::int32_t> layers);

}  // namespace assay::step
