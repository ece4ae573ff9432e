#include "plan/model/release.h"

namespace assay::plan {
namespace {

// Kernels of a generation of cards had been available for about a year.
constexpr double kMatureHopper = 2024.0;
constexpr double kMatureBlackwell = 2025.6;
// Megatron fused the permutation of routed rows first, and their quantisation a year later, when it
// also captured whole iterations on Blackwell.
constexpr double kFusedPermutation = 2025.2;
constexpr double kFusedExperts = 2026.4;
// Megatron's recipes for Hopper dispatch with DeepEP.
constexpr double kDeepEp = 2025.5;
// Of launches, the share that graphs replay where releases that capture whole iterations do not say
// what they captured.
constexpr double kGraphedUnsaid = 0.8;

// PyTorch's checkpointing stops early by default (2.1).
constexpr double kStopsEarly = 2023.8;
// PyTorch prefers cuDNN's attention on Hopper and Blackwell where it comes with cuDNN 9.15.1
// (2.11).
constexpr double kNativeAttention = 2026.25;
// PyTorch's DTensor, and FSDP2, came into use.
constexpr double kDTensor = 2024.5;
// Before it, Megatron ran without Transformer Engine on cards that have no fp8.
constexpr double kEngineOnAmpere = 2024.5;
// Megatron's recipes fuse the loss.
constexpr double kFusedLoss = 2025.0;
// DeepSpeed's ZeRO-3 gathers ahead, and many tensors at once.
constexpr double kPrefetchedZero3 = 2022.5;

bool is_young(double date, Generation generation) {
  if (generation == Generation::kHopper) return date < kMatureHopper;
  return generation == Generation::kBlackwell && date < kMatureBlackwell;
}

}  // namespace

void make_earlier(const Release& release, const Card& card, Software& software) {
  const auto before = [&](double date) { return release.date && *release.date < date; };
  const auto since = [&](double date) { return release.date && *release.date >= date; };
  const bool has_cudnn =
      card.generation == Generation::kHopper || card.generation == Generation::kBlackwell;
  switch (software.framework) {
    case Framework::kKempner:
      if (has_cudnn && since(kNativeAttention)) software.old_attention = false;
      break;
    case Framework::kTorch:
    case Framework::kTorchCompiled:
      if (has_cudnn && since(kNativeAttention)) software.old_attention = false;
      if (before(kDTensor)) {
        software.dtensor = false;
        // FSDP before FSDP2 reduced in bf16 as a rule, and its weights were views.
        software.gradient_bytes = 2;
        software.copies_gathered = false;
      }
      if (before(kStopsEarly)) software.stops_early = false;
      break;
    case Framework::kMegatronCore:
      if (since(kFusedLoss)) software.vocab_parallel_loss = false;
      if (card.generation == Generation::kAmpere && !release.engine && before(kEngineOnAmpere)) {
        software.fused = false;
        software.megatron_fused = release.fused_norms;
        software.flash = false;  // an option, which few turned on
      }
      break;
    case Framework::kMegatronDeepspeed:
      if (release.bf16) {
        software.keeps_both_gradients = true;
        software.gradient_bytes = 4;
      }
      break;
    case Framework::kZero3:
      if (!since(kPrefetchedZero3)) break;
      software.flash = true;
      software.zero3_by_tensor = software.megatron_fused = software.vocab_parallel_loss = false;
      software.overlaps_gradients = true;
      break;
    default:
      break;
  }
}

void add_release(const Release& release, bool mixture, const Card& card, Software& software) {
  const auto since = [&](double date) { return release.date && *release.date >= date; };
  const bool hopper = card.generation == Generation::kHopper;
  const bool blackwell = card.generation == Generation::kBlackwell;
  software.first_year_kernels = release.date && is_young(*release.date, card.generation);
  if (!mixture || software.framework == Framework::kAssay) return;

  const bool megatron = is_megatron_core(software.framework);
  const bool whole_iterations =
      megatron && blackwell && since(kFusedExperts) && !release.graphs_known && !release.hybrid;
  const bool fused_routing = release.quantised
                                 ? hopper && since(kFusedExperts)
                                 : card.generation != Generation::kAmd && since(kFusedPermutation);
  software.early_experts =
      software.graphed < 1 && !whole_iterations && !(megatron && fused_routing);
  software.sends_tokens_once = whole_iterations || (megatron && hopper && since(kDeepEp));
  if (whole_iterations) {
    software.graphed = software.graphed_experts = kGraphedUnsaid;
    software.overlaps_experts = true;
  }
}

}  // namespace assay::plan
