// The kernels of processors without vector code here.
#include "hash/kernel.h"

namespace assay::hash {

std::span<const Kernel* const> usable_kernels() {
  static constexpr const Kernel* kAll[] = {&kPortableKernel};
  return kAll;
}

}  // namespace assay::hash
