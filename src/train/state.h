// The state of a run as named tensors: what a checkpoint holds. Names and shapes are those of the
// program's parameters, so a checkpoint can be read by any program with the same model, on any
// number of ranks: each knows which elements of a tensor are its own.
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
  bool vector = false;  // of one dimension
  // The elements that each rank holds. What is not sharded every rank holds whole.
  std::vector<step::Range> held;
  bool sharded = false;
  step::Range own;  // this rank's of them
  step::View view;  // where these lie

  [[nodiscard]] std::int64_t bytes() const { return rows * cols * step::bytes_of(type); }
};

enum class StateKind { kWeights, kOptimizer };

std::vector<StateTensor> state_tensors(const step::Program& program, StateKind kind);

// As a checkpoint's files know it.
checkpoint::TensorInfo file_info(const StateTensor& tensor);

// Elements of a tensor as bytes.
inline step::Range bytes_of(const StateTensor& tensor, const step::Range& elements) {
  const std::int64_t size = step::bytes_of(tensor.type);
  return {elements.first * size, elements.count * size};
}

}  // namespace assay::train
