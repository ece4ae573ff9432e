// Shared by all parts of the library: the addresses of the driver's real functions, its results,
// and what lower parts call in upper ones. README.md has the map of the folders, from the bottom
// up:
//
//   region/  the run's region, this process's slot in it, blocks of threads
//   lookup/  finds the real functions, and decides which caller gets a wrapper
//   memory/  allocations and their limits
//   pace/    shares and priorities
//   count/   wrappers that count
//   hooks/   what lower parts call in upper ones
//
// It runs inside arbitrary programs: no exceptions, no C++ runtime, no exit, nothing printed; when
// in doubt, calls are passed to the driver.
#pragma once

#include <stddef.h>

#include <atomic>
#include <cstdint>

#define ASSAY_EXPORTED __attribute__((visibility("default")))
#define ASSAY_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

#define STUB(symbol, name, version, per_thread, quantity, bytes, scale) \
  extern ASSAY_HIDDEN std::atomic<void*> assay_gpu_real_##symbol;
#define FUNCTION(symbol, name, version, per_thread) \
  extern ASSAY_HIDDEN std::atomic<void*> assay_gpu_real_##symbol;
#define NCCL(symbol) extern ASSAY_HIDDEN std::atomic<void*> assay_gpu_real_##symbol;
#include "observe/shim/gpu/entries.inc"
#undef STUB
#undef FUNCTION
#undef NCCL
}

namespace assay::gpu {

using Result = int;  // CUresult
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kNotSupported = 801;

// What lower parts call in upper ones, in the order in which it is declared where that matters.
// Constant, and set in hooks/hooks.cc: a program may call the driver before this library's own
// constructors have run.
struct Hooks {
  // In the child of a fork (region/process.cc).
  void (*forget_finders)();  // lookup/
  void (*forget_turns)();    // pace/
  void (*forget_limits)();   // memory/; only if this process had a region
  // The driver has been found (lookup/driver.cc).
  void (*pacing_begins)();  // pace/
  // check_limits() has found new ones (region/region.h).
  void (*limits_changed)();  // pace/
};
extern const Hooks hooks;

// A real function with its type.
template <typename Signature>
inline Signature* real(const std::atomic<void*>& of) {
  return reinterpret_cast<Signature*>(of.load(std::memory_order_acquire));
}

}  // namespace assay::gpu
