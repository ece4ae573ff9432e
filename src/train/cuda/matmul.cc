#include "train/cuda/matmul.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "train/cuda/kernels.h"
#include "train/cuda/product_race.h"

namespace assay::train::cuda {
namespace {

constexpr int kGuesses = 32;

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
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

base::Result<void> Matmul::open(std::string tuning_file) {
  if (cublasLtCreate(&handle_) != CUBLAS_STATUS_SUCCESS) {
    return base::fail(base::unfit_error("cuBLASLt", "it cannot be started on this GPU"));
  }
  return tuning_.open(std::move(tuning_file), machine_name());
}

cublasStatus_t Matmul::launch(Device& device, const Product& p, const Plan& plan,
                              const cublasLtMatmulAlgo_t& algorithm, float beta) {
  const Matrix& addend = p.addend.empty() ? p.c : p.addend;
  return cublasLtMatmul(handle_, plan.operation, &p.alpha, p.b.data, plan.a, p.a.data, plan.b,
                        &beta, addend.data, plan.addend, p.c.data, plan.c, &algorithm,
                        device.workspace.products,
                        static_cast<std::size_t>(device.workspace.products_bytes), device.stream);
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
  const auto launches = [&](const cublasLtMatmulAlgo_t& algorithm, bool adds) {
    return launch(device, p, plan, algorithm, adds ? p.beta : 0) == CUBLAS_STATUS_SUCCESS;
  };
  const auto can = [&](const cublasLtMatmulAlgo_t& algorithm) {
    cublasLtMatmulHeuristicResult_t found{};
    return cublasLtMatmulAlgoCheck(handle_, plan.operation, plan.a, plan.b, plan.addend, plan.c,
                                   &algorithm, &found) == CUBLAS_STATUS_SUCCESS &&
           found.workspaceSize <= static_cast<std::size_t>(device.workspace.products_bytes);
  };
  const double flops = 2.0 * static_cast<double>(p.c.rows) * static_cast<double>(p.c.cols) *
                       static_cast<double>(p.inner());
  plan.algorithm = ProductRace(device, p.c, launches, can)
                       .winner({guesses, static_cast<std::size_t>(count)}, flops);
  tuning_.add(key, plan.algorithm);
  return true;
}

Matmul::Plan* Matmul::plan_of(Device& device, const Product& p, bool may_time) {
  const ProductKey key = key_of(p);
  const auto found = plans_.find(key);
  if (found != plans_.end()) return &found->second;
  Plan plan{.operation = operation_of(p),
            .a = layout_of(p.b, p.fp8()),
            .b = layout_of(p.a, p.fp8()),
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
  if (plans_.contains(key_of(product))) return;
  for (const Matrix& m : {product.a, product.b}) {
    const auto fill = product.fp8() ? fill_random_fp8 : fill_random;
    fill(device, m.data, (m.rows - 1) * m.stride + m.cols);
  }
  plan_of(device, product, true);
}

void Matmul::multiply(Device& device, const Product& p) {
  const bool keeps_operands = p.addend.data != p.c.data && !p.fp8();
  Plan* plan = plan_of(device, p, keeps_operands);
  if (plan == nullptr) return;
  const auto point = [&](cublasLtMatmulDescAttributes_t what, const Matrix& to) {
    if (to.empty()) return;
    const void* data = to.data;
    cublasLtMatmulDescSetAttribute(plan->operation, what, &data, sizeof data);
  };
  point(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  point(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p.scale_b);  // b comes first: see product.h
  point(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p.scale_a);
  const cublasStatus_t status = launch(device, p, *plan, plan->algorithm, p.beta);
  if (status != CUBLAS_STATUS_SUCCESS) {
    device.failed(fmt::format("matrix product of {} x {} x {}: {}", p.c.rows, p.c.cols, p.inner(),
                              cublasLtGetStatusString(status)));
  }
}

}  // namespace assay::train::cuda
