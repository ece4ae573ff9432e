// Which GPUs a command will see, and which of them a person means: an index as CUDA counts after
// CUDA_VISIBLE_DEVICES, a UUID, the beginning of one, or a slice (MIG). Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "machine/gpu_watch.h"

namespace assay::share {

// As the region knows a device: 16 bytes in two words.
using Uuid = std::array<std::uint64_t, 2>;
// "GPU-…" or "MIG-…" with 32 hexadecimal digits; nothing if it is not that.
std::optional<Uuid> parse_uuid(std::string_view text);

// What decides it in the command's environment; none: not set.
struct CudaEnvironment {
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
  std::optional<std::string> device_order;     // CUDA_DEVICE_ORDER
};

// In CUDA's order. As CUDA does, the list ends at the first entry that names nothing, and a device
// that stands in it twice leaves none.
std::vector<machine::GpuName> visible_gpus(const std::vector<machine::GpuName>& gpus,
                                           const CudaEnvironment& environment);

// Whether an index means the same to CUDA as to us: CUDA puts unlike cards into an order of its own
// unless it is told to keep the bus's.
bool order_is_known(const std::vector<machine::GpuName>& gpus, const CudaEnvironment& environment);

// The one of `visible` that `text` names. The error is a usage error without `where`.
base::Result<machine::GpuName> gpu_named(const std::vector<machine::GpuName>& visible,
                                         std::string_view text);

}  // namespace assay::share
