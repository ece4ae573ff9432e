// The state of a run as named tensors: what a checkpoint holds. Names and shapes are those of the
// program's parameters, so a checkpoint can be read by any program with the same model.
#pragma once

#include <string>
#include <vector>

#include "step/program.h"

namespace assay::train {

struct StateTensor {
  std::string name;  // "layers.3.qkv", "first_moment/layers.3.qkv"
  step::Dtype type = step::Dtype::kF32;
  step::View view;
  bool vector = false;  // of one dimension

  [[nodiscard]] std::int64_t bytes() const { return view.elements() * step::bytes_of(type); }
};

enum class StateKind { kWeights, kOptimizer };

std::vector<StateTensor> state_tensors(const step::Program& program, StateKind kind);

}  // namespace assay::train
