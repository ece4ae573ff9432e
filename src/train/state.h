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

struct StateTensor {
  std::string name;  // "layers.3.qkv", "first_moment/layers.3.qkv"
  step::Dtype type = step::Dtype::kF32;
  std::int64_t rows = 0;  // of the model's tensor
  std::int64_t cols = 0;
  bool vector = false;  // one-dimensional
  // Elements of what this tensor-parallel rank has of the tensor (`slice`; if it is the only one,
  // all of it): those this rank has, and of these, what it saves. Together ranks save every element
  // of the tensor once, all ranks equally much.
  step::Slice slice;
  step::Range own;
  step::Range saved;
  step::View view;  // where `own` is

  [[nodiscard]] std::int64_t bytes() const { return rows * cols * step::bytes_of(type); }
  // Where some of the elements that this rank has are.
  [[nodiscard]] step::View view_of(const step::Range& elements) const;
  // Which elements of the tensor these are, in order: as few pieces as possible.
  [[nodiscard]] std::vector<checkpoint::ElementRange> pieces(const step::Range& elements) const;
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

}  // namespace assay::train
