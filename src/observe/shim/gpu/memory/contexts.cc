// Destroying a context frees everything that was allocated in it.
#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/memory/devices.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {
namespace {

// number_of_context of the primary contexts, by the process's device ordinals; 0: none.
constexpr int kPrimaries = 64;
constinit std::atomic<std::uint32_t> primaries[kPrimaries] = {};

void primary_gone(int device) {
  if (device < 0 || device >= kPrimaries) return;
  const std::uint32_t context = primaries[device].exchange(0);
  if (context != 0) forget_context(context);
}

// A primary context is destroyed when it is released as often as it was retained.
void primary_released(int device) {
  unsigned flags = 0;
  int active = 1;
  if (helpers.primary_state == nullptr || helpers.primary_state(device, &flags, &active) != 0) {
    return;
  }
  if (active == 0) primary_gone(device);
}

}  // namespace
}  // namespace assay::gpu

using assay::gpu::GpuQuantity;

extern "C" {

ASSAY_EXPORTED int cuDevicePrimaryCtxRetain(void** context, int device) {
  ASSAY_REAL(cuDevicePrimaryCtxRetain);
  assay::gpu::count(GpuQuantity::kContext);
  const int result = next(context, device);
  if (result == 0 && device >= 0 && device < assay::gpu::kPrimaries) {
    assay::gpu::primaries[device].store(assay::gpu::number_of_context(*context));
  }
  return result;
}

#define ASSAY_ENDING(symbol, parameter, argument, end) \
  ASSAY_EXPORTED int symbol(parameter) {               \
    ASSAY_REAL(symbol);                                \
    const int result = next(argument);                 \
    if (result == 0) end;                              \
    return result;                                     \
  }
ASSAY_ENDING(cuDevicePrimaryCtxRelease, int device, device, assay::gpu::primary_released(device))
ASSAY_ENDING(cuDevicePrimaryCtxRelease_v2, int device, device, assay::gpu::primary_released(device))
ASSAY_ENDING(cuDevicePrimaryCtxReset, int device, device, assay::gpu::primary_gone(device))
ASSAY_ENDING(cuDevicePrimaryCtxReset_v2, int device, device, assay::gpu::primary_gone(device))
ASSAY_ENDING(cuCtxDestroy, void* context, context,
             assay::gpu::forget_context(assay::gpu::number_of_context(context)))
ASSAY_ENDING(cuCtxDestroy_v2, void* context, context,
             assay::gpu::forget_context(assay::gpu::number_of_context(context)))
}
#undef ASSAY_ENDING
