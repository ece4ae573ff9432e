#include "train/cuda/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace assay::train::cuda {
namespace {

constexpr int kGuesses = 32;
constexpr int kRepeats = 5;
constexpr float kHopeless = 1.3F;  // times the best so far: not timed any further

std::string machine_name() {
  int device = 0;
  int driver = 0;
  cudaDeviceProp properties{};
  cudaGetDevice(&device);
  cudaDriverGetVersion(&driver);
  cudaGetDeviceProperties(&properties, device);
  return fmt::format("{}, driver {}, cuBLASLt {}", properties.name, driver, cublasLtGetVersion());
}

}  // namespace

Matmul::~Matmul() {
  for (auto& [key, plan] : plans_) {
    cublasLtMatmulDescDestroy(plan.operation);
    for (auto layout : {plan.a, plan.b, plan.addend, plan.c}) cublasLtMatrixLayoutDestroy(layout);
  }
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (end_ != nullptr) cudaEventDestroy(end_);
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

base::Result<void> Matmul::open(std::string tuning_file) {
  if (cublasLtCreate(&handle_) != CUBLAS_STATUS_SUCCESS ||
      cudaEventCreate(&begin_) != cudaSuccess || cudaEventCreate(&end_) != cudaSuccess) {
    return base::fail(base::unfit_error("cuBLASLt", "it cannot be started on this GPU"));
  }
  return tuning_.open(std::move(tuning_file), machine_name());
}

cublasStatus_t Matmul::launch(Device& device, const Product& p, const Plan& plan,
                              const cublasLtMatmulAlgo_t& algorithm) {
  const Matrix& addend = p.addend.empty() ? p.c : p.addend;
  return cublasLtMatmul(handle_, plan.operation, &p.alpha, p.b.data, plan.a, p.a.data, plan.b,
                        &p.beta, addend.data, plan.addend, p.c.data, plan.c, &algorithm,
                        device.workspace.products,
                        static_cast<std::size_t>(device.workspace.products_bytes), device.stream);
}

// Milliseconds of one product, or infinity.
float Matmul::time(Device& device, const Product& p, const Plan& plan,
                   const cublasLtMatmulAlgo_t& algorithm, float best) {
  const auto run = [&](int count) {
    constexpr float kNever = std::numeric_limits<float>::infinity();
    cudaEventRecord(begin_, device.stream);
    for (int i = 0; i < count; ++i) {
      if (launch(device, p, plan, algorithm) != CUBLAS_STATUS_SUCCESS) return kNever;
    }
    cudaEventRecord(end_, device.stream);
    float ms = 0;
    if (cudaEventSynchronize(end_) != cudaSuccess) return kNever;
    cudaEventElapsedTime(&ms, begin_, end_);
    return ms / static_cast<float>(count);
  };
  run(1);  // loads the kernel
  const float once = run(1);
  return once > kHopeless * best ? once : run(kRepeats);
}

bool Matmul::choose(Device& device, const Product& p, const ProductKey& key, Plan& plan,
                    bool may_time) {
  if (const cublasLtMatmulAlgo_t* known = tuning_.find(key)) {
    plan.algorithm = *known;
    return true;
  }
  cublasLtMatmulPreference_t preference = preference_of(key, device.workspace.products_bytes);
  cublasLtMatmulHeuristicResult_t guesses[kGuesses] = {};
  int count = 0;
  cublasLtMatmulAlgoGetHeuristic(handle_, plan.operation, plan.a, plan.b, plan.addend, plan.c,
                                 preference, kGuesses, guesses, &count);
  cublasLtMatmulPreferenceDestroy(preference);
  if (count == 0) return false;
  plan.algorithm = guesses[0].algo;
  if (!may_time) return true;
  float best = std::numeric_limits<float>::infinity();
  for (int i = 0; i < count; ++i) {
    const float ms = time(device, p, plan, guesses[i].algo, best);
    if (ms >= best) continue;
    best = ms;
    plan.algorithm = guesses[i].algo;
  }
  tuning_.add(key, plan.algorithm);
  return true;
}

Matmul::Plan* Matmul::plan_of(Device& device, const Product& p, bool may_time) {
  const ProductKey key = key_of(p);
  const auto found = plans_.find(key);
  if (found != plans_.end()) return &found->second;
  Plan plan{.operation = operation_of(p),
            .a = layout_of(p.b),
            .b = layout_of(p.a),
            .addend = layout_of(p.addend.empty() ? p.c : p.addend),
            .c = layout_of(p.c)};
  if (!choose(device, p, key, plan, may_time)) {
    device.failed(
        fmt::format("cuBLASLt has no algorithm for {} x {} x {}", p.c.rows, p.c.cols, p.inner()));
    return nullptr;
  }
  return &plans_.emplace(key, plan).first->second;
}

void Matmul::learn(Device& device, const Product& product) {
  plan_of(device, product, true);
}

void Matmul::multiply(Device& device, const Product& p) {
  const bool keeps_operands = p.addend.data != p.c.data;
  Plan* plan = plan_of(device, p, keeps_operands);
  if (plan == nullptr) return;
  if (!p.bias.empty()) {
    const void* bias = p.bias.data;
    cublasLtMatmulDescSetAttribute(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                   sizeof bias);
  }
  const cublasStatus_t status = launch(device, p, *plan, plan->algorithm);
  if (status != CUBLAS_STATUS_SUCCESS) {
    device.failed(fmt::format("matrix product of {} x {} x {}: {}", p.c.rows, p.c.cols, p.inner(),
                              cublasLtGetStatusString(status)));
  }
}

}  // namespace assay::train::cuda
