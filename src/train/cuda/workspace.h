// The size and layout of the memory that kernels need besides the program's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "step/program.h"
#include "train/cuda/device.h"

namespace assay::train::cuda {

// With `begin` null only the size is computed.
struct WorkspaceLayout {
  Workspace workspace;
  std::int64_t bytes = 0;
};
WorkspaceLayout lay_out_workspace(const step::Program& program, std::int64_t attention_bytes,
                                  std::byte* begin);

// Elements from one query's row of the document bias to the next one's: cuDNN wants rows aligned.
inline std::int64_t document_bias_stride(std::int64_t keys) {
  return (keys + 63) / 64 * 64;
}

// Muon's largest matrix, and the square of its shorter side: elements.
std::int64_t largest_matrix(const step::Program& program);
std::int64_t largest_square(const step::Program& program);

}  // namespace assay::train::cuda
