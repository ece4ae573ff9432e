// Software: how a framework executes a step. Step times of the same model on the same cards differ
// by half between frameworks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::plan {

enum class Framework : std::uint8_t {
  kAssay,              // this program's trainer
  kNanochat,           // compiled PyTorch, flash attention 3, sharded Muon
  kLlmc,               // C and CUDA
  kFoundry,            // llm-foundry of 2023: eager FSDP, Triton attention
  kMegatronBridge,     // and NeMo: Megatron-Core with Transformer Engine
  kAutomodel,          // NeMo Automodel: FSDP2 and DTensor
  kMegatronDeepspeed,  // eager, before flash attention
  kMegatronCore,
  kMegatron,       // eager, before flash attention
  kZero3,          // DeepSpeed ZeRO-3 of 2021
  kKempner,        // KempnerForge
  kTorch,          // plain PyTorch with FSDP and DTensor
  kTorchCompiled,  // the same through torch.compile
  kXla,            // JAX: MaxText, PaxML
  kLlmq,           // llm.q: C++ and CUDA, quantised
};

std::string_view to_text(Framework framework);
// Megatron-Core with Transformer Engine, by itself or in Megatron-Bridge and NeMo.
constexpr bool is_megatron_core(Framework framework) {
  return framework == Framework::kMegatronBridge || framework == Framework::kMegatronCore;
}
// PyTorch's own FSDP, whose ranks are all that share a sequence or have other experts as well, even
// where there are no others.
constexpr bool always_shards(Framework framework) {
  return framework == Framework::kTorch || framework == Framework::kTorchCompiled ||
         framework == Framework::kAutomodel;
}
std::optional<Framework> parse_framework(std::string_view text);
std::vector<std::string> framework_names();

// How residuals are grouped into intervals.
enum class SoftwareClass : std::uint8_t { kMegatronEager, kTorchEager, kFused, kMoe };
std::string_view to_text(SoftwareClass kind);

struct Software {
  Framework framework = Framework::kAssay;
  bool flash = true;           // attention's scores never reach memory
  bool old_attention = false;  // flash kernels that were not written for the card
  bool triton_attention = false;
  bool fused = true;                // compiled, Transformer Engine, or by hand
  bool compiled = true;             // the loss too
  bool fused_loss = false;          // holds what a compiled one does; rows show no time saved
  bool megatron_fused = false;      // Megatron's own fusions of 2020 to 2022
  bool hostless = false;            // no interpreter on the host
  double graphed = 0;               // share of launches that CUDA graphs replay
  double graphed_experts = 0;       // and of those of experts
  bool first_year_kernels = false;  // for a generation of cards that is in its first year
  bool vocab_parallel_loss = false;
  bool dtensor = false;         // tensor parallelism by DTensor
  bool gathers_logits = false;  // the loss gathers all logits on every rank
  bool overlaps_tensor = false;
  bool overlaps_sends = false;  // of pipelines
  bool overlaps_gradients = false;
  bool overlaps_experts = false;     // all-to-all beside another micro-batch's computation
  bool folds_gradients = false;      // as our trainer does it: folded_exchange.h
  bool shards_optimizer = false;     // over the data ranks
  bool zero3_by_tensor = false;      // gathers of single tensors, not hidden
  bool gathers_once = false;         // FSDP that keeps gathered weights for the backward pass
  bool copies_gathered = false;      // FSDP that copies weights out of what it has gathered
  bool pure_bf16 = false;            // no fp32 master weights
  bool recomputes_products = false;  // selective recomputation of every other product
  // Full recomputation ends with the last tensor that the backward pass reads.
  bool stops_early = false;
  bool naive_experts = false;      // of mixtures: no grouped products, no fused permutation
  bool unbatched_experts = false;  // one product per expert
  bool drops_tokens = false;
  bool early_experts = false;      // before permutation and quantisation were fused
  bool sends_tokens_once = false;  // to a rank, however many of its experts they visit
  bool keeps_unsharded = false;  // FSDP that has much of the model unsharded between micro-batches
  bool late_wrap = false;        // FSDP units that are made late hold more
  // Of fp8: weights are quantised, and transposed for the backward pass, beside their bf16.
  bool quantised_copies = false;
  double gradient_bytes = 2;          // of an element when it is reduced
  bool adds_gradients = true;         // else each micro-batch writes separate gradients
  bool fused_accumulation = false;    // weight-gradient products accumulate in place
  bool keeps_both_gradients = false;  // those of a micro-batch in bf16, their sums in fp32
  // Of a parameter: master weight and moments.
  double optimizer_bytes = 12;
  double optimizer_traffic = 1;  // of what Adam in mixed precision moves

  [[nodiscard]] SoftwareClass kind(bool moe) const {
    if (moe) return SoftwareClass::kMoe;
    if (megatron_fused) return SoftwareClass::kMegatronEager;
    return fused ? SoftwareClass::kFused : SoftwareClass::kTorchEager;
  }
};

// Of an optimizer without fp32 master weights.
inline constexpr double kPureTraffic = 0.55;

// Whether it rounds a vocabulary up to what products like, or its compiler pads the product.
bool pads_vocabulary(Framework framework);

// Whether it trains in mxfp8, or in nvfp4: with a scale for each block of a row. Transformer Engine
// has both, PyTorch the first.
bool has_precision(Framework framework, bool nvfp4);

// Of pipelines: whether it has a schedule without bubbles (zb-h1), and one that interleaves chunks
// of stages. PyTorch has both (torch.distributed.pipelining), Megatron the second.
bool has_zero_bubble(Framework framework);
bool has_interleaving(Framework framework);

// Whether it divides a model or its sequences over ranks: by tensor, pipeline, context or expert
// parallelism. nanochat and llm.c share the optimizer's state at most.
bool cuts_models(Framework framework);

// As the framework runs by default.
struct Card;
Software software_of(Framework framework, const Card& card);

}  // namespace assay::plan
