// Copies and memsets that take time: on the device they are work of the multiprocessors, between
// host and device work of a copy engine. In a capture they are nodes of the graph.
#include <cstring>

#include "clock.h"
#include "driver.h"

using namespace fakecuda;

namespace {

constexpr std::uint64_t kKibibyte = 1024;
constexpr std::uint64_t kMebibyte = 1024 * kKibibyte;

int run(int node_type, std::uint64_t ns, Engine engine) {
#ifndef FAKECUDA_BARE
  if (ns == 0) return kOk;
  if (capturing != nullptr) {
    return add_node(nullptr, capturing, node_type, nullptr, 0, 0, 0, ns);
  }
  fakecuda::submit(ns, engine);
#endif
  (void)node_type, (void)ns, (void)engine;
  return kOk;
}
int copy_over_bus(std::uint64_t bytes, bool waits) {
  const int result = run(1, bytes / kKibibyte * driver().copy_ns, Engine::kCopy);
  if (waits && driver().copy_ns != 0) fakecuda::wait_until_done();
  return result;
}
int copy_on_device(std::uint64_t bytes) {
  return run(1, bytes * driver().device_copy_ns / kMebibyte, Engine::kMultiprocessors);
}
// Half the traffic of a copy.
int set_on_device(std::uint64_t bytes) {
  return run(2, bytes * driver().device_copy_ns / kMebibyte / 2, Engine::kMultiprocessors);
}
// CUDA_MEMCPY2D_v2: the types of its ends at 16 and 72, width and height at 112.
int copy_2d(std::uint64_t description) {
  if (driver().device_copy_ns == 0 && driver().copy_ns == 0) return kOk;
  const auto* of = reinterpret_cast<const unsigned char*>(description);
  unsigned from = 0;
  unsigned to = 0;
  std::uint64_t size[2] = {};
  std::memcpy(&from, of + 16, sizeof from);
  std::memcpy(&to, of + 72, sizeof to);
  std::memcpy(size, of + 112, sizeof size);
  return from == to ? copy_on_device(size[0] * size[1]) : copy_over_bus(size[0] * size[1], false);
}

}  // namespace

extern "C" {

#define WORK(symbol, work)                                                       \
  int symbol([[maybe_unused]] std::uint64_t a, [[maybe_unused]] std::uint64_t b, \
             [[maybe_unused]] std::uint64_t c, [[maybe_unused]] std::uint64_t d, \
             [[maybe_unused]] std::uint64_t e) {                                 \
    count(k_##symbol);                                                           \
    return work;                                                                 \
  }
#define BOTH(symbol, suffix, work) \
  WORK(symbol, work)               \
  WORK(symbol##suffix, work)

BOTH(cuMemcpyHtoD_v2, _ptds, copy_over_bus(c, true))
BOTH(cuMemcpyHtoDAsync_v2, _ptsz, copy_over_bus(c, false))
BOTH(cuMemcpyDtoH_v2, _ptds, copy_over_bus(c, true))
BOTH(cuMemcpyDtoHAsync_v2, _ptsz, copy_over_bus(c, false))
BOTH(cuMemcpyDtoD_v2, _ptds, copy_on_device(c))
BOTH(cuMemcpyDtoDAsync_v2, _ptsz, copy_on_device(c))
BOTH(cuMemcpy, _ptds, copy_on_device(c))
BOTH(cuMemcpyAsync, _ptsz, copy_on_device(c))
BOTH(cuMemcpyPeer, _ptds, copy_over_bus(e, false))
BOTH(cuMemcpyPeerAsync, _ptsz, copy_over_bus(e, false))
BOTH(cuMemcpy2D_v2, _ptds, copy_2d(a))
BOTH(cuMemcpy2DAsync_v2, _ptsz, copy_2d(a))
BOTH(cuMemsetD8_v2, _ptds, set_on_device(c))
BOTH(cuMemsetD8Async, _ptsz, set_on_device(c))
BOTH(cuMemsetD16_v2, _ptds, set_on_device(2 * c))
BOTH(cuMemsetD16Async, _ptsz, set_on_device(2 * c))
BOTH(cuMemsetD32_v2, _ptds, set_on_device(4 * c))
BOTH(cuMemsetD32Async, _ptsz, set_on_device(4 * c))
}
