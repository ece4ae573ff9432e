// GroupedKernel: the products of all experts in one launch, in bf16, by a kernel of our own for
// Hopper (grouped_kernel.cuh). It reads the rows of experts from device memory. Which products it
// is used for is measured (grouped_products.h).
#pragma once

#include "train/cuda/device.h"

namespace assay::train::cuda {

struct GroupedProduct;

class GroupedKernel {
 public:
  // Looks at the current GPU.
  void open();
  // Whether it can compute this.
  [[nodiscard]] bool takes(const GroupedProduct& product) const;
  void multiply(Device& device, const GroupedProduct& product) const;

 private:
  int multiprocessors_ = 0;  // 0: it cannot run on this GPU
  void* encode_ = nullptr;   // the driver's function that describes tensors
};

}  // namespace assay::train::cuda
