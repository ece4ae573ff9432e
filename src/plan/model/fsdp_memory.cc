#include "plan/model/fsdp_memory.h"

#include <algorithm>
#include <array>

namespace assay::plan {
namespace {

constexpr double kWeight = 2;    // bf16, gathered
constexpr double kGradient = 2;  // bf16, before it is reduced
// Bytes per logit that the loss has at once. Eager: log-probabilities and the results of two
// backward operators, in fp32. Cut over tensor-parallel ranks: log-probabilities, zeros,
// exponentials and their sum. Compiled: the logits and their gradient, in bf16.
constexpr double kEagerLoss = 12;
constexpr double kParallelLoss = 16;
constexpr double kCompiledLoss = 4;

// What is alive beside weights and optimizer.
struct Moment {
  double gradients = 0;    // sharded
  double gathered = 0;     // weights and gradients of units, and what is reduced
  double activations = 0;  // kept for the backward pass, logits included
  double working = 0;      // of the layer at work

  [[nodiscard]] double total() const { return gradients + gathered + activations + working; }
};

class Moments {
 public:
  Moments(const Work& work, const RankShare& rank, const StateBytes& state)
      : work_(work), rank_(rank), state_(state) {}

  [[nodiscard]] Moment largest() const {
    const double last = layers_ - 1;
    const std::array moments = {loss(),
                                head_backward(),
                                block_backward(last),
                                block_backward(std::max(0.0, last - 1)),
                                block_backward(std::min(1.0, last)),
                                block_backward(0),
                                end_of_backward(),
                                Moment{.gradients = state_.gradient * all_ / work_.degrees.fsdp}};
    return *std::max_element(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
      return a.total() < b.total();
    });
  }

 private:
  [[nodiscard]] double bytes(double columns) const { return 2 * rank_.tokens * columns; }

  // Gradients after the backward pass of `parameters`: from the second micro-batch on all are
  // there.
  [[nodiscard]] double sharded(double parameters) const {
    return state_.gradient * (work_.batch.micros > 1 ? all_ : parameters) / work_.degrees.fsdp;
  }

  // A log-sum per head, and a scale of each norm.
  [[nodiscard]] double scales() const {
    return 4 * rank_.tokens * (work_.shape.heads / tp_ + 2 / rank_.sequence_cut);
  }

  // All that a block's backward pass reads: the residual and what norms make of it, twice each;
  // queries, keys, values and attention's result; the MLP. Eager operators of a gated MLP keep the
  // activation's result as well.
  [[nodiscard]] double block() const {
    const double ffn = work_.shape.mlp_matrices + (compiled_ || !is_gated() ? 0 : 1);
    return 4 * residual_ + 2 * whole_norm_ + bytes(rank_.qkv + attention_ + ffn * ffn_) + scales();
  }

  [[nodiscard]] double kept() const {
    switch (work_.recompute) {
      case RecomputeKind::kNone:
      case RecomputeKind::kCheap:
      case RecomputeKind::kFfn:
        break;
      case RecomputeKind::kFull:
        return residual_;
      case RecomputeKind::kSelective: {
        // The result of every other product, of attention, and of sums over tensor-parallel ranks.
        const double products =
            (rank_.qkv + attention_) / 2 + attention_ + (work_.shape.mlp_matrices - 1) / 2 * ffn_;
        const double sums = tp_ > 1 ? 2 * residual_ : 0;
        return residual_ + bytes(products) + scales() + last_product() + sums;
      }
    }
    return block();
  }

  // Eager: the result of a block's last product is one of those that selective recomputation keeps.
  [[nodiscard]] double last_product() const { return compiled_ ? 0 : bytes(work_.shape.dim); }

  [[nodiscard]] double logits() const { return bytes(work_.shape.vocab / tp_); }

  // The last block's result, and what the last norm makes of it.
  [[nodiscard]] double before_head() const {
    return layers_ * kept() + 2 * residual_ + whole_norm_;
  }

  [[nodiscard]] Moment loss() const {
    const double each = compiled_ ? kCompiledLoss : tp_ > 1 ? kParallelLoss : kEagerLoss;
    return {.gradients = sharded(0),
            .gathered = kWeight * ends_,
            .activations = before_head() + each / 2 * logits()};
  }

  // The head has a gradient, and the last block is gathered again.
  [[nodiscard]] Moment head_backward() const {
    return {.gradients = sharded(0),
            .gathered = kWeight * (ends_ + layer_) + kGradient * ends_ / 2,
            .activations = before_head() + logits()};
  }

  // The next block is gathered, and the gradients of the one before are reduced.
  [[nodiscard]] Moment block_backward(double index) const {
    const double above = layers_ - 1 - index;
    const double gathered = kWeight * (ends_ + layer_ * (index > 0 ? 2 : 1)) +
                            kGradient * ends_ / 2 +
                            work_.software.gradient_bytes * (above > 0 ? layer_ : 0);
    return {.gradients = sharded(above * layer_),
            .gathered = gathered,
            .activations = index * kept(),
            .working = std::max(mlp_backward(), attention_backward())};
  }

  [[nodiscard]] double mlp_backward() const {
    const double made = compiled_ ? 1 : 2;
    return block() + kept_last() + bytes(made * ffn_) + residual_ +
           kGradient * work_.shape.dim * ffn_;
  }

  // In fp32 the kernel adds up gradients of queries, and of keys and values for each query head.
  [[nodiscard]] double attention_backward() const {
    const double copies = work_.shape.kv_heads < work_.shape.heads ? 2 : 1;
    return 2 * residual_ + bytes(2 * work_.shape.dim) + bytes(2 * rank_.qkv + attention_) +
           4 * rank_.tokens * attention_ * copies +
           kGradient * (layer_ - work_.shape.dim * rank_.qkv) + kept_last();
  }

  [[nodiscard]] double kept_last() const {
    return work_.recompute == RecomputeKind::kSelective ? last_product() : 0;
  }

  // Of the embedding and the head gradients are made and reduced at the end, together.
  [[nodiscard]] Moment end_of_backward() const {
    const double reduced = work_.software.gradient_bytes;
    if (tp_ <= 1)
      return {.gradients = sharded(all_ - ends_), .gathered = (kGradient + reduced) * ends_};
    const double table = work_.shape.vocab * work_.shape.dim;
    return {.gradients = sharded(layers_ * layer_),
            .gathered = reduced * layer_ + (kWeight + kGradient) * ends_ + kGradient * table};
  }

  [[nodiscard]] bool is_gated() const { return work_.shape.mlp_matrices > 2; }

  const Work& work_;
  const RankShare& rank_;
  const StateBytes& state_;
  double tp_ = work_.degrees.tp;
  bool compiled_ = work_.software.compiled;
  double layers_ = work_.shape.layers;
  double layer_ = work_.shape.body_parameters / layers_ / tp_;
  double ends_ = std::max(0.0, work_.shape.parameters - work_.shape.body_parameters) / tp_;
  double all_ = layers_ * layer_ + ends_;
  double attention_ = work_.shape.attention_out / tp_;
  double ffn_ = work_.shape.ffn / tp_;
  double residual_ = bytes(work_.shape.dim / rank_.sequence_cut);
  // DTensor gathers what a norm makes of a cut residual, and keeps that.
  double whole_norm_ = tp_ > 1 ? bytes(work_.shape.dim) - residual_ : 0;
};

}  // namespace

bool has_fsdp_moments(const Work& work) {
  const Software& software = work.software;
  const bool torch =
      software.framework == Framework::kTorch || software.framework == Framework::kTorchCompiled;
  const bool by_block = work.degrees.fsdp > 1 && work.degrees.units <= 1 && !software.gathers_once;
  const bool plain = !work.shape.is_moe() && work.shape.state_share <= 0 && software.flash;
  return torch && by_block && plain && work.degrees.pp <= 1 && !work.lora && !work.muon;
}

MemoryNeed fsdp_memory(const Work& work, const RankShare& rank, const StateBytes& state,
                       double base) {
  const double sharded = work.shape.parameters / work.degrees.tp / work.degrees.fsdp;
  const Moment moment = Moments(work, rank, state).largest();
  return {.parameters = whole_bytes(state.weight * sharded),
          .gradients = whole_bytes(moment.gradients),
          .optimizer = whole_bytes(state.optimizer * sharded),
          .activations = whole_bytes(moment.activations),
          .gathered = whole_bytes(moment.gathered),
          .workspace = whole_bytes(moment.working + base)};
}

}  // namespace assay::plan
