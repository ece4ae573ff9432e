#include "hash/x86/kernels.h"

#include <array>

namespace assay::hash {
namespace {

struct Usable {
  std::array<const Kernel*, 4> kernels{};
  std::size_t count = 0;

  Usable() {
    add(&kPortableKernel, true);
    // These check the processor and, for wide registers, that the operating system saves them.
    __builtin_cpu_init();
    add(&kSse41Kernel, __builtin_cpu_supports("sse4.1") != 0);
    add(&kAvx2Kernel, __builtin_cpu_supports("avx2") != 0);
    add(&kAvx512Kernel, __builtin_cpu_supports("avx512f") != 0);
  }
  void add(const Kernel* kernel, bool usable) {
    if (usable) kernels[count++] = kernel;
  }
};

}  // namespace

std::span<const Kernel* const> usable_kernels() {
  static const Usable usable;
  return std::span(usable.kernels).first(usable.count);
}

}  // namespace assay::hash
