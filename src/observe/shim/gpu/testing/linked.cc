// A program that is linked against the driver and NCCL, as those built on the driver API are:
// `gpu_linked TIMES` calls by symbol, NCCL first, and prints whether the loader's answer is the
// same function.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" {
int cuInit(unsigned);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
int cuMemAlloc_v2(std::uint64_t*, std::size_t);
int cuMemFree_v2(std::uint64_t);
int ncclGroupStart();
int next_marker();  // next_first.cc
}

int main(int count, char** arguments) {
  const long times = count > 1 ? std::strtol(arguments[1], nullptr, 10) : 1;
  ncclGroupStart();  // this thread counts before the driver is known
  cuInit(0);
  for (long i = 0; i < times; ++i) {
    cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  }
  std::uint64_t address = 0;
  cuMemAlloc_v2(&address, 100);
  cuMemFree_v2(address);
  std::printf(
      "same %d\n",
      ::dlsym(RTLD_DEFAULT, "cuLaunchKernel") == reinterpret_cast<void*>(cuLaunchKernel) ? 1 : 0);
  std::printf("next %d\n", next_marker());
  return 0;
}
