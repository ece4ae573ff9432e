// Memory queries, the driver's and NVML's, as programs and nvidia-smi make them: for a device with
// a limit, the limit and the run's use; for any other, the real result.
#include <algorithm>

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/memory/devices.h"
#include "observe/shim/gpu/memory/limits.h"
#include "observe/shim/gpu/memory/overhead.h"
#include "observe/shim/gpu/memory/pools.h"
#include "observe/shim/gpu/region/hami.h"
#include "observe/shim/gpu/region/region.h"
#include "observe/wire/gpu_uuid.h"

extern "C" {
#define NVML(symbol) extern ASSAY_HIDDEN std::atomic<void*> assay_gpu_real_##symbol;
#include "observe/shim/gpu/nvml_entries.inc"
#undef NVML
}

namespace assay::gpu {
namespace {

constexpr int kNvmlUninitialized = 1;
constexpr int kNvmlNoFunction = 13;

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
struct Memory2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct DeviceLimit {
  std::uint64_t limit = 0;  // 0: none
  std::uint64_t used = 0;
};

// A device that the run has not used yet is not in the region, and is not added to it.
DeviceLimit limit_of_device(void* device) {
  char text[96] = {};
  if (region() == nullptr || helpers.nvml_uuid == nullptr ||
      helpers.nvml_uuid(device, text, sizeof text) != 0) {
    return {};
  }
  const auto uuid = wire::parse_uuid(text);
  if (!uuid) return {};
  const std::uint64_t key = wire::device_key((*uuid)[0], (*uuid)[1]);
  for (std::uint32_t device_index = 0; device_index < wire::kGpuDevices; ++device_index) {
    if (region()->devices[device_index].key.load(std::memory_order_acquire) == key) {
      const std::uint64_t limit = limit_of(device_index);
      if (limit != 0) reclaim_rate_limited(device_index);
      return {limit, used_of(device_index)};
    }
  }
  unsigned index = 0;
  if (helpers.nvml_index != nullptr && helpers.nvml_index(device, &index) == 0) {
    if (const std::uint64_t bytes = hami_limit_of(static_cast<int>(index)); bytes != 0) {
      return {bytes, 0};
    }
  }
  const wire::GpuDevice none{};
  return {wire::byte_limit(*region(), none), 0};
}

template <typename Answer>
void apply_limit(void* device, Answer& answer) {
  const DeviceLimit run = limit_of_device(device);
  if (run.limit == 0) return;
  answer.total = std::min<unsigned long long>(answer.total, run.limit);
  answer.used = run.used;
  const std::uint64_t left = run.used < run.limit ? run.limit - run.used : 0;
  answer.free = std::min<unsigned long long>(answer.free, left);
  if constexpr (requires { answer.reserved; })
    answer.reserved = 0;  // the reserved memory is the card's, not the run's
}

template <typename Answer, typename Real>
int answer_memory(const std::atomic<void*>& function, void* device, Answer* answer) {
  if (!nvml_ready()) return kNvmlUninitialized;
  auto* const next = real<Real>(function);
  if (next == nullptr) return kNvmlNoFunction;
  const int result = next(device, answer);
  if (result == 0 && answer != nullptr) apply_limit(device, *answer);
  return result;
}

}  // namespace
}  // namespace assay::gpu

extern "C" {

// The driver is called first, with the caller's own pointers, so that it rejects null.
ASSAY_EXPORTED int cuMemGetInfo_v2(std::size_t* left, std::size_t* total) {
  ASSAY_REAL(cuMemGetInfo_v2);
  const int result = next(left, total);
  if (result != 0) return result;
  const std::uint32_t device_index = assay::gpu::current_origin().device_index;
  const std::uint64_t limit = assay::gpu::limit_of(device_index);
  if (limit == 0) return result;
  assay::gpu::check_overhead(
      device_index);  // the context's memory is used before the first allocation
  assay::gpu::settle_freed_pools();
  assay::gpu::reclaim_rate_limited(device_index);
  if (left != nullptr)
    *left = std::min<std::size_t>(*left, assay::gpu::left_of(device_index, limit));
  if (total != nullptr) *total = std::min<std::size_t>(*total, limit);
  return result;
}

ASSAY_EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  ASSAY_REAL(cuDeviceTotalMem_v2);
  const int result = next(bytes, device);
  if (result != 0 || bytes == nullptr) return result;
  const std::uint64_t limit = assay::gpu::limit_of(assay::gpu::device_index_of(device));
  if (limit != 0) *bytes = std::min<std::size_t>(*bytes, limit);
  return result;
}

ASSAY_EXPORTED int nvmlDeviceGetMemoryInfo(void* device, assay::gpu::Memory* memory) {
  return assay::gpu::answer_memory<assay::gpu::Memory, decltype(nvmlDeviceGetMemoryInfo)>(
      assay_gpu_real_nvmlDeviceGetMemoryInfo, device, memory);
}

// `version` identifies the caller's struct; NVML has checked that it is this one.
ASSAY_EXPORTED int nvmlDeviceGetMemoryInfo_v2(void* device, assay::gpu::Memory2* memory) {
  return assay::gpu::answer_memory<assay::gpu::Memory2, decltype(nvmlDeviceGetMemoryInfo_v2)>(
      assay_gpu_real_nvmlDeviceGetMemoryInfo_v2, device, memory);
}
}
