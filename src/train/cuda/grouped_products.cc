#include "train/cuda/grouped_products.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "base/error.h"
#include "step/rules.h"
#include "train/cuda/kernels.h"

namespace assay::train::cuda {
namespace {

constexpr std::int64_t kRoundPlanned = 128;  // the tallest tile of any algorithm
constexpr float kHopelessGroup = 1.5F;       // times the best so far: abandoned
constexpr int kGroupRepeats = 3;
// The best few are timed again: each long enough to reach the power limit, if it may take long.
struct GroupRace {
  std::size_t candidates;  // the likeliest
  std::size_t finalists;
  float final_ms;
};
constexpr GroupRace kThoroughRace{32, 8, 120};
constexpr GroupRace kQuickRace{12, 3, 20};

constexpr std::int64_t kHalf = 2;  // bytes of an element
constexpr std::int64_t kFp8 = 1;

Matrix rows_from(const Matrix& m, std::int64_t first, std::int64_t count, std::int64_t bytes) {
  return {m.as<std::byte>() + first * m.stride * bytes, count, m.cols, m.stride};
}

// Of fp8.
Matrix columns_from(const Matrix& m, std::int64_t first, std::int64_t count) {
  return {m.as<std::byte>() + first, m.rows, count, m.stride};
}

// Bytes that every row of a matrix, wherever it begins, is aligned to.
std::int64_t alignment_of_rows(const Matrix& m, std::int64_t bytes) {
  constexpr std::uint64_t kMost = 256;
  return std::int64_t{1} << std::countr_zero(static_cast<std::uint64_t>(m.stride * bytes) | kMost);
}

std::int64_t rows_to_expect(const GroupedProduct& p) {
  return p.expected_rows > 0 ? p.expected_rows : p.rows();
}

std::int64_t padded(std::int64_t rows) {
  return (rows + step::kFp8Alignment - 1) / step::kFp8Alignment * step::kFp8Alignment;
}

// Rows of pieces from (1 - spread) to (1 + spread) times an even share.
std::vector<std::int32_t> rows_to_time(const GroupedProduct& p, double spread) {
  std::vector<std::int32_t> first_rows;
  const std::int64_t pieces = p.experts * p.pieces;
  const auto all = static_cast<double>(rows_to_expect(p));
  for (std::int64_t i = 0; i <= pieces; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(pieces);
    const double before = share * (1 - spread * (1 - share));
    first_rows.push_back(static_cast<std::int32_t>(all * before));
  }
  return first_rows;
}

bool in_order(std::span<const std::int32_t> first_rows, const GroupedProduct& p) {
  return first_rows.size() == static_cast<std::size_t>(p.experts * p.pieces) + 1 &&
         first_rows.front() == 0 && first_rows.back() <= p.rows() &&
         std::ranges::is_sorted(first_rows);
}

}  // namespace

Product GroupedProduct::of_expert(std::int64_t expert, std::int64_t first,
                                  std::int64_t count) const {
  const auto share = [&](const Matrix& m, std::int64_t bytes) {
    const std::int64_t each = m.rows / experts;
    return rows_from(m, expert * each, each, bytes);
  };
  Product p{.transpose_a = transpose_a, .transpose_b = transpose_b};
  p.c = transpose_a ? share(c, kHalf) : rows_from(c, first, count, kHalf);
  if (fp8()) {
    p.transpose_a = false;
    p.transpose_b = true;
    p.alpha = 1 / (kFp8Range * kFp8Range);
    p.scale_a = scale_a;
    p.scale_b = scale_b;
    p.alignment = step::kFp8Alignment;  // of columns, and so of everything
    p.a = transpose_a ? columns_from(a, first, count) : rows_from(a, first, count, kFp8);
    p.b = transpose_a   ? columns_from(b, first, count)
          : transpose_b ? share(b, kFp8)
                        : columns_from(b, expert * (b.cols / experts), b.cols / experts);
  } else {
    p.a = rows_from(a, first, count, kHalf);
    p.b = transpose_a ? rows_from(b, first, count, kHalf) : share(b, kHalf);
    p.alignment = std::min(alignment_of_rows(a, kHalf), alignment_of_rows(b, kHalf));
  }
  p.alignment = std::min(p.alignment, alignment_of_rows(c, kHalf));
  if (adds) {
    p.addend = p.c;
    p.beta = 1;
  }
  return p;
}

Product GroupedProduct::planned() const {
  const std::int64_t even = (rows_to_expect(*this) + products() - 1) / products();
  const std::int64_t rounded = (even + kRoundPlanned - 1) / kRoundPlanned * kRoundPlanned;
  Product product = of_expert(0, 0, std::min(rows(), rounded));
  product.in_group = true;
  return product;
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
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < products; ++i) {
    std::int64_t first = first_rows[static_cast<std::size_t>(i * pieces)];
    std::int64_t count = first_rows[static_cast<std::size_t>((i + 1) * pieces)] - first;
    if (p.sums_over_columns()) {
      first = next;
      count = padded(count);
    }
    next = first + count;
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

// Milliseconds of all products, with even rows and with uneven ones.
float LoopedProducts::time(Device& device, const GroupedProduct& p, int lanes, int count) {
  constexpr double kSpread = 0.5;
  const auto even = rows_to_time(p, 0);
  const auto uneven = rows_to_time(p, kSpread);
  cudaEventRecord(begin_, device.stream);
  for (int i = 0; i < count; ++i) {
    multiply_on(device, p, even, lanes);
    multiply_on(device, p, uneven, lanes);
  }
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
  const auto fill = p.fp8() ? fill_random_fp8 : fill_random;
  for (const Matrix& m : {p.a, p.b}) fill(device, m.data, (m.rows - 1) * m.stride + m.cols);
  struct Way {
    float ms = std::numeric_limits<float>::infinity();
    cublasLtMatmulAlgo_t algorithm{};
    int lanes = 1;
  };
  std::vector<Way> ways;
  bool is_known = false;
  float best = std::numeric_limits<float>::infinity();
  const GroupRace& race = products_.is_thorough() ? kThoroughRace : kQuickRace;
  auto candidates = products_.suggestions(device, planned, is_known);
  candidates.resize(std::min(candidates.size(), race.candidates));
  for (const auto& algorithm : candidates) {
    products_.use(planned, algorithm, false);
    time(device, p, 1, 1);  // loads the kernels
    Way way{.algorithm = algorithm};
    for (int lanes = 1; lanes <= kLanes; lanes *= 2) {
      if (time(device, p, lanes, 1) > kHopelessGroup * best) break;
      const float ms = time(device, p, lanes, kGroupRepeats);
      if (ms < way.ms) way = {ms, algorithm, lanes};
    }
    best = std::min(best, way.ms);
    if (way.ms <= kHopelessGroup * best) ways.push_back(way);
  }
  if (ways.empty()) return products_.tune(device, planned);  // which says what is wrong
  std::ranges::stable_sort(ways, {}, &Way::ms);
  ways.resize(std::min(ways.size(), race.finalists));
  for (Way& way : ways) {
    products_.use(planned, way.algorithm, false);
    const int repeats = std::clamp(static_cast<int>(race.final_ms / way.ms), 1, 100);
    time(device, p, way.lanes, repeats);
    way.ms = time(device, p, way.lanes, repeats);
  }
  const Way& chosen = *std::ranges::min_element(ways, {}, &Way::ms);
  products_.use(planned, chosen.algorithm, !is_known);
  lanes_[key] = chosen.lanes;
}

}  // namespace assay::train::cuda
