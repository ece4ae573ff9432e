// Rules: which models, layouts and batches the trainer can execute. This is their only definition:
// build() refuses by them, the trainer checks them before it starts ranks, the GPU backend before
// it allocates, and the planner's search offers nothing that they refuse.
#pragma once

#include "base/error.h"
#include "base/result.h"
#include "spec/model.h"
#include "step/program.h"

namespace assay::step {

// Checking a rule does not allocate, because searches check every layout that they try.
struct ProgramRule {
  bool (*broken)(const spec::ModelSpec& model, const Choices& choices);
  // Names the key to change. Call it only for a broken rule.
  base::Error (*error)(const spec::ModelSpec& model, const Choices& choices);
};

// The first broken rule for programs, or of those added for GPUs; null: none is broken.
// Divisibility by parallel degrees is left to spec's rules where both have it.
const ProgramRule* broken_rule(const spec::ModelSpec& model, const Choices& choices);
const ProgramRule* broken_gpu_rule(const spec::ModelSpec& model, const Choices& choices);

// The same as errors.
base::Result<void> check(const spec::ModelSpec& model, const Choices& choices);
base::Result<void> check_for_gpus(const spec::ModelSpec& model, const Choices& choices);

// Elements that GPU kernels read and write at once, and the longest row that they reduce.
inline constexpr std::int64_t kGpuVector = 8;
inline constexpr std::int64_t kGpuWidestRow = 16384;
// The most experts among which a warp chooses.
inline constexpr std::int64_t kGpuMostExperts = 512;
// cuBLASLt requires this alignment of both dimensions of an fp8 matrix.
inline constexpr std::int64_t kFp8Alignment = 16;

}  // namespace assay::step
