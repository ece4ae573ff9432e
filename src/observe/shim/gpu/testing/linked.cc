// A program linked against the driver, NCCL and cuBLAS, as programs built on the driver API are:
// `gpu_linked TIMES` calls functions by symbol, NCCL first, and prints whether dlsym returns the
// same function.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "observe/shim/gpu/testing/blas_shapes.h"

extern "C" {
int cuInit(unsigned);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
int cuMemAlloc_v2(std::uint64_t*, std::size_t);
int cuMemFree_v2(std::uint64_t);
int ncclGroupStart();
int cublasCreate_v2(void**);
fakeblas::Shapes<int>::PLAIN cublasDgemm_v2;
fakeblas::Shapes<long>::EX cublasGemmEx_64;
fakeblas::LtMatmul cublasLtMatmul;
int next_marker();  // next_first.cc
}

int main(int count, char** arguments) {
  const long times = count > 1 ? std::strtol(arguments[1], nullptr, 10) : 1;
  ncclGroupStart();  // this thread counts before the driver is found
  cuInit(0);
  for (long i = 0; i < times; ++i) {
    cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  }
  std::uint64_t address = 0;
  cuMemAlloc_v2(&address, 100);
  cuMemFree_v2(address);
  void* handle = nullptr;
  cublasCreate_v2(&handle);
  cublasDgemm_v2(handle, 0, 1, 100, 200, 300, nullptr, nullptr, 1, nullptr, 1, nullptr, nullptr, 1);
  cublasGemmEx_64(handle, 1, 0, 10, 20, 30, nullptr, nullptr, 4, 1, nullptr, 4, 1, nullptr, nullptr,
                  4, 1, 68, -1);
  std::printf("refused %d\n",
              cublasLtMatmul(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                             nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr));
  std::printf(
      "same %d\n",
      ::dlsym(RTLD_DEFAULT, "cuLaunchKernel") == reinterpret_cast<void*>(cuLaunchKernel) ? 1 : 0);
  std::printf("next %d\n", next_marker());
  return 0;
}
