#include "train/cuda/device.h"

#include <fmt/format.h>

#include "base/error.h"

namespace assay::train::cuda {

base::Result<void> check_capability(const GpuCapability& capability) {
  if (capability.major >= 8) return {};
  return base::fail(base::unfit_error(
      capability.name,
      fmt::format("its compute capability is {}.{}", capability.major, capability.minor),
      "8.0 or later (A100, RTX 30) is required; or use --device cpu"));
}

base::Result<void> check_numerics(const GpuCapability& capability, const step::Numerics& numerics) {
  if (!numerics.fp8_blocks || capability.has_fp8()) return {};
  return base::fail(base::unfit_error(
      capability.name,
      fmt::format("it has no fp8: its compute capability is {}.{}, and 8.9 is the first with it",
                  capability.major, capability.minor),
      "train.precision = \"bf16\""));
}

}  // namespace assay::train::cuda
