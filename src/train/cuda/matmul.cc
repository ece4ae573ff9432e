#include "train/cuda/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

namespace assay::train::cuda {
namespace {

constexpr int kGuesses = 32;
constexpr int kRepeats = 5;
constexpr float kHopeless = 1.3F;  // times the best so far: not timed any further

std::int64_t alignment_of(const Matrix& m) {
  constexpr std::uintptr_t kMost = 256;
  return static_cast<std::int64_t>(
      std::countr_zero((reinterpret_cast<std::uintptr_t>(m.data) | kMost)));
}

std::int64_t inner_of(const Product& p) {
  return p.transpose_a ? p.a.rows : p.a.cols;
}

ProductKey key_of(const Product& p) {
  ProductKey key{};
  const auto at = [&](KeyPart part) -> std::int64_t& {
    return key[static_cast<std::size_t>(part)];
  };
  at(KeyPart::kRows) = p.c.rows;
  at(KeyPart::kCols) = p.c.cols;
  at(KeyPart::kInner) = inner_of(p);
  at(KeyPart::kTransposes) = (p.transpose_a ? 1 : 0) + (p.transpose_b ? 2 : 0);
  at(KeyPart::kAddend) = p.addend.empty() ? 0 : p.addend.data == p.c.data ? 1 : 2;
  at(KeyPart::kBias) = p.bias.empty() ? 0 : 1;
  at(KeyPart::kStrideA) = p.a.stride;
  at(KeyPart::kStrideB) = p.b.stride;
  at(KeyPart::kStrideAddend) = p.addend.empty() ? p.c.stride : p.addend.stride;
  at(KeyPart::kStrideC) = p.c.stride;
  const Matrix& addend = p.addend.empty() ? p.c : p.addend;
  at(KeyPart::kAlignment) = alignment_of(p.a) | alignment_of(p.b) << 8 |
                            alignment_of(addend) << 16 | alignment_of(p.c) << 24;
  return key;
}

// Our rows are cuBLASLt's columns: what it sees is the transpose of every matrix, so it is asked
// for c^T = op(b)^T op(a)^T, with b first.
cublasLtMatrixLayout_t layout_of(const Matrix& m) {
  cublasLtMatrixLayout_t layout = nullptr;
  cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, static_cast<std::uint64_t>(m.cols),
                             static_cast<std::uint64_t>(m.rows), m.stride);
  return layout;
}

cublasLtMatmulDesc_t operation_of(const Product& p) {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const auto set = [&](cublasLtMatmulDescAttributes_t what, auto value) {
    cublasLtMatmulDescSetAttribute(operation, what, &value, sizeof value);
  };
  const auto turned = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, turned(p.transpose_b));
  set(CUBLASLT_MATMUL_DESC_TRANSB, turned(p.transpose_a));
  if (!p.bias.empty()) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(p.bias.data));
  }
  return operation;
}

cublasLtMatmulPreference_t preference_of(const ProductKey& key, std::int64_t workspace_bytes) {
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulPreferenceCreate(&preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
    cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes));
  // In-place reductions add in whatever order blocks finish, and those in the output's type round
  // the parts to bf16: only parts kept in fp32 are exact enough and the same every time.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const auto alignment = key[static_cast<std::size_t>(KeyPart::kAlignment)];
  const auto bytes = [&](int place) { return std::uint32_t{1} << ((alignment >> place) & 0xff); };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, bytes(8));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, bytes(0));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, bytes(16));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bytes(24));
  return preference;
}

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
        fmt::format("cuBLASLt has no algorithm for {} x {} x {}", p.c.rows, p.c.cols, inner_of(p)));
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
    device.failed(fmt::format("matrix product of {} x {} x {}: {}", p.c.rows, p.c.cols, inner_of(p),
                              cublasLtGetStatusString(status)));
  }
}

}  // namespace assay::train::cuda
