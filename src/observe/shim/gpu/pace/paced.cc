// The paced launch path: where a counting stub (stubs.cc) jumps to if its run has a share or a
// priority. Thirteen instructions: hash function and grid, subtract the cost from the thread's
// budget, jump to the driver, or below zero call the pacing point.
//
// Also here: synchronization and copies, which always check whether limits have changed. They take
// microseconds anyway, and are where an unlimited program notices a new limit.
#include <pthread.h>

#include "observe/shim/gpu/memory/pools.h"
#include "observe/shim/gpu/pace/costs.h"
#include "observe/shim/gpu/pace/lanes.h"
#include "observe/shim/gpu/pace/pace.h"
#include "observe/shim/gpu/pace/paced.h"
#include "observe/shim/gpu/pace/turns.h"
#include "observe/shim/gpu/region/region.h"

extern "C" {

#define LAUNCH(symbol, per_thread)                                              \
  ASSAY_HIDDEN constinit std::atomic<void*> assay_gpu_driver_##symbol{nullptr}; \
  extern ASSAY_HIDDEN char assay_gpu_paced_##symbol[];
#define COOPERATIVE LAUNCH
#define LAUNCH_EX LAUNCH
#define WAIT(symbol, ...) \
  ASSAY_HIDDEN constinit std::atomic<void*> assay_gpu_driver_##symbol{nullptr};
#define COPY WAIT
#define OLD_LAUNCH WAIT
#include "observe/shim/gpu/pace/paced.inc"
}

// rax is the thread's block, set by the counting stub; r10 and r11 are free. Offsets are checked
// below.
#define ASSAY_PACED(symbol, hash)          \
  asm(".text\n"                            \
      ".p2align 4\n"                       \
      ".type assay_gpu_paced_" #symbol     \
      ", @function\n"                      \
      ".globl assay_gpu_paced_" #symbol    \
      "\n"                                 \
      ".hidden assay_gpu_paced_" #symbol   \
      "\n"                                 \
      "assay_gpu_paced_" #symbol           \
      ":\n"                                \
      ".cfi_startproc\n" hash              \
      "imull $0x27D4EB2F, %r10d, %r10d\n"  \
      "shrl $20, %r10d\n"                  \
      "leaq assay_gpu_costs(%rip), %r11\n" \
      "movl (%r11,%r10,4), %r10d\n"        \
      "subq %r10, 16(%rax)\n"              \
      "js assay_gpu_checked_" #symbol      \
      "\n"                                 \
      "1: jmpq *assay_gpu_driver_" #symbol \
      "(%rip)\n"                           \
      ".cfi_endproc\n"                     \
      ".size assay_gpu_paced_" #symbol ", .-assay_gpu_paced_" #symbol "\n");
static_assert(offsetof(assay::wire::GpuBlock, budget) == 16);

#define LAUNCH(symbol, per_thread)               \
  ASSAY_PACED(symbol,                            \
              "imull $0x9E3779B1, %esi, %r10d\n" \
              "imull $0x85EBCA77, %edx, %r11d\n" \
              "addl %r11d, %r10d\n"              \
              "imull $0xC2B2AE3D, %ecx, %r11d\n" \
              "addl %r11d, %r10d\n"              \
              "addl %edi, %r10d\n")
#define COOPERATIVE LAUNCH
// A null configuration is left for the driver to refuse. The grid's z dimension, which is rarely
// used, is ignored to make up for that test.
#define LAUNCH_EX(symbol, per_thread)               \
  ASSAY_PACED(symbol,                               \
              "testq %rdi, %rdi\n"                  \
              "je 1f\n"                             \
              "imull $0x9E3779B1, (%rdi), %r10d\n"  \
              "imull $0x85EBCA77, 4(%rdi), %r11d\n" \
              "addl %r11d, %r10d\n"                 \
              "addl %esi, %r10d\n")
#define WAIT(symbol, whole)
#define COPY(symbol, kind, bytes, stream, per_thread, waits)
#define OLD_LAUNCH(symbol, x, y, stream)
#include "observe/shim/gpu/pace/paced.inc"

namespace assay::gpu {
namespace {

// CUlaunchConfig, as far as we read it
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block[3];
  unsigned shared_bytes;
  void* stream;
};
static_assert(offsetof(LaunchConfig, stream) == 32);

// The budget is used up; the launch path has already subtracted the cost.
template <typename Call>
Result checked_launch(std::uint32_t place, void* stream, bool per_thread, Call call) {
  return checked({place, stream, per_thread}, cost_of(place), call);
}

template <typename Call>
Result waited(bool whole, Call call) {
  check_limits();
  const bool is_paced = pacing.load(std::memory_order_relaxed);
  const std::uint64_t begun = is_paced ? now_ns() : 0;
  const Result result = call();
  if (is_paced) after_wait(begun, whole);
  settle_freed_pools();
  return result;
}

using Launch = Result(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      void*, void**, void**);
using Cooperative = Result(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, void*, void**);
using LaunchEx = Result(const LaunchConfig*, void*, void**, void**);
using Wait = Result(void*);
// Copies, memsets and old launches have at most six arguments, all in integer registers; registers
// that a function does not use are passed on unchanged.
using SixArguments = Result(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                            std::uint64_t, std::uint64_t);

}  // namespace
}  // namespace assay::gpu

extern "C" {

using assay::gpu::checked_launch;
using assay::gpu::cost_place;
using assay::gpu::real;
using assay::gpu::waited;

#define LAUNCH(symbol, per_thread)                                                               \
  ASSAY_HIDDEN int assay_gpu_checked_##symbol(void* f, unsigned x, unsigned y, unsigned z,       \
                                              unsigned a, unsigned b, unsigned c, unsigned size, \
                                              void* stream, void** arguments, void** more) {     \
    return checked_launch(cost_place(f, x, y, z), stream, per_thread, [&] {                      \
      return real<assay::gpu::Launch>(assay_gpu_driver_##symbol)(f, x, y, z, a, b, c, size,      \
                                                                 stream, arguments, more);       \
    });                                                                                          \
  }
#define COOPERATIVE(symbol, per_thread)                                                          \
  ASSAY_HIDDEN int assay_gpu_checked_##symbol(void* f, unsigned x, unsigned y, unsigned z,       \
                                              unsigned a, unsigned b, unsigned c, unsigned size, \
                                              void* stream, void** arguments) {                  \
    return checked_launch(cost_place(f, x, y, z), stream, per_thread, [&] {                      \
      return real<assay::gpu::Cooperative>(assay_gpu_driver_##symbol)(f, x, y, z, a, b, c, size, \
                                                                      stream, arguments);        \
    });                                                                                          \
  }
#define LAUNCH_EX(symbol, per_thread)                                                          \
  ASSAY_HIDDEN int assay_gpu_checked_##symbol(const assay::gpu::LaunchConfig* config, void* f, \
                                              void** arguments, void** more) {                 \
    return checked_launch(cost_place(f, config->grid_x, config->grid_y, 0), config->stream,    \
                          per_thread, [&] {                                                    \
                            return real<assay::gpu::LaunchEx>(assay_gpu_driver_##symbol)(      \
                                config, f, arguments, more);                                   \
                          });                                                                  \
  }
#define WAIT(symbol, whole)                                                                      \
  static int assay_gpu_wait_##symbol(void* on) {                                                 \
    return waited(whole, [&] { return real<assay::gpu::Wait>(assay_gpu_driver_##symbol)(on); }); \
  }
#define ASSAY_SIX                                                                      \
  std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d, std::uint64_t e, \
      std::uint64_t f
#define ASSAY_CALL_SIX(symbol) \
  [&] { return real<assay::gpu::SixArguments>(assay_gpu_driver_##symbol)(a, b, c, d, e, f); }
#define COPY(symbol, kind, bytes, stream, per_thread, waits)                     \
  static int assay_gpu_wait_##symbol(ASSAY_SIX) {                                \
    const auto copy = [&] {                                                      \
      return assay::gpu::paced_copy(assay::gpu::CopyKind::kind, bytes,           \
                                    reinterpret_cast<void*>(stream), per_thread, \
                                    ASSAY_CALL_SIX(symbol));                     \
    };                                                                           \
    return waits ? waited(false, copy) : copy();                                 \
  }
#define OLD_LAUNCH(symbol, x, y, stream)                                                       \
  static int assay_gpu_wait_##symbol(ASSAY_SIX) {                                              \
    return assay::gpu::paced({cost_place(reinterpret_cast<void*>(a), static_cast<unsigned>(x), \
                                         static_cast<unsigned>(y), 1),                         \
                              reinterpret_cast<void*>(stream), false},                         \
                             ASSAY_CALL_SIX(symbol));                                          \
  }
#include "observe/shim/gpu/pace/paced.inc"
}

namespace assay::gpu {

constinit std::atomic<bool> pacing{false};

namespace {

constinit SpinLock switching;

struct Way {
  std::atomic<void*>* counted;  // where the counting stub jumps to
  std::atomic<void*>* driver;
  void* paced;
  bool launch;
};
const Way kWays[] = {
#define LAUNCH(symbol, per_thread) \
  {&assay_gpu_real_##symbol, &assay_gpu_driver_##symbol, assay_gpu_paced_##symbol, true},
#define COOPERATIVE LAUNCH
#define LAUNCH_EX LAUNCH
#define WAIT(symbol, ...)                                \
  {&assay_gpu_real_##symbol, &assay_gpu_driver_##symbol, \
   reinterpret_cast<void*>(assay_gpu_wait_##symbol), false},
#define COPY WAIT
#define OLD_LAUNCH WAIT
#include "observe/shim/gpu/pace/paced.inc"
};

bool some_device_is_limited(const wire::GpuRegion& counted) {
  for (const wire::GpuDevice& device : counted.devices) {
    if (wire::share_of(counted, device).limited()) return true;
  }
  return false;
}

void forget_in_forked_child() {
  switching.reset();
  forget_lanes();
}

}  // namespace

void pacing_begins() {
  if (region() == nullptr || pthread_atfork(nullptr, nullptr, forget_in_forked_child) != 0) return;
  forget_costs();
  for (const Way& way : kWays) {
    way.driver->store(way.counted->load(std::memory_order_acquire), std::memory_order_release);
    if (!way.launch) way.counted->store(way.paced, std::memory_order_release);
  }
  limits_changed();
}

void limits_changed() {
  wire::GpuRegion& counted = *region();
  if (!switching.try_lock_bounded()) return;
  seen_generation.store(counted.header.generation.load(std::memory_order_acquire),
                        std::memory_order_relaxed);
  const bool wanted = some_device_is_limited(counted);
  if (wanted != pacing.load(std::memory_order_relaxed)) {
    pacing.store(wanted, std::memory_order_relaxed);
    for (const Way& way : kWays) {
      if (!way.launch) continue;
      way.counted->store(wanted ? way.paced : way.driver->load(std::memory_order_relaxed),
                         std::memory_order_release);
    }
    log_line(wanted ? "launches are paced" : "launches are no longer paced");
  }
  switching.unlock();
}

}  // namespace assay::gpu
