// Rules: which models, layouts and batches the trainer executes. They exist here alone: build()
// refuses by them, the trainer before there are ranks, the GPU backend before it allocates, and
// the planner's search offers nothing that they refuse.
#pragma once

#include "base/error.h"
#include "base/result.h"
#include "spec/model.h"
#include "step/program.h"

namespace assay::step {

// Asking whether a rule is broken allocates nothing: searches ask about every layout that they try.
struct Rule {
  bool (*broken)(const spec::ModelSpec& model, const Choices& choices);
  // Names the key to change; of a broken rule only.
  base::Error (*error)(const spec::ModelSpec& model, const Choices& choices);
};

// The first of the rules of programs, or of those that GPUs add, that is broken; null: none is.
// That degrees divide what they cut is left to spec's rules where both have it.
const Rule* broken_rule(const spec::ModelSpec& model, const Choices& choices);
const Rule* broken_gpu_rule(const spec::ModelSpec& model, const Choices& choices);

// The same as errors.
base::Result<void> check(const spec::ModelSpec& model, const Choices& choices);
base::Result<void> check_for_gpus(const spec::ModelSpec& model, const Choices& choices);

// Elements that a GPU's kernels read and write at once, and the longest row that they reduce.
inline constexpr std::int64_t kGpuVector = 8;
inline constexpr std::int64_t kGpuWidestRow = 16384;
// Experts that a warp chooses among.
inline constexpr std::int64_t kGpuMostExperts = 512;
// cuBLASLt requires this alignment of every side of an fp8 matrix.
inline constexpr std::int64_t kFp8Alignment = 16;

}  // namespace assay::step
