#include "observe/shim/gpu/memory/devices.h"

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/region/hami.h"
#include "observe/shim/gpu/region/region.h"

extern "C" int cuDeviceTotalMem_v2(std::size_t* bytes, int device);

namespace assay::gpu {
namespace {

using wire::kGpuDevices;

// The index in the region + 1; 0: not queried.
constexpr int kOrdinals = 64;
constinit std::atomic<std::uint32_t> device_indices[kOrdinals] = {};
// The ordinal + 1.
constinit std::atomic<int> ordinals[kGpuDevices] = {};

// Cached place of this thread's last allocation; the generation invalidates it when a context is
// destroyed.
struct Found {
  const void* context;
  std::uint32_t device_index;
  std::uint32_t generation;
};
__thread Found found __attribute__((tls_model("initial-exec"))) = {};
constinit std::atomic<std::uint32_t> generation{1};

}  // namespace

std::uint32_t device_index_of(int ordinal) {
  if (ordinal < 0 || ordinal >= kOrdinals || region() == nullptr) return kGpuDevices;
  if (const std::uint32_t known = device_indices[ordinal].load(std::memory_order_acquire);
      known != 0) {
    return known - 1;
  }
  std::uint64_t uuid[2] = {};
  if (helpers.device_uuid == nullptr ||
      helpers.device_uuid(reinterpret_cast<unsigned char*>(uuid), ordinal) != 0) {
    return kGpuDevices;
  }
  const auto device_index =
      static_cast<std::uint32_t>(wire::claim_device(*region(), uuid[0], uuid[1]));
  if (device_index < kGpuDevices) {
    std::size_t total = 0;
    auto* total_of = real<decltype(cuDeviceTotalMem_v2)>(assay_gpu_real_cuDeviceTotalMem_v2);
    if (total_of != nullptr && total_of(&total, ordinal) == 0) {
      region()->devices[device_index].total.store(total, std::memory_order_relaxed);
    }
    set_hami_limits(ordinal, device_index);
    ordinals[device_index].store(ordinal + 1, std::memory_order_relaxed);
  }
  device_indices[ordinal].store(device_index + 1, std::memory_order_release);
  return device_index;
}

int ordinal_of(std::uint32_t device_index) {
  return device_index < kGpuDevices ? ordinals[device_index].load(std::memory_order_relaxed) - 1
                                    : -1;
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
  const std::uint32_t now = generation.load(std::memory_order_acquire);
  if (found.context != context || found.generation != now) {
    int ordinal = -1;
    if (helpers.current_device == nullptr || helpers.current_device(&ordinal) != 0) return {};
    found = {context, device_index_of(ordinal), now};
  }
  return {found.device_index, number_of_context(context)};
}

void forget_origins() {
  generation.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace assay::gpu
