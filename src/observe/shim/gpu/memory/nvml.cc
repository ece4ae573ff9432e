// NVML's memory queries, as used by programs and nvidia-smi: for a device with a limit, the limit
// and the run's use; for any other, NVML's own result.
#include <algorithm>

#include "observe/shim/gpu/memory/limits.h"
#include "observe/shim/gpu/region/hami.h"
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

// A device that the run has not used yet has no line and gets none.
DeviceLimit limit_of_device(void* device) {
  char text[96] = {};
  if (region() == nullptr || helpers.nvml_uuid == nullptr ||
      helpers.nvml_uuid(device, text, sizeof text) != 0) {
    return {};
  }
  const auto uuid = wire::parse_uuid(text);
  if (!uuid) return {};
  const std::uint64_t key = wire::device_key((*uuid)[0], (*uuid)[1]);
  for (std::uint32_t line = 0; line < wire::kGpuDevices; ++line) {
    if (region()->devices[line].key.load(std::memory_order_acquire) == key) {
      const std::uint64_t limit = limit_of(line);
      if (limit != 0) reclaim_rate_limited(line);
      return {limit, used_of(line)};
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
  const DeviceLimit lent = limit_of_device(device);
  if (lent.limit == 0) return;
  answer.total = std::min<unsigned long long>(answer.total, lent.limit);
  answer.used = lent.used;
  const std::uint64_t left = lent.used < lent.limit ? lent.limit - lent.used : 0;
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
