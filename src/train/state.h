// The state of a run as named tensors: the contents of a checkpoint. Names and shapes are those of
// the model's parameters, so a checkpoint can be read by any program of the same model on any
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
  // `slice` is this tensor-parallel rank's part of the tensor (all of it without tensor
  // parallelism). `own` are the elements of the slice that this rank holds, `saved` those of them
  // that it saves. Together the ranks save every element once, in equal shares.
  step::Slice slice;
  step::Range own;
  step::Range saved;
  step::View view;  // location of `own`

  [[nodiscard]] std::int64_t bytes() const { return rows * cols * step::bytes_of(type); }
  // The location of some of the elements that this rank holds.
  [[nodiscard]] step::View view_of(const step::Range& elements) const;
  // The given elements as ranges of the whole tensor, in order, as few as possible.
  [[nodiscard]] std::vector<checkpoint::ElementRange> pieces(const step::Range& elements) const;
};

enum class StateKind { kWeights, kOptimizer };

// For all pipeline stages, in the order of the model's parameters; a rank may hold none of a
// tensor.
std::vector<StateTensor> state_tensors(const step::Program& program, StateKind kind);

// For one of Program::model_parameters. The low halves of a weight, if any, are part of the
// optimizer.
StateTensor weight_tensor(const step::Program& program, const step::Parameter& parameter);
std::optional<StateTensor> remainder_tensor(const step::Program& program,
                                            const step::Parameter& parameter);

// The bytes that this rank saves.
std::int64_t saved_bytes(const step::Program& program);

// The description used in checkpoint files.
checkpoint::TensorInfo file_info(const StateTensor& tensor);

}  // namespace assay::train
