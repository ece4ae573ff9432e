// CudaBackendImpl::prepare, before the first step: checks the program, builds attention's graphs,
// allocates memory and finds the fastest algorithm for every matrix product.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"
#include "spec/model.h"
#include "step/rules.h"
#include "train/cuda/cuda_backend_impl.h"
#include "train/cuda/kernels.h"
#include "train/cuda/workspace.h"
#include "train/host_memory.h"

namespace assay::train::cuda {
namespace {

using step::Op;
using step::OpKind;

// The limits in the rules must match those of the kernels.
static_assert(step::kGpuVector == kVector && step::kGpuWidestRow == kWidestRow &&
              step::kGpuMostExperts == kMostExperts);

base::Result<void> check_program(const step::Program& p, const RankGroups* groups) {
  const step::Numerics& n = p.choices.numerics;
  const step::Dtype bf16 = step::Dtype::kBf16;
  const bool train = p.choices.purpose == step::Purpose::kTrain;
  if (n.weights != bf16 || n.gradients != bf16 || n.moments != bf16 || n.activations != bf16 ||
      (train && !n.remainders)) {
    return base::fail(base::usage_error("train.precision", "GPUs train in bf16 or fp8",
                                        "train.precision = \"bf16\""));
  }
  if (p.choices.layout.ranks() > 1 && groups == nullptr) {
    return base::fail(
        base::usage_error("layout.ranks", "the ranks of the program are not connected"));
  }
  return step::check_for_gpus(p.model, p.choices);
}

// Reserved for kernels that the libraries load on first use.
constexpr std::int64_t kReserve = std::int64_t{512} << 20U;

base::Result<void> built(const std::string& failure) {
  if (failure.empty()) return {};
  return base::fail(base::unfit_error("attention", failure));
}

}  // namespace

base::Result<std::int64_t> CudaBackendImpl::available_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  device_.check(cudaMemGetInfo(&free, &total), "GPU memory");
  ASSAY_TRY_VOID(outcome());
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(free) - kReserve);
}

// The workspace of attention's graphs is known only after they are built. They are the same for all
// recomputation policies, so they are built only once.
base::Result<std::int64_t> CudaBackendImpl::extra_bytes(const step::Program& program) {
  ASSAY_TRY_VOID(check_program(program, options_.groups));
  ASSAY_TRY_VOID(check_numerics(capability_, program.choices.numerics));
  if (!attention_built_) {
    const step::MemoryPlan plan = step::plan_memory(program);
    program_ = &program;
    plan_ = &plan;
    auto done = build_attention();
    program_ = nullptr;
    plan_ = nullptr;
    if (!done) return base::fail(done.error());
    attention_built_ = true;
  }
  return lay_out_workspace(program, attention_.workspace_bytes(), nullptr).bytes;
}

base::Result<void> CudaBackendImpl::prepare(const step::Program& program,
                                            const step::MemoryPlan& plan) {
  ASSAY_CHECK(arena_ == nullptr, "a backend can be prepared only once");
  ASSAY_TRY_VOID(check_program(program, options_.groups));
  ASSAY_TRY_VOID(check_numerics(capability_, program.choices.numerics));
  program_ = &program;
  plan_ = &plan;
  if (!attention_built_) ASSAY_TRY_VOID(build_attention());
  begin_startup_part("memory", "taking memory");
  ASSAY_TRY_VOID(check_memory());
  ASSAY_TRY_VOID(take_memory());
  ASSAY_TRY_VOID(batches_.open(program.micro_tokens(), program.model.vocab));
  ASSAY_TRY_VOID(expert_rows_.open(program));
  // Only for mixtures: a device has few hardware queues, and streams that share one wait for each
  // other.
  if (program.model.is_moe()) ASSAY_TRY_VOID(grouped_.open());
  ASSAY_TRY_VOID(tune_products());
  // Zeroed: gradients have gaps between parameters, and moments start at zero.
  const auto bytes = static_cast<std::size_t>(plan.bytes + workspace_bytes_);
  device_.check(cudaMemsetAsync(arena_, 0, bytes, device_.stream), "GPU memory");
  device_.check(cudaStreamSynchronize(device_.stream), "GPU memory");
  if (program.model.positions == spec::Positions::kRope) {
    make_rotation_table(device_,
                        {program.choices.sequence, program.model.head_dim, program.sequence_part()},
                        spec::rope_frequencies(program.model));
  }
  return outcome();
}

base::Result<void> CudaBackendImpl::build_attention() {
  begin_startup_part("attention", "building attention");
  ASSAY_TRY_VOID(built(attention_.open(options_.deterministic_attention, device_.stream)));
  for (const Op& op : program_->ops) {
    if (op.kind == OpKind::kAttention) {
      ASSAY_TRY_VOID(built(attention_.build_forward(attention_shape(op), attention_of(op))));
    }
    if (op.kind == OpKind::kAttentionGrad) {
      ASSAY_TRY_VOID(built(attention_.build_backward(attention_shape(op), attention_grad_of(op))));
    }
  }
  return {};
}

base::Error CudaBackendImpl::does_not_fit(std::int64_t available) const {
  const std::int64_t taken = plan_->bytes + workspace_bytes_;
  return base::unfit_error(
      fmt::format("GPU {}", options_.device),
      fmt::format("{} are needed, but {} are available", base::to_text(base::Bytes(taken)),
                  base::to_text(base::Bytes(available))),
      "choose a smaller batch.micro_batch or train.recompute = \"full\"");
}

base::Result<void> CudaBackendImpl::check_memory() {
  workspace_bytes_ = lay_out_workspace(*program_, attention_.workspace_bytes(), nullptr).bytes;
  ASSAY_TRY(const std::int64_t available, available_bytes());
  if (plan_->bytes + workspace_bytes_ > available) return base::fail(does_not_fit(available));
  return check_snapshots_fit(static_cast<std::int64_t>(state_bytes()), options_.host_ranks,
                             available_host_memory());
}

base::Result<void> CudaBackendImpl::take_memory() {
  const std::int64_t attention = attention_.workspace_bytes();
  const auto taken = static_cast<std::size_t>(plan_->bytes + workspace_bytes_);
  if (cudaMalloc(reinterpret_cast<void**>(&arena_), taken) != cudaSuccess) {
    ASSAY_TRY(const std::int64_t available, available_bytes());
    return base::fail(does_not_fit(available));
  }
  device_.workspace = lay_out_workspace(*program_, attention, arena_ + plan_->bytes).workspace;
  return {};
}

base::Result<void> CudaBackendImpl::tune_products() {
  begin_startup_part("libraries", "loading libraries");
  ASSAY_TRY_VOID(wait_for_products());
  begin_startup_part("products", "timing matrix products");
  products_.read_again();
  fill_random(device_, arena_, plan_->bytes / 2);
  for (const Op& op : program_->ops) {
    if (op.kind == OpKind::kMatmul) products_.tune(device_, product_of(op));
    if (op.kind == OpKind::kGroupedMatmul) grouped_.tune(device_, grouped_product_of(op));
  }
  device_.check(cudaStreamSynchronize(device_.stream), "timing of products");
  keep_tuning();
  return outcome();
}

}  // namespace assay::train::cuda
