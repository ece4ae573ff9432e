#include "train/cuda/grouped_products.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"
#include "step/rules.h"
#include "train/cuda/kernels.h"

namespace assay::train::cuda {
namespace {

constexpr float kHopelessGroup = 1.5F;  // times the best so far: the candidate is abandoned
constexpr int kGroupRepeats = 3;
// The best few are timed again, if time permits long enough to reach the power limit.
struct TuningEffort {
  std::size_t candidates;  // how many of the heuristic's candidates are timed
  std::size_t finalists;
  float final_ms;
};
constexpr TuningEffort kThoroughEffort{32, 8, 120};
constexpr TuningEffort kQuickEffort{12, 3, 20};

// Whether the kernel is used, encoded as an algorithm, in which form it is stored.
cublasLtMatmulAlgo_t encoded_choice(bool by_kernel) {
  cublasLtMatmulAlgo_t choice{};
  choice.data[0] = by_kernel ? 1 : 0;
  return choice;
}

bool is_for_kernel(const cublasLtMatmulAlgo_t& choice) {
  return choice.data[0] != 0;
}

Product tuning_key_of(Product planned) {
  planned.is_kernel_choice = true;
  return planned;
}

std::int64_t padded(std::int64_t rows) {
  return (rows + step::kFp8Alignment - 1) / step::kFp8Alignment * step::kFp8Alignment;
}

// Row counts of pieces, between (1 - spread) and (1 + spread) times an even share.
std::vector<std::int32_t> rows_to_time(const GroupedProduct& p, double spread) {
  std::vector<std::int32_t> first_rows;
  const std::int64_t pieces = p.experts * p.pieces;
  const auto all = static_cast<double>(p.rows_to_expect());
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

// Even and uneven row counts, on the host and on the device.
struct GroupedProducts::Rows {
  Rows(Device& device, const GroupedProduct& p) : lists{rows_to_time(p, 0), rows_to_time(p, 0.5)} {
    const std::size_t bytes = lists[0].size() * sizeof(std::int32_t);
    device.check(cudaMalloc(reinterpret_cast<void**>(&memory), 2 * bytes), "rows of experts");
    if (memory == nullptr) return;
    for (std::size_t i = 0; i < 2; ++i) {
      device.check(cudaMemcpyAsync(memory + i * lists[i].size(), lists[i].data(), bytes,
                                   cudaMemcpyHostToDevice, device.stream),
                   "rows of experts");
    }
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() { cudaFree(memory); }

  std::vector<std::int32_t> lists[2];
  std::int32_t* memory = nullptr;
};

struct GroupedProducts::Way {
  float ms = std::numeric_limits<float>::infinity();
  cublasLtMatmulAlgo_t algorithm{};
  int lanes = 1;
};

GroupedProducts::~GroupedProducts() {
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

base::Result<void> GroupedProducts::open() {
  bool made = cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess;
  for (int i = 0; made && i < kLanes; ++i) {
    made =
        cudaEventCreateWithFlags(&done_[i], cudaEventDisableTiming) == cudaSuccess &&
        (i == 0 || cudaStreamCreateWithFlags(&streams_[i], cudaStreamNonBlocking) == cudaSuccess);
  }
  kernel_.open();
  if (made) return {};
  return base::fail(
      base::unfit_error("GPU", "streams for the products of experts cannot be created"));
}

bool GroupedProducts::can_use_kernel(const GroupedProduct& p) const {
  return p.first_rows != nullptr && kernel_.takes(p);
}

int GroupedProducts::lanes_of(const GroupedProduct& p) const {
  if (fixed_lanes_ > 0) return fixed_lanes_;
  if (fixed_lanes_ == kByKernel && can_use_kernel(p)) return kByKernel;
  const Product planned = p.planned();
  const cublasLtMatmulAlgo_t* choice = products_.used(tuning_key_of(planned));
  if (choice != nullptr && is_for_kernel(*choice) && can_use_kernel(p)) return kByKernel;
  const auto known = lanes_.find(key_of(planned));
  return known == lanes_.end() ? 1 : known->second;
}

bool GroupedProducts::needs_rows_on_host(const GroupedProduct& p) const {
  return lanes_of(p) != kByKernel;
}

void GroupedProducts::clear(Device& device, const Matrix& gradient) {
  const auto width = static_cast<std::size_t>(gradient.cols) * 2;
  device.check(cudaMemset2DAsync(gradient.data, static_cast<std::size_t>(gradient.stride) * 2, 0,
                                 width, static_cast<std::size_t>(gradient.rows), device.stream),
               "gradient of an expert without tokens");
}

void GroupedProducts::multiply_on(Device& device, const GroupedProduct& p,
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
  const std::int64_t pieces = p.experts * p.pieces / products;  // per product
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

void GroupedProducts::multiply(Device& device, const GroupedProduct& p,
                               std::span<const std::int32_t> first_rows) {
  const int lanes = lanes_of(p);
  // The kernel reads them on the device, so the host need not know them.
  const bool known = lanes != kByKernel || !first_rows.empty();
  if (known && !in_order(first_rows, p)) {
    return device.failed("the rows of experts are not in order");
  }
  if (lanes == kByKernel) return kernel_.multiply(device, p);
  multiply_on(device, p, first_rows, lanes);
}

// Milliseconds for all products, with even and with uneven rows.
float GroupedProducts::time(Device& device, const GroupedProduct& p, const Rows& rows, int lanes,
                            int count) {
  cudaEventRecord(begin_, device.stream);
  for (int i = 0; i < count; ++i) {
    for (const auto& list : rows.lists) {
      if (lanes != kByKernel) {
        multiply_on(device, p, list, lanes);
        continue;
      }
      GroupedProduct timed = p;
      timed.first_rows =
          rows.memory + (&list - rows.lists) * static_cast<std::ptrdiff_t>(list.size());
      kernel_.multiply(device, timed);
    }
  }
  cudaEventRecord(end_, device.stream);
  float ms = 0;
  if (cudaEventSynchronize(end_) != cudaSuccess) return std::numeric_limits<float>::infinity();
  cudaEventElapsedTime(&ms, begin_, end_);
  return ms / static_cast<float>(count);
}

void GroupedProducts::tune(Device& device, const GroupedProduct& p) {
  if (lanes_.contains(key_of(p.planned()))) return;
  const auto fill = p.fp8() ? fill_random_fp8 : fill_random;
  for (const Matrix& m : {p.a, p.b}) fill(device, m.data, (m.rows - 1) * m.stride + m.cols);
  const Rows rows(device, p);
  if (rows.memory != nullptr) choose(device, p, rows);
}

void GroupedProducts::choose(Device& device, const GroupedProduct& p, const Rows& rows) {
  const Product planned = p.planned();
  const Product tuning_key = tuning_key_of(planned);
  const cublasLtMatmulAlgo_t* choice = products_.known(tuning_key);
  if (choice != nullptr && is_for_kernel(*choice) && can_use_kernel(p)) {
    products_.use(tuning_key, *choice, false);
    lanes_[key_of(planned)] = 1;
    return;
  }
  std::vector<Way> ways;
  bool is_known = false;
  float best = std::numeric_limits<float>::infinity();
  const TuningEffort& effort = products_.is_thorough() ? kThoroughEffort : kQuickEffort;
  auto candidates = products_.suggestions(device, planned, is_known);
  candidates.resize(std::min(candidates.size(), effort.candidates));
  for (const auto& algorithm : candidates) {
    products_.use(planned, algorithm, false);
    time(device, p, rows, 1, 1);  // loads the kernels
    Way way{.algorithm = algorithm};
    for (int lanes = 1; lanes <= kLanes; lanes *= 2) {
      if (time(device, p, rows, lanes, 1) > kHopelessGroup * best) break;
      const float ms = time(device, p, rows, lanes, kGroupRepeats);
      if (ms < way.ms) way = {ms, algorithm, lanes};
    }
    best = std::min(best, way.ms);
    if (way.ms <= kHopelessGroup * best) ways.push_back(way);
  }
  if (ways.empty()) return products_.tune(device, planned);  // reports what is wrong
  std::ranges::stable_sort(ways, {}, &Way::ms);
  ways.resize(std::min(ways.size(), effort.finalists));
  const auto time_again = [&](float ms, int lanes) {
    const int repeats = std::clamp(static_cast<int>(effort.final_ms / ms), 1, 100);
    time(device, p, rows, lanes, repeats);
    return time(device, p, rows, lanes, repeats);
  };
  for (Way& way : ways) {
    products_.use(planned, way.algorithm, false);
    way.ms = time_again(way.ms, way.lanes);
  }
  const Way& chosen = *std::ranges::min_element(ways, {}, &Way::ms);
  products_.use(planned, chosen.algorithm, !is_known);
  lanes_[key_of(planned)] = chosen.lanes;
  if (!can_use_kernel(p)) return;
  if (choice != nullptr) return products_.use(tuning_key, *choice, false);
  time(device, p, rows, kByKernel, 1);  // loads it
  const float ms = time_again(time(device, p, rows, kByKernel, kGroupRepeats), kByKernel);
  products_.use(tuning_key, encoded_choice(ms < chosen.ms), true);
}

}  // namespace assay::train::cuda
