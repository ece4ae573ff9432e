// The kernels for processors without a vector kernel.
#include "hash/kernel.h"

namespace assay::hash {

std::span<const Kernel* const> usable_kernels() {
  static constexpr const Kernel* kAll[] = {&kPortableKernel};
  return kAll;
}

}  // namespace assay::hash
