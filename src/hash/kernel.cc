#include "hash/kernel.h"

namespace assay::hash {

const Kernel& best_kernel() {
  return *usable_kernels().back();
}

const char* simd_level() {
  return best_kernel().name;
}

}  // namespace assay::hash
