#include "train/cpu/cpu_backend.h"

#include <cblas.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "base/process/proc.h"
#include "base/units.h"
#include "spec/model.h"
#include "step/shapes.h"
#include "train/cpu/kernels.h"
#include "train/host_memory.h"

namespace assay::train::cpu {
namespace {

using step::Op;
using step::OpKind;
using step::View;

// The memory of a program. The kernel allocates pages on first touch, so resident memory shows use.
class Arena {
 public:
  base::Result<void> take(std::int64_t bytes) {
    void* memory = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return base::fail(base::unfit_error(
          "memory", fmt::format("{} cannot be allocated", base::to_text(base::Bytes(bytes))),
          "choose a smaller batch.micro_batch or train.recompute = \"full\""));
    }
    data_ = static_cast<std::byte*>(memory);
    size_ = static_cast<std::size_t>(bytes);
    return {};
  }
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

class CpuBackend : public Backend {
 public:
  CpuBackend(int threads, RankGroups* groups)
      : device_(threads > 0 ? threads : usable_processors()), groups_(groups) {
    openblas_set_num_threads(1);
  }

  base::Result<std::int64_t> available_bytes() override { return available_host_memory(); }
  base::Result<std::int64_t> extra_bytes(const step::Program&) override { return 0; }
  base::Result<void> prepare(const step::Program& program, const step::MemoryPlan& plan) override {
    const step::Numerics& n = program.choices.numerics;
    if (n.weights != step::Dtype::kF32 || n.activations != step::Dtype::kF32 || n.fp8_blocks) {
      return base::fail(base::usage_error("train.precision", "CPUs train in fp32 only",
                                          "train.precision = \"fp32\""));
    }
    for (const step::Buffer& buffer : program.buffers) {
      ASSAY_CHECK(step::bytes_of(buffer.type) == 4, "CPU programs must use 32-bit types");
    }
    ASSAY_CHECK(program.choices.layout.ranks() == (groups_ == nullptr ? 1 : groups_->ranks()),
                "the program must be of as many ranks as there are");
    program_ = &program;
    plan_ = &plan;
    frequencies_ = spec::rope_frequencies(program.model);
    resident_before_ = memory_.now().resident_bytes;
    return arena_.take(plan.bytes);
  }

  base::Result<void> write(const View& to, std::span<const std::byte> from) override {
    set_has_first_weights(false);
    copy_rows(to, [&](std::byte* row, std::size_t at, std::size_t size) {
      std::memcpy(row, from.data() + at, size);
    });
    return {};
  }
  base::Result<void> read(const View& from, std::span<std::byte> to) override {
    copy_rows(from, [&](std::byte* row, std::size_t at, std::size_t size) {
      std::memcpy(to.data() + at, row, size);
    });
    return {};
  }

  void begin_step(const StepSettings& settings) override {
    settings_ = settings;
    std::fill_n(scalars(program_->scalars).data, program_->scalars.cols, 0.0F);
  }
  void set_batch(const Op& op, const MicroBatch& batch) override {
    device_.log_to(log_, &op);
    std::vector<OperandShape> read;
    const auto copy = [&](const View* to, std::span<const std::int32_t> from) {
      if (to == nullptr) return;
      std::copy(from.begin(), from.end(), integers(*to));
      read.emplace_back(tokens(*to));
    };
    const ReadPlaces places(op);
    copy(places.tokens, batch.tokens);
    copy(places.targets, batch.targets);
    copy(places.documents, batch.documents);
    device_.executed(op.kind, {}, read);
  }
  base::Result<void> execute(const Op& op) override;
  base::Result<Scalars> finish_step() override {
    Scalars result{};
    std::copy_n(scalars(program_->scalars).data, result.size(), result.begin());
    return result;
  }
  // Counts all pages touched by this process since prepare().
  [[nodiscard]] std::int64_t measured_bytes() const override {
    return std::max<std::int64_t>(0, memory_.now().resident_bytes - resident_before_);
  }
  [[nodiscard]] std::string description() const override {
    return fmt::format("cpu, {} threads, fp32", device_.count());
  }

 private:
  template <class Copy>
  void copy_rows(const View& view, Copy copy) {
    const auto size = static_cast<std::size_t>(view.cols) * 4;
    for (std::int64_t i = 0; i < view.rows; ++i) {
      copy(address(view) + i * view.stride * 4, static_cast<std::size_t>(i) * size, size);
    }
  }
  [[nodiscard]] std::byte* address(const View& view) const {
    return arena_.data() + plan_->offset[static_cast<std::size_t>(view.buffer)] + view.offset * 4;
  }
  [[nodiscard]] std::int32_t* integers(const View& view) const {
    return reinterpret_cast<std::int32_t*>(address(view));
  }
  [[nodiscard]] Tokens tokens(const View& view) const { return {integers(view), view.rows}; }
  [[nodiscard]] Matrix scalars(const View& view) const {
    return {reinterpret_cast<float*>(address(view)), view.rows, view.cols, view.stride};
  }
  [[nodiscard]] Matrix at(const std::vector<View>& views, std::size_t i) const {
    if (i >= views.size()) return {};
    const View& v = views[i];
    return {reinterpret_cast<float*>(address(v)), v.rows, v.cols, v.stride};
  }

  [[nodiscard]] Integers whole_numbers(const View& view) const {
    return {integers(view), view.rows, view.cols};
  }
  // Router weights and slots, which are operands i and i + 1 if present.
  [[nodiscard]] RowWeights row_weights(const Op& op, std::size_t i) const {
    if (op.in.size() <= i) return {};
    return {at(op.in, i), whole_numbers(op.in[i + 1])};
  }

  // Sums of counts that have one row per rank.
  [[nodiscard]] std::vector<std::int64_t> rows_by_rank(const View& counts) const {
    const Integers all = whole_numbers(counts);
    std::vector<std::int64_t> sums;
    for (std::int64_t i = 0; i < all.rows; ++i) {
      sums.push_back(std::accumulate(all.row(i), all.row(i) + all.cols, std::int64_t{0}));
    }
    return sums;
  }

  [[nodiscard]] std::vector<Matrix> all(const std::vector<View>& views) const {
    std::vector<Matrix> list;
    for (std::size_t i = 0; i < views.size(); ++i) list.push_back(at(views, i));
    return list;
  }

  [[nodiscard]] Vocabulary vocabulary_of(const Op& op) const {
    return {op.first_token,
            std::clamp<std::int64_t>(program_->model.vocab - op.first_token, 0, op.in[0].cols)};
  }
  void dispatch(const Op& op);
  void execute_norm(const Op& op);
  void execute_attention(const Op& op);
  void execute_context(const Op& op);
  void execute_mixture(const Op& op);
  void execute_optimizer(const Op& op);
  base::Result<void> exchange(const Op& op);

  Device device_;
  RankGroups* groups_;
  Arena arena_;
  const step::Program* program_ = nullptr;
  const step::MemoryPlan* plan_ = nullptr;
  std::vector<double> frequencies_;  // of rotary positions
  StepSettings settings_;
  base::ProcessMemory memory_;
  std::int64_t resident_before_ = 0;
};

void CpuBackend::execute_norm(const Op& op) {
  const bool heads = op.kind == OpKind::kHeadNorm || op.kind == OpKind::kHeadNormGrad;
  const spec::ModelSpec& m = program_->model;
  const NormShape shape{.kind = op.kind,
                        .centred = !heads && m.norm == spec::Norm::kLayerNorm,
                        .width = heads ? m.head_dim : m.dim,
                        .epsilon = m.norm_epsilon};
  if (op.kind == OpKind::kNorm || op.kind == OpKind::kHeadNorm) {
    return norm(device_, shape, at(op.in, 0), at(op.in, 1), at(op.in, 2), at(op.out, 0));
  }
  const std::size_t weights = op.in.size() - (op.residual ? 1 : 0) - 2;
  norm_grad(device_, shape, at(op.in, 0), at(op.in, 1), weights > 0 ? at(op.in, 2) : Matrix{},
            op.residual ? at(op.in, op.in.size() - 1) : Matrix{}, at(op.out, 0), op.adds_to(0),
            at(op.out, 1), at(op.out, 2), op.adds_to(1));
}

void CpuBackend::execute_attention(const Op& op) {
  const spec::ModelSpec& m = program_->model;
  const AttentionShape shape{op.in[0].rows / op.sequences, op.in[1].rows / op.sequences,
                             op.in[0].cols / m.head_dim, op.in[1].cols / m.head_dim, m.head_dim};
  const Tokens documents = op.documents ? tokens(op.in.back()) : Tokens{};
  if (op.kind == OpKind::kAttention) {
    return attention(device_, shape, at(op.in, 0), at(op.in, 1), at(op.in, 2), documents,
                     at(op.out, 0), at(op.out, 1));
  }
  attention_grad(device_, shape, at(op.in, 0), at(op.in, 1), at(op.in, 2), at(op.in, 3),
                 at(op.in, 4), at(op.in, 5), documents,
                 {at(op.out, 0), at(op.out, 1), at(op.out, 2)});
}

void CpuBackend::execute_context(const Op& op) {
  const std::int64_t sequences = program_->choices.micro_batch;
  const std::int64_t piece = program_->sequence_part().piece;
  if (op.kind == OpKind::kPackKeys) {
    return pack_keys(device_, at(op.in, 0), at(op.in, 1), at(op.out, 0));
  }
  if (op.kind == OpKind::kOrderKeys) {
    return order_keys(device_, sequences, piece, at(op.in, 0), at(op.out, 0));
  }
  if (op.kind == OpKind::kSplitKeysGrad) {
    return split_keys_grad(device_, sequences, piece, at(op.in, 0), at(op.in, 1), at(op.out, 0));
  }
  sum_keys_grad(device_, at(op.in, 0), at(op.out, 0));
}

void CpuBackend::execute_mixture(const Op& op) {
  const spec::ModelSpec& m = program_->model;
  const Routing routing{m.router, m.normalise_router, m.router_scale,
                        step::most_rows_of_expert(m, op.in[0].rows),
                        static_cast<double>(program_->global_step_tokens())};
  switch (op.kind) {
    case OpKind::kRoute:
      return route(device_, routing, at(op.in, 0), at(op.in, 1), at(op.out, 0),
                   whole_numbers(op.out[1]), at(op.out, 2), at(op.out, 3), op.adds_to(3),
                   at(op.out, 4), op.adds_to(4));
    case OpKind::kRouteGrad:
      return route_grad(device_, routing, settings_, op.adds_losses, at(op.in, 0), at(op.in, 1),
                        whole_numbers(op.in[2]), whole_numbers(op.in[3]), at(op.in, 4),
                        at(op.in, 5), at(op.out, 0), at(op.out, 1));
    case OpKind::kSortRows:
      return sort_rows(device_, op.most_rows, whole_numbers(op.in[0]), whole_numbers(op.out[0]),
                       whole_numbers(op.out[1]), whole_numbers(op.out[2]),
                       op.out.size() > 3 ? whole_numbers(op.out[3]) : Integers{});
    case OpKind::kArrangeRows:
      return arrange_rows(device_, whole_numbers(op.in[0]), whole_numbers(op.in[1]),
                          whole_numbers(op.out[0]), whole_numbers(op.out[1]),
                          whole_numbers(op.out[2]));
    case OpKind::kPermuteRows:
      return permute_rows(device_, at(op.in, 0), whole_numbers(op.in[1]), at(op.out, 0));
    case OpKind::kGatherRows:
      return gather_rows(device_, m.experts_per_token, at(op.in, 0), whole_numbers(op.in[1]),
                         at(op.out, 0));
    case OpKind::kCombineRows:
      return combine_rows(device_, at(op.in, 0), whole_numbers(op.in[1]), at(op.in, 2),
                          at(op.out, 0));
    default:
      return grouped_matmul(device_, {op.transpose_a, op.transpose_b, op.adds_to(0)}, op.pieces,
                            at(op.in, 0), at(op.in, 1), whole_numbers(op.in[2]), at(op.out, 0));
  }
}

void CpuBackend::execute_optimizer(const Op& op) {
  if (op.kind == OpKind::kFold) return fold(device_, at(op.in, 0), at(op.out, 0), op.adds_to(0));
  if (op.kind == OpKind::kNormSums) {
    return norm_sums(device_, step::norm_block(program_->model), all(op.in), all(op.out));
  }
  if (op.kind == OpKind::kGradientNorm) {
    return gradient_norm(device_, all(op.in), settings_.clip, scalars(op.out[0]));
  }
  if (op.kind == OpKind::kStepSums) return step_sums(device_, at(op.in, 0), at(op.out, 0));
  if (op.kind == OpKind::kMuon) {
    return muon(device_, settings_, scalars(op.in[1]), at(op.in, 0), at(op.out, 0), at(op.out, 1));
  }
  if (op.kind == OpKind::kBalance) {
    return balance(device_, settings_, scalars(op.in[1]), at(op.in, 0), at(op.out, 0));
  }
  adamw(device_, settings_, op.part == step::ModelPart::kDecayed, scalars(op.in[1]), at(op.in, 0),
        at(op.out, 0), at(op.out, 1), at(op.out, 2));
}

void CpuBackend::dispatch(const Op& op) {
  const spec::ModelSpec& m = program_->model;
  const step::SequencePart part = program_->sequence_part();
  switch (op.kind) {
    case OpKind::kEmbed:
      return embed(device_, tokens(op.in[0]), op.first_token, at(op.in, 1), at(op.in, 2), part,
                   at(op.out, 0));
    case OpKind::kEmbedGrad:
      return embed_grad(device_, tokens(op.in[0]), op.first_token, at(op.in, 1), at(op.out, 0),
                        op.adds_to(0));
    case OpKind::kPositionsGrad:
      return positions_grad(device_, at(op.in, 0), part, at(op.out, 0), op.adds_to(0));
    case OpKind::kNorm:
    case OpKind::kNormGrad:
    case OpKind::kHeadNorm:
    case OpKind::kHeadNormGrad:
      return execute_norm(op);
    case OpKind::kMatmul:
      return matmul(device_, {op.transpose_a, op.transpose_b, op.adds_to(0)}, at(op.in, 0),
                    at(op.in, 1), op.residual ? at(op.in, 2) : Matrix{},
                    op.bias ? at(op.in, op.residual ? 3 : 2) : Matrix{}, at(op.out, 0));
    case OpKind::kScale:
    case OpKind::kQuantise:
      return;  // prepare() refuses such programs
    case OpKind::kBiasGrad:
      return bias_grad(device_, at(op.in, 0), at(op.out, 0), op.adds_to(0));
    case OpKind::kRotate:
    case OpKind::kRotateGrad:
      return rotate(device_, {part, frequencies_}, op.kind == OpKind::kRotate ? 1 : -1,
                    at(op.out, 0));
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
      return execute_attention(op);
    case OpKind::kPackKeys:
    case OpKind::kOrderKeys:
    case OpKind::kSplitKeysGrad:
    case OpKind::kSumKeysGrad:
      return execute_context(op);
    case OpKind::kActivate:
      return activate(device_, m.mlp, at(op.in, 0), row_weights(op, 1), at(op.out, 0));
    case OpKind::kActivateGrad: {
      const RowWeights by = row_weights(op, 2);
      return activate_grad(device_, m.mlp, at(op.in, 0), at(op.in, 1), by, at(op.out, 0),
                           by.empty() ? Matrix{} : at(op.out, 1), at(op.out, by.empty() ? 1 : 2));
    }
    case OpKind::kRoute:
    case OpKind::kRouteGrad:
    case OpKind::kSortRows:
    case OpKind::kGatherRows:
    case OpKind::kGroupedMatmul:
    case OpKind::kCombineRows:
    case OpKind::kArrangeRows:
    case OpKind::kPermuteRows:
      return execute_mixture(op);
    case OpKind::kLossTerms:
      return loss_terms(device_, vocabulary_of(op), at(op.in, 0), tokens(op.in[1]), at(op.out, 0));
    case OpKind::kLoss:
      return loss(device_, vocabulary_of(op), at(op.in, 0), tokens(op.in[1]), at(op.in, 2),
                  settings_, program_->choices.purpose == step::Purpose::kTrain, at(op.out, 1),
                  op.adds_to(1));
    case OpKind::kSum:
      return sum(device_, at(op.in, 0), op.residual ? at(op.in, 1) : Matrix{},
                 op.bias ? at(op.in, op.residual ? 2 : 1) : Matrix{}, at(op.out, 0));
    case OpKind::kFold:
    case OpKind::kNormSums:
    case OpKind::kGradientNorm:
    case OpKind::kAdamw:
    case OpKind::kMuon:
    case OpKind::kBalance:
    case OpKind::kStepSums:
      return execute_optimizer(op);
    case OpKind::kRead:
    case OpKind::kAllGather:
    case OpKind::kAllToAll:
    case OpKind::kExchangeRows:
    case OpKind::kSend:
    case OpKind::kReceive:
    case OpKind::kWait:
      return;  // see set_batch() and exchange()
  }
}

// Unlike arithmetic, communication can fail: another rank may have exited.
base::Result<void> CpuBackend::exchange(const Op& op) {
  device_.executed(op.kind, {at(op.in, 0), at(op.in, 1), at(op.in, 2)}, {at(op.out, 0)});
  if (op.kind == OpKind::kWait) return groups_->wait(op);
  if (op.kind == OpKind::kExchangeRows) {
    return groups_->issue_rows(*program_, op, {rows_by_rank(op.in[1]), rows_by_rank(op.in[2])},
                               address(op.in[0]), address(op.out[0]));
  }
  return groups_->issue(*program_, op, op.in.empty() ? nullptr : address(op.in[0]),
                        op.out.empty() ? nullptr : address(op.out[0]));
}

base::Result<void> CpuBackend::execute(const Op& op) {
  device_.log_to(log_, &op);
  if (op.is_exchange()) return exchange(op);
  dispatch(op);
  return {};
}

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads, RankGroups* groups) {
  return std::make_unique<CpuBackend>(threads, groups);
}

bool better_kernels_after_restart() {
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  if (std::getenv(kVariable) != nullptr) return false;
  if (std::string_view(openblas_get_corename()) != "Prescott") return false;
  __builtin_cpu_init();
  const char* better = nullptr;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) better = "Haswell";
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    better = "SkylakeX";
  }
  return better != nullptr && ::setenv(kVariable, better, 1) == 0;
}

}  // namespace assay::train::cpu
