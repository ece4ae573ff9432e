// The real functions: found once, when somebody first asks for one of ours and the driver is
// loaded. Each is known by its address from then on, with the wrapper that stands for it.
#include <dlfcn.h>
#include <sched.h>
#include <string.h>

#include <type_traits>

#include "observe/shim/gpu/elf.h"
#include "observe/shim/gpu/gpu.h"
#include "observe/shim/gpu/pace.h"

extern "C" {

// Of the stubs, stubs.cc has them: they point at code that finds the driver.
#define STUB(symbol, name, version, per_thread, quantity, bytes, scale)
#define FUNCTION(symbol, name, version, per_thread) \
  constinit std::atomic<void*> assay_gpu_real_##symbol{nullptr};
#define NCCL(symbol) constinit std::atomic<void*> assay_gpu_real_##symbol{nullptr};
#define NVML NCCL
#include "observe/shim/gpu/entries.inc"
#include "observe/shim/gpu/nvml_entries.inc"
#undef STUB
#undef FUNCTION
#undef NCCL
#undef NVML

// The wrappers themselves, of whatever type: only their addresses are used here.
#define STUB(symbol, name, version, per_thread, quantity, bytes, scale) \
  ASSAY_EXPORTED extern char assay_gpu_wrapper_##symbol[] asm(#symbol);
#define FUNCTION(symbol, name, version, per_thread) \
  ASSAY_EXPORTED extern char assay_gpu_wrapper_##symbol[] asm(#symbol);
#define NCCL(symbol) ASSAY_EXPORTED extern char assay_gpu_wrapper_##symbol[] asm(#symbol);
#define NVML NCCL
#include "observe/shim/gpu/entries.inc"
#include "observe/shim/gpu/nvml_entries.inc"
#undef STUB
#undef FUNCTION
#undef NCCL
#undef NVML
}

namespace assay::gpu {

constinit Helpers helpers = {};

namespace {

enum class Owner { kDriver, kNccl, kNvml };

struct Entry {
  Owner owner;
  const char* symbol;
  const char* name;  // as cuGetProcAddress knows it
  int version;
  bool per_thread;
  std::atomic<void*>* real;
  void* wrapper;
};

const Entry kEntries[] = {
#define STUB(symbol, name, version, per_thread, quantity, bytes, scale) \
  {Owner::kDriver,                                                      \
   #symbol,                                                             \
   #name,                                                               \
   version,                                                             \
   per_thread,                                                          \
   &assay_gpu_real_##symbol,                                            \
   assay_gpu_wrapper_##symbol},
#define FUNCTION(symbol, name, version, per_thread) \
  {Owner::kDriver,                                  \
   #symbol,                                         \
   #name,                                           \
   version,                                         \
   per_thread,                                      \
   &assay_gpu_real_##symbol,                        \
   assay_gpu_wrapper_##symbol},
#define NCCL(symbol) \
  {Owner::kNccl, #symbol, nullptr, 0, false, &assay_gpu_real_##symbol, assay_gpu_wrapper_##symbol},
#define NVML(symbol) \
  {Owner::kNvml, #symbol, nullptr, 0, false, &assay_gpu_real_##symbol, assay_gpu_wrapper_##symbol},
#include "observe/shim/gpu/entries.inc"
#include "observe/shim/gpu/nvml_entries.inc"
#undef STUB
#undef FUNCTION
#undef NCCL
#undef NVML
};

// From the address of a real function to its wrapper. Filled before `ready` says so, never emptied.
struct Wrapped {
  std::atomic<const void*> real;
  std::atomic<void*> wrapper;
};
constexpr std::size_t kWrapped = 1024;  // some three times what there is
constinit Wrapped wrapped[kWrapped] = {};

std::size_t place_of(const void* address) {
  return wire::gpu_mix(reinterpret_cast<std::uintptr_t>(address)) % kWrapped;
}

// Two entries at one address are one function of the driver, and its first name does.
void remember(const void* real, void* wrapper) {
  for (std::size_t i = place_of(real), tried = 0; tried < kWrapped;
       i = (i + 1) % kWrapped, ++tried) {
    const void* found = wrapped[i].real.load(std::memory_order_relaxed);
    if (found == real) return;
    if (found != nullptr) continue;
    wrapped[i].wrapper.store(wrapper, std::memory_order_relaxed);
    wrapped[i].real.store(real, std::memory_order_release);
    return;
  }
}

Result not_supported() {
  return kNotSupported;
}

enum State : int { kUnknown, kBusy, kReady };
struct Finder {
  std::atomic<int> state{kUnknown};
  const char* soname;
  Owner owner;
};
constinit Finder driver{{kUnknown}, "libcuda.so.1", Owner::kDriver};
constinit Finder nccl{{kUnknown}, "libnccl.so.2", Owner::kNccl};
constinit Finder nvml{{kUnknown}, "libnvidia-ml.so.1", Owner::kNvml};

// What this thread is looking for just now: the libraries that it asks may ask back.
__thread const Finder* looking __attribute__((tls_model("initial-exec"))) = nullptr;

using GetProcAddress = Result(const char*, void**, int, std::uint64_t, int*);

void* address_of(const Entry& entry, GetProcAddress* get) {
  if (entry.name == nullptr || get == nullptr) return nullptr;
  // Not exported: a driver may still know it by name, version and kind of stream.
  void* found = nullptr;
  int status = 0;
  if (get(entry.name, &found, entry.version, entry.per_thread ? 2 : 0, &status) != 0)
    return nullptr;
  return found;
}

void find_helpers(const Finder& finder, const Library& library) {
  const auto find = [&](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
  };
  if (finder.owner == Owner::kNccl) {
    find(helpers.nccl_count, "ncclCommCount");
    find(helpers.nccl_rank, "ncclCommUserRank");
    return;
  }
  if (finder.owner == Owner::kNvml) {
    find(helpers.nvml_init, "nvmlInit_v2");
    find(helpers.nvml_uuid, "nvmlDeviceGetUUID");
    find(helpers.nvml_index, "nvmlDeviceGetIndex");
    find(helpers.nvml_by_uuid, "nvmlDeviceGetHandleByUUID");
    find(helpers.nvml_processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    return;
  }
  find(helpers.current_device, "cuCtxGetDevice");
  find(helpers.device_uuid, "cuDeviceGetUuid_v2");
  if (helpers.device_uuid == nullptr) find(helpers.device_uuid, "cuDeviceGetUuid");
  find(helpers.graph_nodes, "cuGraphGetNodes");
  find(helpers.node_type, "cuGraphNodeGetType");
  find(helpers.child_graph, "cuGraphChildGraphNodeGetGraph");
  find(helpers.current_context, "cuCtxGetCurrent");
  find(helpers.primary_state, "cuDevicePrimaryCtxGetState");
  find(helpers.is_capturing, "cuStreamIsCapturing");
  find(helpers.is_capturing_per_thread, "cuStreamIsCapturing_ptsz");
  find(helpers.default_pool, "cuDeviceGetDefaultMemPool");
  find(helpers.pool_attribute, "cuMemPoolGetAttribute");
  find(helpers.graph_memory, "cuDeviceGetGraphMemAttribute");
  find(helpers.allocation_node, "cuGraphMemAllocNodeGetParams");
  find(helpers.free_node, "cuGraphMemFreeNodeGetParams");
  find(helpers.context_id, "cuCtxGetId");
  find(helpers.event_create, "cuEventCreate");
  find(helpers.event_record, "cuEventRecord");
  find(helpers.event_record_ptsz, "cuEventRecord_ptsz");
  find(helpers.event_query, "cuEventQuery");
  find(helpers.event_elapsed, "cuEventElapsedTime");
  find(helpers.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
}

bool find_all(const Finder& finder) {
  Library library;
  if (!find_library(finder.soname, library)) return false;
  // It must never go away, now that programs hold its addresses through ours.
  if (dlopen(library.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == nullptr) {
    dlerror();
    return false;
  }
  auto* get = reinterpret_cast<GetProcAddress*>(library.find("cuGetProcAddress_v2"));
  for (int pass = 0; pass < 2; ++pass) {  // exported ones first: their names are certain
    for (const Entry& entry : kEntries) {
      if (entry.owner != finder.owner) continue;
      void* exported = library.find(entry.symbol);
      if ((exported != nullptr) != (pass == 0)) continue;
      void* real = exported != nullptr ? exported : address_of(entry, get);
      if (real == nullptr) {
        entry.real->store(
            finder.owner != Owner::kDriver ? nullptr : reinterpret_cast<void*>(not_supported),
            std::memory_order_release);
        continue;
      }
      if (exported == nullptr && wrapper_of(real) != nullptr) {
        real = reinterpret_cast<void*>(not_supported);  // another version's function, known as such
      } else {
        remember(real, entry.wrapper);
      }
      entry.real->store(real, std::memory_order_release);
    }
  }
  find_helpers(finder, library);
  if (finder.owner == Owner::kDriver) pacing_begins();
  tell(finder.soname);
  return true;
}

bool ready(Finder& finder) {
  constexpr int kPatience = 100'000;  // times a thread looks whether another is done
  for (int round = 0; round < kPatience; ++round) {
    int state = finder.state.load(std::memory_order_acquire);
    if (state == kReady) return true;
    if (state == kBusy) {
      if (looking == &finder) return false;
      sched_yield();
      continue;
    }
    if (!finder.state.compare_exchange_strong(state, kBusy)) continue;
    const Finder* before = looking;
    looking = &finder;
    const bool found = find_all(finder);
    looking = before;
    finder.state.store(found ? kReady : kUnknown, std::memory_order_release);
    return found;
  }
  return false;
}

}  // namespace

void* wrapper_of(const void* real) {
  for (std::size_t i = place_of(real), tried = 0; tried < kWrapped;
       i = (i + 1) % kWrapped, ++tried) {
    const void* found = wrapped[i].real.load(std::memory_order_acquire);
    if (found == nullptr) return nullptr;
    if (found == real) return wrapped[i].wrapper.load(std::memory_order_relaxed);
  }
  return nullptr;
}

bool driver_ready() {
  return driver.state.load(std::memory_order_acquire) == kReady || ready(driver);
}
bool nccl_ready() {
  return nccl.state.load(std::memory_order_acquire) == kReady || ready(nccl);
}
bool nvml_ready() {
  return nvml.state.load(std::memory_order_acquire) == kReady || ready(nvml);
}

// Whether this is the name of something that we wrap: 180 names, compared where the first letters
// agree. Lookups of other names never come here.
bool is_wrapped_name(const char* name) {
  for (const Entry& entry : kEntries) {
    if (strcmp(entry.symbol, name) == 0) return true;
  }
  return false;
}
bool is_own_address(const void* address) {
  for (const Entry& entry : kEntries) {
    if (entry.wrapper == address) return true;
  }
  return false;
}

}  // namespace assay::gpu
