// GpuCapability: what a GPU supports, according to its compute capability.
#pragma once

#include <string>

#include "base/result.h"
#include "step/program.h"

namespace assay::train::cuda {

struct GpuCapability {
  std::string name;
  int major = 0;  // of the compute capability
  int minor = 0;

  // Tensor cores for fp8: Ada, Hopper and later.
  [[nodiscard]] bool has_fp8() const { return major * 10 + minor >= 89; }
};

// Whether the GPU can be used at all: libraries and kernels need bf16 tensor cores.
base::Result<void> check_capability(const GpuCapability& capability);
// Whether the GPU supports these number formats.
base::Result<void> check_numerics(const GpuCapability& capability, const step::Numerics& numerics);

}  // namespace assay::train::cuda
