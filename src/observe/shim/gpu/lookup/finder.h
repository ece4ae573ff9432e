// Libraries whose functions we wrap: which functions, found once, when one is first called
// and the library is loaded. Each is known by its address from then on, with the wrapper that
// stands for it.
#pragma once

#include "observe/shim/gpu/gpu.h"
#include "observe/shim/gpu/lookup/elf.h"

namespace assay::gpu {

struct Entry {
  const char* symbol;
  std::atomic<void*>* real;
  void* wrapper;
  const char* name;  // as cuGetProcAddress knows it; null: it does not
  int version;
  bool per_thread;
};

struct Finder {
  enum State : int { kUnknown, kBusy, kReady };

  const char* soname;
  const Entry* entries;
  std::size_t number;
  Result (*missing)();  // what stands for functions that the library does not have
  // Takes from the library what is used and not wrapped.
  void (*found)(const Library& library);
  std::atomic<int> state{kUnknown};

  // Whether the library is loaded and its functions are known.
  // Not inline: who calls it may be compiled without a sanitizer (lookup.cc), which would then not
  // see that what was found happened before.
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

// The library whose function this wrapper stands for; null: it is no wrapper.
Finder* finder_of_wrapper(const void* address);
// Whether some library that has a function of this name is loaded.
bool some_ready(const char* name);

}  // namespace assay::gpu
