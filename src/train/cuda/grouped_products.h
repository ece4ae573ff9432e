// GroupedProducts: the products of a mixture's experts, each with the rows that its tokens have
// filled. An implementation is chosen by measurement (bench/expert_products_bench.cc); this is the
// interface, and the one that there is: a loop of cuBLASLt's products.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "base/result.h"
#include "train/cuda/device.h"
#include "train/cuda/matmul.h"

namespace assay::train::cuda {

// Three forms, by what is transposed; rows of `a` are in the order of experts:
//   b     c = a b^T: rows times weights
//   none  c = a b: gradients of rows
//   a     c = a^T b, where b has rows of experts too: gradients of weights
// Weights, and their gradients, lie one below the other.
//
// In fp8 all operands lie along what is summed, so those of the last two forms are transposes:
// weights side by side, and of rows each expert's columns begin and end at a multiple of
// step::kFp8Alignment.
struct GroupedProduct {
  bool transpose_a = false;
  bool transpose_b = false;
  bool adds = false;
  Matrix a;
  Matrix b;
  Matrix c;
  Matrix scale_a;  // not empty: a and b are fp8
  Matrix scale_b;
  std::int64_t experts = 0;
  std::int64_t pieces = 1;  // of an expert's rows: see step::Op::pieces
  // Of all experts; 0: as many as there is room for. Where ranks have different experts there is
  // room for the most that can come, which is several times what comes.
  std::int64_t expected_rows = 0;

  // Products with rows are as many as there are pieces; those of gradients, as experts.
  [[nodiscard]] std::int64_t products() const { return transpose_a ? experts : experts * pieces; }
  [[nodiscard]] bool fp8() const { return !scale_a.empty(); }
  // Whether rows of experts are columns of the operands.
  [[nodiscard]] bool sums_over_columns() const { return transpose_a && fp8(); }
  // Rows that there is room for.
  [[nodiscard]] std::int64_t rows() const { return sums_over_columns() ? a.cols : a.rows; }
  // Of one expert, if it has the `count` rows, or columns, from `first` on.
  [[nodiscard]] Product of_expert(std::int64_t expert, std::int64_t first,
                                  std::int64_t count) const;
  // The product that is timed: of an expert or piece with an even share, rounded up.
  [[nodiscard]] Product planned() const;
};

class GroupedProducts {
 public:
  virtual ~GroupedProducts() = default;
  // Before the first step: overwrites the operands.
  virtual void tune(Device& device, const GroupedProduct& product) = 0;
  // `first_rows`: of all pieces, and the end. Experts without rows get no result, and zeros as the
  // gradient of their weights.
  virtual void multiply(Device& device, const GroupedProduct& product,
                        std::span<const std::int32_t> first_rows) = 0;
};

// Products of different experts may run side by side, so that one fills the multiprocessors that
// another is leaving: on as many lanes as are fastest for a product. Results do not depend on that,
// but the fastest algorithm does: one whose tiles leave multiprocessors idle when it is alone may
// win among others. So algorithms and lanes are timed together, on all experts, with even and with
// uneven rows.
inline constexpr int kLanes = 4;

class LoopedProducts : public GroupedProducts {
 public:
  // `products` must outlive this.
  explicit LoopedProducts(Matmul& products) : products_(products) {}
  LoopedProducts(const LoopedProducts&) = delete;
  LoopedProducts& operator=(const LoopedProducts&) = delete;
  ~LoopedProducts() override;
  base::Result<void> open();

  void tune(Device& device, const GroupedProduct& product) override;
  void multiply(Device& device, const GroupedProduct& product,
                std::span<const std::int32_t> first_rows) override;
  // For measurements: as many lanes for every product; 0: as many as are fastest.
  void use_lanes(int lanes) { fixed_lanes_ = lanes; }
  [[nodiscard]] int lanes_of(const GroupedProduct& product) const;

 private:
  void multiply_on(Device& device, const GroupedProduct& product,
                   std::span<const std::int32_t> first_rows, int lanes);
  float time(Device& device, const GroupedProduct& product, int lanes, int count);
  static void clear(Device& device, const Matrix& gradient);

  Matmul& products_;
  // Lane 0 is the device's own stream.
  cudaStream_t streams_[kLanes] = {};
  cudaEvent_t done_[kLanes] = {};
  cudaEvent_t begin_ = nullptr;  // with times
  cudaEvent_t end_ = nullptr;
  std::map<ProductKey, int> lanes_;  // by the planned product
  int fixed_lanes_ = 0;
};

}  // namespace assay::train::cuda
