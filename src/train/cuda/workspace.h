// How much memory kernels need beside a program's own, and where each part of it lies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "step/program.h"
#include "train/cuda/device.h"

namespace assay::train::cuda {

// With `begin` null only the size counts.
struct PlacedWorkspace {
  Workspace workspace;
  std::int64_t bytes = 0;
};
PlacedWorkspace place_workspace(const step::Program& program, std::int64_t attention_bytes,
                                std::byte* begin);

// Muon's largest matrix, and the square of its shorter side: elements.
std::int64_t largest_matrix(const step::Program& program);
std::int64_t largest_square(const step::Program& program);

}  // namespace assay::train::cuda
