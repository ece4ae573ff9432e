// The driver's memory queries: on a device with a limit, the limit is reported as the total.
#include <algorithm>

#include "observe/shim/gpu/memory/limits.h"

extern "C" {

// The driver is called first, with the caller's own pointers, so that it rejects null.
ASSAY_EXPORTED int cuMemGetInfo_v2(std::size_t* left, std::size_t* total) {
  ASSAY_REAL(cuMemGetInfo_v2);
  const int result = next(left, total);
  if (result != 0) return result;
  const std::uint32_t line = assay::gpu::current_origin().line;
  const std::uint64_t limit = assay::gpu::limit_of(line);
  if (limit == 0) return result;
  assay::gpu::check_overhead(line);  // the context's memory is used before the first allocation
  assay::gpu::settle_freed_pools();
  assay::gpu::reclaim_rate_limited(line);
  if (left != nullptr) *left = std::min<std::size_t>(*left, assay::gpu::left_of(line, limit));
  if (total != nullptr) *total = std::min<std::size_t>(*total, limit);
  return result;
}

ASSAY_EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  ASSAY_REAL(cuDeviceTotalMem_v2);
  const int result = next(bytes, device);
  if (result != 0 || bytes == nullptr) return result;
  const std::uint64_t limit = assay::gpu::limit_of(assay::gpu::line_of(device));
  if (limit != 0) *bytes = std::min<std::size_t>(*bytes, limit);
  return result;
}
}
