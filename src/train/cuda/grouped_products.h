// GroupedProducts: the products of a mixture's experts, computed in the faster of two ways. Which
// one that is for a given product and GPU is measured, and remembered like the algorithms of other
// products (tuning.h):
// - a loop of cuBLASLt products, which needs the experts' row counts on the host;
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

// Products of different experts may run concurrently on several lanes, so that one fills the
// multiprocessors that another no longer uses; the fastest number of lanes is measured per product.
// The number of lanes does not affect results, but it affects which algorithm is fastest: one whose
// tiles leave multiprocessors idle when it runs alone may be the fastest next to others. So
// algorithms and lanes are timed together, on all experts, with even and with uneven rows.
inline constexpr int kLanes = 4;
// Special values in place of a number of lanes.
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

  // Call before the first step: it overwrites the operands.
  void tune(Device& device, const GroupedProduct& product);
  [[nodiscard]] bool needs_rows_on_host(const GroupedProduct& product) const;
  // `first_rows`: the first row of every piece, then the end; needed only if needs_rows_on_host().
  // Experts without rows get no result, and zeros as their weights' gradient.
  void multiply(Device& device, const GroupedProduct& product,
                std::span<const std::int32_t> first_rows);
  // For measurements: forces this number of lanes, or the kernel where it is supported.
  void use_lanes(int lanes) { fixed_lanes_ = lanes; }
  // Number of lanes, or kByKernel.
  [[nodiscard]] int lanes_of(const GroupedProduct& product) const;

 private:
  struct Rows;  // test data for timing
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
  cudaEvent_t begin_ = nullptr;  // events with timing
  cudaEvent_t end_ = nullptr;
  std::map<ProductKey, int> lanes_;  // by the planned product
  int fixed_lanes_ = kAsMeasured;
};

}  // namespace assay::train::cuda
