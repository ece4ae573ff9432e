// How programs find the driver's functions: dlsym and dlvsym on a loaded library, and
// cuGetProcAddress in both versions. The real lookup is always made first, with the same arguments;
// its result is replaced if, and only if, it is the address of a wrapped function.
#include <dlfcn.h>

#include "observe/shim/gpu/lookup/driver.h"
#include "observe/shim/gpu/lookup/finder.h"
#include "observe/shim/gpu/region/region.h"

extern "C" {

// For stubs.cc. `assay_gpu_is_ours` fills them before the first jump.
ASSAY_HIDDEN constinit std::atomic<void*> assay_gpu_next_dlsym{nullptr};
ASSAY_HIDDEN constinit std::atomic<void*> assay_gpu_next_dlvsym{nullptr};
ASSAY_HIDDEN int assay_gpu_is_ours(void* handle, const char* name);
ASSAY_HIDDEN void* assay_gpu_dlsym(void* handle, const char* name);
ASSAY_HIDDEN void* assay_gpu_dlvsym(void* handle, const char* name, const char* version);
}

namespace assay::gpu {
namespace {

void* no_symbol() {
  return nullptr;
}

bool find_loader_functions() {
  if (assay_gpu_next_dlvsym.load(std::memory_order_acquire) != nullptr) return true;
  void* dlsym_found = find_after_us("dlsym");
  void* dlvsym_found = find_after_us("dlvsym");
  const bool found = dlsym_found != nullptr && dlvsym_found != nullptr;
  void* none = reinterpret_cast<void*>(no_symbol);
  assay_gpu_next_dlsym.store(dlsym_found != nullptr ? dlsym_found : none,
                             std::memory_order_release);
  assay_gpu_next_dlvsym.store(dlvsym_found != nullptr ? dlvsym_found : none,
                              std::memory_order_release);
  return found;
}

// While the process still has one thread and loads nothing.
__attribute__((constructor)) void find_early() {
  find_loader_functions();
}

bool is_upper(char letter) {
  return letter >= 'A' && letter <= 'Z';
}
bool is_nccl(const char* name) {
  return name[0] == 'n' && name[1] == 'c' && name[2] == 'c' && name[3] == 'l' && is_upper(name[4]);
}
bool is_nvml(const char* name) {
  return name[0] == 'n' && name[1] == 'v' && name[2] == 'm' && name[3] == 'l' && is_upper(name[4]);
}
bool is_cublas(const char* name) {
  return name[0] == 'c' && name[1] == 'u' && name[2] == 'b' && name[3] == 'l' && name[4] == 'a' &&
         name[5] == 's';
}
bool is_cuda(const char* name) {
  return name[0] == 'c' && name[1] == 'u' && is_upper(name[2]);
}
bool is_loader(const char* name) {
  return same(name, "dlsym") || same(name, "dlvsym");
}

bool is_ready(const char* name) {
  if (is_nvml(name)) return nvml_ready();
  if (is_cublas(name)) return some_ready(name);
  return is_nccl(name) ? nccl_ready() : driver_ready();
}

// The loader's result, or its wrapper.
void* replaced(void* found, const char* name) {
  if (found == nullptr || region() == nullptr || !is_ready(name)) return found;
  void* wrapper = wrapper_of(found);
  return wrapper != nullptr ? wrapper : found;
}

// `query(handle)` does the real lookup.
template <typename Query>
void* answer(void* handle, const char* name, void* own, Query query) {
  void* found = query(handle);
  if (is_loader(name)) {
    const void* next = name[2] == 's' ? assay_gpu_next_dlsym.load() : assay_gpu_next_dlvsym.load();
    return found != nullptr && found == next ? own : found;
  }
  // A search through all libraries finds this library's symbols even without a driver; callers must
  // not see a function that would not exist without it.
  Finder* const own_of = found == nullptr ? nullptr : finder_of_wrapper(found);
  if (own_of == nullptr || own_of->ready()) return replaced(found, name);
  found = query(RTLD_NEXT);
  asm volatile(""
               : "+r"(found));  // called, not jumped to: RTLD_NEXT must be relative to this library
  return found;
}

}  // namespace
}  // namespace assay::gpu

extern "C" {

// Whether the result may be replaced. Never for RTLD_NEXT: its caller is a wrapper itself.
int assay_gpu_is_ours(void* handle, const char* name) {
  using namespace assay::gpu;
  if (!find_loader_functions() || handle == RTLD_NEXT || name == nullptr) return 0;
  if (is_cuda(name) || is_nccl(name) || is_nvml(name) || is_cublas(name)) {
    return is_wrapped_name(name) ? 1 : 0;
  }
  return name[0] == 'd' && is_loader(name) ? 1 : 0;
}

void* assay_gpu_dlsym(void* handle, const char* name) {
  using namespace assay::gpu;
  auto* next = real<void*(void*, const char*)>(assay_gpu_next_dlsym);
  void* own = reinterpret_cast<void*>(name[2] == 's' ? reinterpret_cast<void (*)()>(dlsym)
                                                     : reinterpret_cast<void (*)()>(dlvsym));
  return answer(handle, name, own, [&](void* from) { return next(from, name); });
}

void* assay_gpu_dlvsym(void* handle, const char* name, const char* version) {
  using namespace assay::gpu;
  auto* next = real<void*(void*, const char*, const char*)>(assay_gpu_next_dlvsym);
  void* own = reinterpret_cast<void*>(name[2] == 's' ? reinterpret_cast<void (*)()>(dlsym)
                                                     : reinterpret_cast<void (*)()>(dlvsym));
  return answer(handle, name, own, [&](void* from) { return next(from, name, version); });
}

ASSAY_EXPORTED int cuGetProcAddress(const char* name, void** function, int version,
                                    std::uint64_t flags) {
  ASSAY_REAL(cuGetProcAddress);
  const int result = next(name, function, version, flags);
  if (result == 0 && function != nullptr && name != nullptr) {
    *function = assay::gpu::replaced(*function, name);
  }
  return result;
}

ASSAY_EXPORTED int cuGetProcAddress_v2(const char* name, void** function, int version,
                                       std::uint64_t flags, int* status) {
  ASSAY_REAL(cuGetProcAddress_v2);
  const int result = next(name, function, version, flags, status);
  if (result == 0 && function != nullptr && name != nullptr) {
    *function = assay::gpu::replaced(*function, name);
  }
  return result;
}
}
