#include "train/cuda/grouped_products.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "base/error.h"

namespace assay::train::cuda {
namespace {

constexpr std::int64_t kRoundPlanned = 128;  // the tallest tile of any algorithm
constexpr int kLaneRepeats = 3;
// Fewer lanes are preferred unless more of them are faster by this: a measurement's noise.
constexpr float kWorthMoreLanes = 0.99F;

Matrix rows_from(const Matrix& m, std::int64_t first, std::int64_t count) {
  return {m.as<std::byte>() + first * m.stride * 2, count, m.cols, m.stride};
}

// Bytes that every row of a matrix, wherever it begins, is aligned to.
std::int64_t alignment_of_rows(const Matrix& m) {
  constexpr std::uint64_t kMost = 256;
  return std::int64_t{1} << std::countr_zero(static_cast<std::uint64_t>(m.stride) * 2 | kMost);
}

std::int64_t rows_to_expect(const GroupedProduct& p) {
  return p.expected_rows > 0 ? p.expected_rows : p.a.rows;
}

std::vector<std::int32_t> even_rows(const GroupedProduct& p) {
  std::vector<std::int32_t> first_rows;
  const std::int64_t pieces = p.experts * p.pieces;
  for (std::int64_t i = 0; i <= pieces; ++i) {
    first_rows.push_back(static_cast<std::int32_t>(rows_to_expect(p) * i / pieces));
  }
  return first_rows;
}

bool in_order(std::span<const std::int32_t> first_rows, const GroupedProduct& p) {
  return first_rows.size() == static_cast<std::size_t>(p.experts * p.pieces) + 1 &&
         first_rows.front() == 0 && first_rows.back() <= p.a.rows &&
         std::ranges::is_sorted(first_rows);
}

}  // namespace

Product GroupedProduct::of_expert(std::int64_t expert, std::int64_t first,
                                  std::int64_t count) const {
  const auto share = [&](const Matrix& m) {
    const std::int64_t each = m.rows / experts;
    return rows_from(m, expert * each, each);
  };
  Product p{.transpose_a = transpose_a, .transpose_b = transpose_b};
  p.a = rows_from(a, first, count);
  p.b = transpose_a ? rows_from(b, first, count) : share(b);
  p.c = transpose_a ? share(c) : rows_from(c, first, count);
  if (adds) {
    p.addend = p.c;
    p.beta = 1;
  }
  p.alignment = std::min({alignment_of_rows(a), alignment_of_rows(b), alignment_of_rows(c)});
  return p;
}

Product GroupedProduct::planned() const {
  const std::int64_t even = (rows_to_expect(*this) + products() - 1) / products();
  const std::int64_t rounded = (even + kRoundPlanned - 1) / kRoundPlanned * kRoundPlanned;
  return of_expert(0, 0, std::min(a.rows, rounded));
}

LoopedProducts::~LoopedProducts() {
  for (cudaStream_t stream : streams_) {
    if (stream == nullptr) continue;
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  for (cudaEvent_t event : done_) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  for (cudaEvent_t event : {begin_, end_}) {
    if (event != nullptr) cudaEventDestroy(event);
  }
}

base::Result<void> LoopedProducts::open() {
  bool made = cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess;
  for (int i = 0; made && i < kLanes; ++i) {
    made =
        cudaEventCreateWithFlags(&done_[i], cudaEventDisableTiming) == cudaSuccess &&
        (i == 0 || cudaStreamCreateWithFlags(&streams_[i], cudaStreamNonBlocking) == cudaSuccess);
  }
  if (made) return {};
  return base::fail(base::unfit_error("GPU", "streams for the products of experts cannot be made"));
}

int LoopedProducts::lanes_of(const GroupedProduct& product) const {
  if (fixed_lanes_ > 0) return fixed_lanes_;
  const auto known = lanes_.find(key_of(product.planned()));
  return known == lanes_.end() ? 1 : known->second;
}

void LoopedProducts::clear(Device& device, const Matrix& gradient) {
  const auto width = static_cast<std::size_t>(gradient.cols) * 2;
  device.check(cudaMemset2DAsync(gradient.data, static_cast<std::size_t>(gradient.stride) * 2, 0,
                                 width, static_cast<std::size_t>(gradient.rows), device.stream),
               "gradient of an expert without tokens");
}

void LoopedProducts::multiply_on(Device& device, const GroupedProduct& p,
                                 std::span<const std::int32_t> first_rows, int lanes) {
  const Product planned = p.planned();
  const auto lane_at = [&](int i) {
    auto* others = static_cast<std::byte*>(device.workspace.lanes);
    return i == 0 ? Lane{device.stream, device.workspace.products}
                  : Lane{streams_[i], others + (i - 1) * device.workspace.products_bytes};
  };
  device.check(cudaEventRecord(done_[0], device.stream), "event");
  for (int i = 1; i < lanes; ++i) {
    device.check(cudaStreamWaitEvent(streams_[i], done_[0], 0), "event");
  }
  int turn = 0;
  const std::int64_t products = p.products();
  const std::int64_t pieces = p.experts * p.pieces / products;  // of a product
  for (std::int64_t i = 0; i < products; ++i) {
    const std::int64_t first = first_rows[static_cast<std::size_t>(i * pieces)];
    const std::int64_t count = first_rows[static_cast<std::size_t>((i + 1) * pieces)] - first;
    const Product product = p.of_expert(i * p.experts / products, first, count);
    if (count > 0) {
      products_.multiply_like(device, planned, product, lane_at(turn));
      turn = (turn + 1) % lanes;
    } else if (p.transpose_a && !p.adds) {
      clear(device, product.c);
    }
  }
  for (int i = 1; i < lanes; ++i) {
    device.check(cudaEventRecord(done_[i], streams_[i]), "event");
    device.check(cudaStreamWaitEvent(device.stream, done_[i], 0), "event");
  }
}

void LoopedProducts::multiply(Device& device, const GroupedProduct& p,
                              std::span<const std::int32_t> first_rows) {
  if (!in_order(first_rows, p)) return device.failed("the rows of experts are not in order");
  multiply_on(device, p, first_rows, lanes_of(p));
}

// Milliseconds of all products.
float LoopedProducts::time(Device& device, const GroupedProduct& p,
                           std::span<const std::int32_t> first_rows, int lanes, int count) {
  cudaEventRecord(begin_, device.stream);
  for (int i = 0; i < count; ++i) multiply_on(device, p, first_rows, lanes);
  cudaEventRecord(end_, device.stream);
  float ms = 0;
  if (cudaEventSynchronize(end_) != cudaSuccess) return std::numeric_limits<float>::infinity();
  cudaEventElapsedTime(&ms, begin_, end_);
  return ms / static_cast<float>(count);
}

void LoopedProducts::tune(Device& device, const GroupedProduct& p) {
  const Product planned = p.planned();
  const ProductKey key = key_of(planned);
  if (lanes_.contains(key)) return;
  products_.tune(device, planned);
  const std::vector<std::int32_t> first_rows = even_rows(p);
  time(device, p, first_rows, 1, 1);
  float best = std::numeric_limits<float>::infinity();
  for (int lanes = 1; lanes <= kLanes; lanes *= 2) {
    const float ms = time(device, p, first_rows, lanes, kLaneRepeats);
    if (ms >= kWorthMoreLanes * best) continue;
    best = ms;
    lanes_[key] = lanes;
  }
}

}  // namespace assay::train::cuda
