// Finds a device's line in the region, by the process's ordinal and by context.
#include "observe/shim/gpu/memory/limits.h"
#include "observe/shim/gpu/region/hami.h"

extern "C" int cuDeviceTotalMem_v2(std::size_t* bytes, int device);

namespace assay::gpu {
namespace {

using wire::kGpuDevices;

// The line + 1; 0: not queried.
constexpr int kOrdinals = 64;
constinit std::atomic<std::uint32_t> lines[kOrdinals] = {};
// The ordinal + 1.
constinit std::atomic<int> ordinals[kGpuDevices] = {};

// Cached place of this thread's last allocation; the generation invalidates it when a context is
// destroyed.
struct Found {
  const void* context;
  std::uint32_t line;
  std::uint32_t date;
};
__thread Found found __attribute__((tls_model("initial-exec"))) = {};
constinit std::atomic<std::uint32_t> date{1};

}  // namespace

std::uint32_t line_of(int ordinal) {
  if (ordinal < 0 || ordinal >= kOrdinals || region() == nullptr) return kGpuDevices;
  if (const std::uint32_t known = lines[ordinal].load(std::memory_order_acquire); known != 0) {
    return known - 1;
  }
  std::uint64_t uuid[2] = {};
  if (helpers.device_uuid == nullptr ||
      helpers.device_uuid(reinterpret_cast<unsigned char*>(uuid), ordinal) != 0) {
    return kGpuDevices;
  }
  const auto line = static_cast<std::uint32_t>(wire::claim_device(*region(), uuid[0], uuid[1]));
  if (line < kGpuDevices) {
    std::size_t total = 0;
    auto* total_of = real<decltype(cuDeviceTotalMem_v2)>(assay_gpu_real_cuDeviceTotalMem_v2);
    if (total_of != nullptr && total_of(&total, ordinal) == 0) {
      region()->devices[line].total.store(total, std::memory_order_relaxed);
    }
    set_hami_limits(ordinal, line);
    ordinals[line].store(ordinal + 1, std::memory_order_relaxed);
  }
  lines[ordinal].store(line + 1, std::memory_order_release);
  return line;
}

int ordinal_of(std::uint32_t line) {
  return line < kGpuDevices ? ordinals[line].load(std::memory_order_relaxed) - 1 : -1;
}

std::uint32_t number_of_context(const void* context) {
  return static_cast<std::uint32_t>(wire::gpu_mix(reinterpret_cast<std::uintptr_t>(context))) & ~1U;
}

MemoryOrigin current_origin() {
  void* context = nullptr;
  if (region() == nullptr || helpers.current_context == nullptr ||
      helpers.current_context(&context) != 0 || context == nullptr) {
    return {};
  }
  const std::uint32_t today = date.load(std::memory_order_acquire);
  if (found.context != context || found.date != today) {
    int ordinal = -1;
    if (helpers.current_device == nullptr || helpers.current_device(&ordinal) != 0) return {};
    found = {context, line_of(ordinal), today};
  }
  return {found.line, number_of_context(context)};
}

void forget_origins() {
  date.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace assay::gpu
