// GroupedKernel: the products of all experts in one launch, in bf16, by our own kernel for Hopper
// (grouped_kernel.cuh). It reads the experts' row ranges from device memory. Measurements decide
// which products it is used for (grouped_products.h).
#pragma once

#include "train/cuda/device.h"

namespace assay::train::cuda {

struct GroupedProduct;

class GroupedKernel {
 public:
  // Checks whether the current GPU can run it.
  void open();
  // Whether the kernel supports this product.
  [[nodiscard]] bool takes(const GroupedProduct& product) const;
  void multiply(Device& device, const GroupedProduct& product) const;

 private:
  int multiprocessors_ = 0;  // 0: it cannot run on this GPU
  void* encode_ = nullptr;   // the driver's cuTensorMapEncodeTiled
};

}  // namespace assay::train::cuda
