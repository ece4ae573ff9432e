// The libraries with wrapped functions. Their functions are found once, when one is first called
// and the library is loaded, and then identified by address.
#pragma once

#include "observe/shim/gpu/gpu.h"
#include "observe/shim/gpu/lookup/elf.h"

namespace assay::gpu {

struct Entry {
  const char* symbol;
  std::atomic<void*>* real;
  void* wrapper;
  const char* name;  // for cuGetProcAddress; null: not available there
  int version;
  bool per_thread;
};

struct Finder {
  enum State : int { kUnknown, kBusy, kReady };

  const char* soname;
  const Entry* entries;
  std::size_t number;
  Result (*missing)();  // called in place of functions that the library does not have
  // Finds the functions that are called but not wrapped.
  void (*found)(const Library& library);
  std::atomic<int> state{kUnknown};

  // Whether the library is loaded and its functions are known.
  // Not inline: lookup.cc is compiled without sanitizers, and ThreadSanitizer would miss the
  // synchronization.
  bool ready();

 private:
  bool find();
  bool find_all();
};

// driver.cc
extern constinit Finder driver_finder;
extern constinit Finder nccl_finder;
extern constinit Finder nvml_finder;
// blas_library.cc: of CUDA 11, 12 and 13, which may be in one process.
extern constinit Finder cublas_11, cublas_12, cublas_13;
extern constinit Finder cublas_lt_11, cublas_lt_12, cublas_lt_13;

// The library whose function this wrapper wraps; null: not a wrapper.
Finder* finder_of_wrapper(const void* address);
// Whether some library that has a function of this name is loaded.
bool some_ready(const char* name);

}  // namespace assay::gpu
