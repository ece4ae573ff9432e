// The minimum that a library in front of the driver can do: jump to it.
#include <dlfcn.h>

extern "C" {
__attribute__((visibility("hidden"))) void* noop_launch = nullptr;
__attribute__((visibility("hidden"))) void* noop_allocate = nullptr;
__attribute__((visibility("hidden"))) void* noop_free = nullptr;
}

__attribute__((constructor)) static void find_next() {
  noop_launch = ::dlsym(RTLD_NEXT, "cuLaunchKernel");
  noop_allocate = ::dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  noop_free = ::dlsym(RTLD_NEXT, "cuMemFree_v2");
}

#define NOOP(symbol, next)                                                            \
  asm(".text\n.p2align 4\n.globl " #symbol "\n.type " #symbol ", @function\n" #symbol \
      ":\n jmpq *" #next "(%rip)\n.size " #symbol ", .-" #symbol "\n");
NOOP(cuLaunchKernel, noop_launch)
NOOP(cuMemAlloc_v2, noop_allocate)
NOOP(cuMemFree_v2, noop_free)
