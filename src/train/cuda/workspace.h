// The size and layout of the memory that kernels need in addition to the program's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "step/program.h"
#include "train/cuda/device.h"

namespace assay::train::cuda {

// If `begin` is null, only the size is computed.
struct WorkspaceLayout {
  Workspace workspace;
  std::int64_t bytes = 0;
};
WorkspaceLayout lay_out_workspace(const step::Program& program, std::int64_t attention_bytes,
                                  std::byte* begin);

// Distance in elements between the rows (queries) of the document bias: cuDNN requires aligned
// rows.
inline std::int64_t document_bias_stride(std::int64_t keys) {
  return (keys + 63) / 64 * 64;
}

// In elements: Muon's largest matrix, and the square of the shorter side of a matrix, at most.
std::int64_t largest_matrix(const step::Program& program);
std::int64_t largest_square(const step::Program& program);

}  // namespace assay::train::cuda
