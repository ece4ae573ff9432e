#include "observe/shim/gpu/lookup/finder.h"

#include <dlfcn.h>
#include <sched.h>
#include <string.h>

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/region/region.h"

namespace assay::gpu {
namespace {

Finder* const kFinders[] = {&driver_finder, &nccl_finder,  &nvml_finder,  &cublas_11,   &cublas_12,
                            &cublas_13,     &cublas_lt_11, &cublas_lt_12, &cublas_lt_13};

// Maps the address of a real function to its wrapper. The wrapper is written first: it marks an
// entry as used. Filled before a finder is ready, never emptied.
struct Wrapped {
  std::atomic<const void*> real;
  std::atomic<void*> wrapper;
};
constexpr std::size_t kWrapped = 1024;  // about three times the number of functions
constinit Wrapped wrapped[kWrapped] = {};

std::size_t place_of(const void* address) {
  return wire::gpu_mix(reinterpret_cast<std::uintptr_t>(address)) % kWrapped;
}

// Two entries with one address are the same function of the driver; the first name is kept. Several
// finders may run at once.
void remember(const void* real, void* wrapper) {
  for (std::size_t i = place_of(real), tried = 0; tried < kWrapped;
       i = (i + 1) % kWrapped, ++tried) {
    const void* found = wrapped[i].real.load(std::memory_order_acquire);
    if (found == real) return;
    if (found != nullptr) continue;
    void* unclaimed = nullptr;
    if (!wrapped[i].wrapper.compare_exchange_strong(unclaimed, wrapper)) continue;
    wrapped[i].real.store(real, std::memory_order_release);
    return;
  }
}

// The lookup this thread is in: the libraries it queries may call back.
__thread const Finder* looking __attribute__((tls_model("initial-exec"))) = nullptr;

using GetProcAddress = Result(const char*, void**, int, std::uint64_t, int*);

void* address_of(const Entry& entry, GetProcAddress* get) {
  if (entry.name == nullptr || get == nullptr) return nullptr;
  // Not exported, but cuGetProcAddress may find it by name, version and kind of stream.
  void* found = nullptr;
  int status = 0;
  if (get(entry.name, &found, entry.version, entry.per_thread ? 2 : 0, &status) != 0)
    return nullptr;
  return found;
}

bool has(const Finder& finder, const char* name) {
  for (std::size_t i = 0; i < finder.number; ++i) {
    if (strcmp(finder.entries[i].symbol, name) == 0) return true;
  }
  return false;
}

}  // namespace

bool Finder::find_all() {
  Library library;
  if (!find_library(soname, library)) return false;
  // It must not be unloaded: programs hold its addresses through our wrappers.
  if (dlopen(library.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == nullptr) {
    dlerror();
    return false;
  }
  auto* get = reinterpret_cast<GetProcAddress*>(library.find("cuGetProcAddress_v2"));
  for (int pass = 0; pass < 2; ++pass) {  // exported ones first: their names are certain
    for (std::size_t i = 0; i < number; ++i) {
      const Entry& entry = entries[i];
      void* exported = library.find(entry.symbol);
      if ((exported != nullptr) != (pass == 0)) continue;
      void* real = exported != nullptr ? exported : address_of(entry, get);
      if (real == nullptr || (exported == nullptr && wrapper_of(real) != nullptr)) {
        real = reinterpret_cast<void*>(
            missing);  // or a function of another version, which has its own entry
      } else {
        remember(real, entry.wrapper);
      }
      entry.real->store(real, std::memory_order_release);
    }
  }
  found(library);
  log_line(soname);
  return true;
}

bool Finder::ready() {
  return state.load(std::memory_order_acquire) == kReady || find();
}

bool Finder::find() {
  constexpr int kTimeout = 100'000;  // iterations of waiting for another thread
  for (int round = 0; round < kTimeout; ++round) {
    int now = state.load(std::memory_order_acquire);
    if (now == kReady) return true;
    if (now == kBusy) {
      if (looking == this) return false;
      sched_yield();
      continue;
    }
    if (!state.compare_exchange_strong(now, kBusy)) continue;
    const Finder* before = looking;
    looking = this;
    const bool there = find_all();
    looking = before;
    state.store(there ? kReady : kUnknown, std::memory_order_release);
    return there;
  }
  return false;
}

void forget_finders() {
  looking = nullptr;
  for (Finder* finder : kFinders) {
    if (finder->state.load(std::memory_order_relaxed) == Finder::kBusy) {
      finder->state.store(Finder::kUnknown, std::memory_order_relaxed);
    }
  }
}

void* wrapper_of(const void* real) {
  for (std::size_t i = place_of(real), tried = 0; tried < kWrapped;
       i = (i + 1) % kWrapped, ++tried) {
    void* wrapper = wrapped[i].wrapper.load(std::memory_order_acquire);
    if (wrapper == nullptr) return nullptr;
    if (wrapped[i].real.load(std::memory_order_acquire) == real) return wrapper;
  }
  return nullptr;
}

// About three hundred names, compared only if the first letters agree. Lookups of other names do
// not reach this.
bool is_wrapped_name(const char* name) {
  for (const Finder* finder : kFinders) {
    if (has(*finder, name)) return true;
  }
  return false;
}

bool some_ready(const char* name) {
  bool any = false;
  for (Finder* finder : kFinders) {
    if (has(*finder, name) && finder->ready()) any = true;
  }
  return any;
}

Finder* finder_of_wrapper(const void* address) {
  for (Finder* finder : kFinders) {
    for (std::size_t i = 0; i < finder->number; ++i) {
      if (finder->entries[i].wrapper == address) return finder;
    }
  }
  return nullptr;
}

}  // namespace assay::gpu
