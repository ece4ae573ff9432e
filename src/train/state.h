// The state of a run as named tensors: the contents of a checkpoint. Names and shapes are those of
// the program's parameters, so a checkpoint can be read by any program of the same model on any
// number of ranks: each rank knows which elements of a tensor it owns.
#pragma once

#include <string>
#include <vector>

#include "step/program.h"
#include "train/checkpoint/tensor.h"

namespace assay::train {

struct StateTensor {
  std::string name;  // "layers.3.qkv", "first_moment/layers.3.qkv"
  step::Dtype type = step::Dtype::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool vector = false;  // one-dimensional
  // The elements that each rank holds; all of them if the tensor is not sharded.
  std::vector<step::Range> held;
  bool sharded = false;
  step::Range own;  // the elements this rank holds
  step::View view;  // where they are stored

  [[nodiscard]] std::int64_t bytes() const { return rows * cols * step::bytes_of(type); }
};

enum class StateKind { kWeights, kOptimizer };

std::vector<StateTensor> state_tensors(const step::Program& program, StateKind kind);

// The description used in checkpoint files.
checkpoint::TensorInfo file_info(const StateTensor& tensor);

// The byte range of a range of elements.
inline step::Range bytes_of(const StateTensor& tensor, const step::Range& elements) {
  const std::int64_t size = step::bytes_of(tensor.type);
  return {elements.first * size, elements.count * size};
}

}  // namespace assay::train
