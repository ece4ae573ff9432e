#include "train/cuda/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "train/cuda/kernels.h"

namespace assay::train::cuda {
namespace {

constexpr int kGuesses = 32;
constexpr int kRepeats = 5;
constexpr float kHopeless = 1.3F;  // times the best so far: the candidate is abandoned
// Start-up should be short: the library lists the most promising candidates first, and for slow
// products the later ones are not tried. The best few are then timed in turns, so that all of them
// run at the same clock rate.
constexpr float kRank_ms = 100;
constexpr std::size_t kLeast = 6;
constexpr int kQuickFinalists = 3;
constexpr int kTurns = 3;
constexpr float kTurn_ms = 8;
// The fastest in a short burst may not be the fastest at the power limit, where training runs.
// Thorough tuning times the best few again, each long enough to reach it.
constexpr int kFinalists = 6;
constexpr float kFinal_ms = 150;
constexpr std::size_t kMostGuesses = 256;

std::string machine_name() {
  int device = 0;
  cudaDeviceProp properties{};
  cudaGetDevice(&device);
  cudaGetDeviceProperties(&properties, device);
  return fmt::format("{}, cuBLASLt {}", properties.name, cublasLtGetVersion());
}

Lane lane_of(const Device& device) {
  return {device.stream, device.workspace.products};
}

void check(Device& device, const Product& p, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  device.failed(fmt::format("matrix product of {} x {} x {}: {}", p.c.rows, p.c.cols, p.inner(),
                            cublasLtGetStatusString(status)));
}

}  // namespace

Matmul::~Matmul() {
  for (auto& [key, plan] : plans_) destroy(plan);
  for (auto& [key, changing] : changing_) destroy(changing.plan);
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (end_ != nullptr) cudaEventDestroy(end_);
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

base::Result<void> Matmul::open(std::string tuning_file, bool thorough) {
  thorough_ = thorough;
  if (cublasLtCreate(&handle_) != CUBLAS_STATUS_SUCCESS ||
      cudaEventCreate(&begin_) != cudaSuccess || cudaEventCreate(&end_) != cudaSuccess) {
    return base::fail(base::unfit_error("cuBLASLt", "cannot be initialised on this GPU"));
  }
  tuning_.open(std::move(tuning_file), machine_name());
  return {};
}

std::string Matmul::algorithms() const {
  ProductAlgorithms all;
  for (const auto& [key, plan] : plans_) all[key] = plan.algorithm;
  for (const auto& [key, changing] : changing_) all[key] = changing.plan.algorithm;
  return all.empty() ? std::string() : tuning_.text_of(all);
}

bool Matmul::adopt(const std::string& text) {
  if (!tuning_.adopt(text)) return false;
  for (auto& [key, plan] : plans_) {
    if (const cublasLtMatmulAlgo_t* known = tuning_.find(key)) plan.algorithm = *known;
  }
  for (auto& [key, changing] : changing_) {
    if (const cublasLtMatmulAlgo_t* known = tuning_.find(key)) changing.plan.algorithm = *known;
  }
  return true;
}

// b comes first: see product.h.
Matmul::Plan Matmul::make_plan(const Product& p) {
  return {.operation = operation_of(p),
          .a = layout_of(p.b, p.operand_type()),
          .b = layout_of(p.a, p.operand_type()),
          .addend = layout_of(p.addend.empty() ? p.c : p.addend, p.result_type()),
          .c = layout_of(p.c, p.result_type())};
}

void Matmul::destroy(const Plan& plan) {
  cublasLtMatmulDescDestroy(plan.operation);
  for (auto layout : {plan.a, plan.b, plan.addend, plan.c}) cublasLtMatrixLayoutDestroy(layout);
}

cublasStatus_t Matmul::launch(Device& device, const Product& p, const Plan& plan,
                              const cublasLtMatmulAlgo_t& algorithm, Lane lane) {
  const Matrix& addend = p.addend.empty() ? p.c : p.addend;
  return cublasLtMatmul(handle_, plan.operation, &p.alpha, p.b.data, plan.a, p.a.data, plan.b,
                        &p.beta, addend.data, plan.addend, p.c.data, plan.c, &algorithm,
                        lane.workspace, static_cast<std::size_t>(device.workspace.products_bytes),
                        lane.stream);
}

// Milliseconds of one product, or infinity.
float Matmul::time(Device& device, const Product& p, const Plan& plan,
                   const cublasLtMatmulAlgo_t& algorithm, int count) {
  constexpr float kNever = std::numeric_limits<float>::infinity();
  cudaEventRecord(begin_, device.stream);
  for (int i = 0; i < count; ++i) {
    if (launch(device, p, plan, algorithm, lane_of(device)) != CUBLAS_STATUS_SUCCESS) {
      return kNever;
    }
  }
  cudaEventRecord(end_, device.stream);
  float ms = 0;
  if (cudaEventSynchronize(end_) != cudaSuccess) return kNever;
  cudaEventElapsedTime(&ms, begin_, end_);
  return ms / static_cast<float>(count);
}

// Sorts the candidates by their time in a short burst.
int Matmul::rank(Device& device, const Product& p, const Plan& plan,
                 std::span<cublasLtMatmulHeuristicResult_t> candidates) {
  std::vector<std::pair<float, std::size_t>> order;
  float best = std::numeric_limits<float>::infinity();
  float spent = 0;
  const auto timed = [&](const cublasLtMatmulAlgo_t& algorithm, int count) {
    const float ms = time(device, p, plan, algorithm, count);
    if (ms < std::numeric_limits<float>::infinity()) spent += ms * static_cast<float>(count);
    return ms;
  };
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!thorough_ && i >= kLeast && spent > kRank_ms) break;
    timed(candidates[i].algo, 1);  // loads the kernel
    float ms = timed(candidates[i].algo, 1);
    if (ms <= kHopeless * best) ms = timed(candidates[i].algo, thorough_ ? kRepeats : 2);
    best = std::min(best, ms);
    order.emplace_back(ms, i);
  }
  std::stable_sort(order.begin(), order.end());
  std::vector<cublasLtMatmulHeuristicResult_t> sorted;
  for (const auto& [ms, i] : order) sorted.push_back(candidates[i]);
  std::copy(sorted.begin(), sorted.end(), candidates.begin());
  return static_cast<int>(sorted.size());
}

std::size_t Matmul::fastest_interleaved(Device& device, const Product& p, const Plan& plan,
                                        Finalists finalists) {
  std::vector<float> sums(finalists.size());
  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t i = 0; i < finalists.size(); ++i) {
      const float once = time(device, p, plan, finalists[i].algo, 1);
      const int repeats = std::clamp(static_cast<int>(kTurn_ms / once), 1, 40);
      sums[i] += time(device, p, plan, finalists[i].algo, repeats);
    }
  }
  return static_cast<std::size_t>(std::ranges::min_element(sums) - sums.begin());
}

std::size_t Matmul::fastest_at_length(Device& device, const Product& p, const Plan& plan,
                                      Finalists finalists) {
  std::vector<float> times;
  for (const cublasLtMatmulHeuristicResult_t& one : finalists) {
    const float once = time(device, p, plan, one.algo, kRepeats);
    // Small products never reach the power limit: the burst decides.
    const int repeats = std::clamp(static_cast<int>(kFinal_ms / once), kRepeats, 400);
    time(device, p, plan, one.algo, repeats);
    times.push_back(time(device, p, plan, one.algo, repeats));
  }
  return static_cast<std::size_t>(std::ranges::min_element(times) - times.begin());
}

bool Matmul::choose(Device& device, const Product& p, const ProductKey& key, Plan& plan,
                    bool may_time) {
  const cublasLtMatmulAlgo_t* known = tuning_.find(key);
  if (known != nullptr && !thorough_) {
    plan.algorithm = *known;
    return true;
  }
  auto candidates = best_guess(device, key, plan, kGuesses);
  if (candidates.empty()) return false;
  plan.algorithm = candidates[0].algo;
  if (!may_time) return true;
  const int count = rank(device, p, plan, candidates);
  const Finalists finalists{
      candidates.data(),
      static_cast<std::size_t>(std::min(count, thorough_ ? kFinalists : kQuickFinalists))};
  const std::size_t best = thorough_ ? fastest_at_length(device, p, plan, finalists)
                                     : fastest_interleaved(device, p, plan, finalists);
  plan.algorithm = candidates[best].algo;
  tuning_.add(key, plan.algorithm);
  ++timed_;
  return true;
}

Matmul::Plan* Matmul::plan_of(Device& device, const Product& p, bool may_time) {
  const ProductKey key = key_of(p);
  const auto found = plans_.find(key);
  if (found != plans_.end()) return &found->second;
  Plan plan = make_plan(p);
  if (!choose(device, p, key, plan, may_time)) {
    device.failed(
        fmt::format("cuBLASLt has no algorithm for {} x {} x {}", p.c.rows, p.c.cols, p.inner()));
    return nullptr;
  }
  return &plans_.emplace(key, plan).first->second;
}

void Matmul::tune(Device& device, const Product& product) {
  if (plans_.contains(key_of(product))) return;
  for (const Matrix& m : {product.a, product.b}) {
    const auto fill = product.fp8() ? fill_random_fp8 : fill_random;
    fill(device, m.data, (m.rows - 1) * m.stride + m.cols);
  }
  plan_of(device, product, true);
}

// Sets the operands that are part of the operation, not arguments of the call.
void Matmul::point_at_operands(const Plan& plan, const Product& p) {
  const auto point = [&](cublasLtMatmulDescAttributes_t what, const Matrix& to) {
    if (to.empty()) return;
    const void* data = to.data;
    cublasLtMatmulDescSetAttribute(plan.operation, what, &data, sizeof data);
  };
  point(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  point(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p.scale_b);  // b comes first: see product.h
  point(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p.scale_a);
}

void Matmul::multiply(Device& device, const Product& p) {
  const bool keeps_operands = p.addend.data != p.c.data && !p.fp8();
  Plan* plan = plan_of(device, p, keeps_operands);
  if (plan == nullptr) return;
  point_at_operands(*plan, p);
  check(device, p, launch(device, p, *plan, plan->algorithm, lane_of(device)));
}

std::vector<cublasLtMatmulHeuristicResult_t> Matmul::best_guess(Device& device,
                                                                const ProductKey& key,
                                                                const Plan& plan, int most) {
  cublasLtMatmulPreference_t preference = preference_of(key, device.workspace.products_bytes);
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
  int count = 0;
  cublasLtMatmulAlgoGetHeuristic(handle_, plan.operation, plan.a, plan.b, plan.addend, plan.c,
                                 preference, most, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  found.resize(static_cast<std::size_t>(count));
  return found;
}

std::vector<cublasLtMatmulAlgo_t> Matmul::suggestions(Device& device, const Product& product,
                                                      bool& is_known) {
  const cublasLtMatmulAlgo_t* found = known(product);
  is_known = found != nullptr;
  if (is_known) return {*found};
  const ProductKey key = key_of(product);
  const Plan plan = make_plan(product);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const auto& likely : best_guess(device, key, plan, kGuesses)) {
    algorithms.push_back(likely.algo);
  }
  destroy(plan);
  return algorithms;
}

void Matmul::use(const Product& tuned, const cublasLtMatmulAlgo_t& algorithm, bool remembers) {
  const ProductKey key = key_of(tuned);
  const auto [at, is_new] = changing_.try_emplace(key);
  if (is_new) at->second.plan = make_plan(tuned);
  at->second.plan.algorithm = algorithm;
  if (!remembers) return;
  tuning_.add(key, algorithm);
  ++timed_;
}

const cublasLtMatmulAlgo_t* Matmul::known(const Product& product) const {
  return thorough_ ? nullptr : tuning_.find(key_of(product));
}

const cublasLtMatmulAlgo_t* Matmul::used(const Product& tuned) const {
  const auto found = changing_.find(key_of(tuned));
  return found == changing_.end() ? nullptr : &found->second.plan.algorithm;
}

void Matmul::multiply_like(Device& device, const Product& tuned, const Product& p, Lane lane) {
  const ProductKey key = key_of(tuned);
  if (!changing_.contains(key)) {
    const Plan* plan = plan_of(device, tuned, false);
    if (plan == nullptr) return;
    use(tuned, plan->algorithm, false);
  }
  ChangingPlan& changing = changing_.at(key);
  const Plan& plan = changing.plan;
  point_at_operands(plan, p);
  change_layout(plan.a, p.b);
  change_layout(plan.b, p.a);
  change_layout(plan.addend, p.c);
  change_layout(plan.c, p.c);
  if (launch(device, p, plan, plan.algorithm, lane) == CUBLAS_STATUS_SUCCESS) return;
  const std::pair sides{p.a.rows, p.a.cols};
  const auto known = changing.guesses.find(sides);
  cublasLtMatmulAlgo_t algorithm{};
  if (known != changing.guesses.end()) {
    algorithm = known->second;
  } else if (const auto guessed = best_guess(device, key, plan, 1); !guessed.empty()) {
    algorithm = guessed[0].algo;
    if (changing.guesses.size() >= kMostGuesses) changing.guesses.clear();
    changing.guesses[sides] = algorithm;
  } else {
    return device.failed(
        fmt::format("cuBLASLt has no algorithm for {} x {} x {}", p.c.rows, p.c.cols, p.inner()));
  }
  check(device, p, launch(device, p, plan, algorithm, lane));
}

}  // namespace assay::train::cuda
