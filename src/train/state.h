// The state of a run as named tensors: the contents of a checkpoint. Names and shapes are those of
// the program's parameters, so a checkpoint can be read by any program of the same model on any
// number of ranks: each rank knows which elements of a tensor it owns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "step/program.h"
#include "train/checkpoint/tensor.h"

namespace assay::train {

// A part of a tensor, and the rank (of all) that saves it.
struct HeldPart {
  std::int64_t rank = 0;
  step::Range elements;
};

struct StateTensor {
  std::string name;  // "layers.3.qkv", "first_moment/layers.3.qkv"
  step::Dtype type = step::Dtype::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool vector = false;  // one-dimensional
  // In order, together the whole tensor. Of ranks that have the same, each saves a part.
  std::vector<HeldPart> held;
  step::Range own;  // the elements this rank has
  step::View view;  // where they are

  [[nodiscard]] std::int64_t bytes() const { return rows * cols * step::bytes_of(type); }
  // Where some of the elements that this rank has are.
  [[nodiscard]] step::View view_of(const step::Range& elements) const;
};

enum class StateKind { kWeights, kOptimizer };

// Of all stages, in the order of the model's parameters; a rank has none or some of each.
std::vector<StateTensor> state_tensors(const step::Program& program, StateKind kind);

// Of one of Program::model_parameters. The low halves of a weight, where there are any, are part of
// the optimizer.
StateTensor weight_tensor(const step::Program& program, const step::Parameter& parameter);
std::optional<StateTensor> remainder_tensor(const step::Program& program,
                                            const step::Parameter& parameter);

// The bytes that this rank saves.
std::int64_t saved_bytes(const step::Program& program);

// The description used in checkpoint files.
checkpoint::TensorInfo file_info(const StateTensor& tensor);

// The byte range of a range of elements.
inline step::Range bytes_of(const StateTensor& tensor, const step::Range& elements) {
  const std::int64_t size = step::bytes_of(tensor.type);
  return {elements.first * size, elements.count * size};
}

}  // namespace assay::train
