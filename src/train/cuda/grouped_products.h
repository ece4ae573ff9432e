// GroupedProducts: the products of a mixture's experts. There are two ways, of which the faster one
// is used for a product; which one that is on a GPU is measured and remembered as the algorithms of
// other products are (tuning.h):
// - a loop of cuBLASLt's products, which needs the rows of experts on the host;
// - one launch of our own kernel (grouped_kernel.h), on Hopper and in bf16, which does not.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <span>

#include "base/result.h"
#include "train/cuda/device.h"
#include "train/cuda/grouped_kernel.h"
#include "train/cuda/grouped_product.h"
#include "train/cuda/matmul.h"

namespace assay::train::cuda {

// Products of different experts may run side by side, so that one fills the multiprocessors that
// another is leaving: on as many lanes as are fastest for a product. Results do not depend on that,
// but the fastest algorithm does: one whose tiles leave multiprocessors idle when it is alone may
// win among others. So algorithms and lanes are timed together, on all experts, with even and with
// uneven rows.
inline constexpr int kLanes = 4;
// Instead of a number of lanes.
inline constexpr int kAsMeasured = 0;
inline constexpr int kByKernel = -1;

class GroupedProducts {
 public:
  // `products` must outlive this.
  explicit GroupedProducts(Matmul& products) : products_(products) {}
  GroupedProducts(const GroupedProducts&) = delete;
  GroupedProducts& operator=(const GroupedProducts&) = delete;
  ~GroupedProducts();
  base::Result<void> open();

  // Before the first step: overwrites the operands.
  void tune(Device& device, const GroupedProduct& product);
  [[nodiscard]] bool needs_rows_on_host(const GroupedProduct& product) const;
  // `first_rows`: of all pieces, and the end; if they are needed on the host. Experts without rows
  // get no result, and zeros as the gradient of their weights.
  void multiply(Device& device, const GroupedProduct& product,
                std::span<const std::int32_t> first_rows);
  // For measurements: so many lanes, or the kernel where it can be used, for every product.
  void use_lanes(int lanes) { fixed_lanes_ = lanes; }
  // Lanes, or kByKernel.
  [[nodiscard]] int lanes_of(const GroupedProduct& product) const;

 private:
  struct Rows;  // to time with
  struct Way;
  void multiply_on(Device& device, const GroupedProduct& product,
                   std::span<const std::int32_t> first_rows, int lanes);
  float time(Device& device, const GroupedProduct& product, const Rows& rows, int lanes, int count);
  [[nodiscard]] bool can_use_kernel(const GroupedProduct& product) const;
  void choose(Device& device, const GroupedProduct& product, const Rows& rows);
  static void clear(Device& device, const Matrix& gradient);

  Matmul& products_;
  GroupedKernel kernel_;
  // Lane 0 is the device's own stream.
  cudaStream_t streams_[kLanes] = {};
  cudaEvent_t done_[kLanes] = {};
  cudaEvent_t begin_ = nullptr;  // with times
  cudaEvent_t end_ = nullptr;
  std::map<ProductKey, int> lanes_;  // by the planned product
  int fixed_lanes_ = kAsMeasured;
};

}  // namespace assay::train::cuda
