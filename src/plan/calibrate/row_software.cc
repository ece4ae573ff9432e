#include "plan/calibrate/row_software.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "plan/calibrate/row_text.h"

namespace assay::plan {
namespace {

// Of launches, where graphs hold layers and not the whole iteration.
constexpr double kGraphedLayers = 0.5;
// And where software of a time that captures whole iterations does not say what it did.
constexpr double kGraphedUnsaid = 0.8;
constexpr double kFusedExperts = 2026.4;
constexpr double kFlashMegatron = 2023.5;
// Of what is around experts, graphs of layers hold the router and what prepares dispatch.
constexpr double kGraphedRouters = 0.3;
// When kernels of a generation had been out for a year or so.
constexpr double kMatureHopper = 2024.0;
constexpr double kMatureBlackwell = 2025.6;

// Of tables with a column for it.
std::optional<Framework> framework_in_column(const RowFields& row) {
  const std::string& name = row.framework;
  if (name.empty()) return std::nullopt;
  if (contains_any(name, {"nemo", "bridge"}) && !contains(name, "automodel"))
    return Framework::kMegatronBridge;
  if (contains_any(name, {"llm.q", "llmq"})) return Framework::kLlmq;
  if (contains_any(name, {"maxtext", "paxml", "jax", "xla", "levanter", "easylm"}))
    return Framework::kXla;
  if (contains_any(name, {"assay"})) return Framework::kAssay;
  // Megatron without "core" of this time is Core all the same; "megatron-deepspeed" is not.
  if (contains_any(name, {"megatron", "primus"}) && !contains(name, "deepspeed"))
    return Framework::kMegatronCore;
  return std::nullopt;
}

bool is_compiled(const RowFields& row) {
  return row.compile == "yes" || row.compile == "true" || contains(row.compile, "torch.compile") ||
         contains(row.compile, "inductor");
}

// PyTorch as its trainers run it.
Framework torch_framework(const RowFields& row) {
  return is_compiled(row) ? Framework::kTorchCompiled : Framework::kTorch;
}

std::optional<Framework> framework_in_text(const RowFields& row) {
  const std::string& text = row.software;
  if (const auto named = framework_in_column(row)) return named;
  if (contains(text, "zero-3") && !contains_any(text, {"torch", "fsdp"})) return Framework::kZero3;
  if (contains(text, "nanochat") || contains(row.model, "nanochat")) return Framework::kNanochat;
  if (contains(text, "llm.c")) return Framework::kLlmc;
  if (contains_any(text, {"foundry", "full_shard", "shard_grad_op"})) return Framework::kFoundry;
  if (contains_any(text, {"nemo container", "megatron-bridge", "nemo 2", "performance_summary"}) &&
      !contains(text, "automodel"))
    return Framework::kMegatronBridge;
  if (contains(text, "automodel")) return Framework::kAutomodel;
  if (contains_any(text, {"megatron-deepspeed", "mt-nlg"})) return Framework::kMegatronDeepspeed;
  // Flash attention and Transformer Engine came to Megatron with Hopper, and to older cards as
  // well.
  const bool hopper_or_later = !contains_any(row.gpu_type, {"A100", "A800", "V100"});
  const bool late = hopper_or_later || (row.date && *row.date >= kFlashMegatron);
  if (contains(text, "megatron") && (contains(text, "core") || late))
    return Framework::kMegatronCore;
  if (contains_any(text, {"megatron", "no flash"})) return Framework::kMegatron;
  if (contains(text, "kempner")) return Framework::kKempner;
  return std::nullopt;
}

// What most rows that look like this one ran on.
Framework probable_framework(const RowFields& row, bool moe) {
  const bool hopper_or_later = !contains_any(row.gpu_type, {"A100", "A800", "V100"});
  const bool cut = row.tp.value_or(1) > 1 || row.pp.value_or(1) > 1;
  if (row.compile == "c/cuda") return Framework::kLlmc;
  if (contains(row.precision, "amp_")) return Framework::kFoundry;  // Composer's spelling
  if (row.compile == "te") return Framework::kMegatronBridge;
  if (hopper_or_later && contains(row.precision, "fp8")) return Framework::kMegatronBridge;
  if (moe && row.ep.value_or(1) > 1) {
    const bool shards = row.fsdp.value_or(1) > 1;
    return shards ? Framework::kAutomodel : Framework::kMegatronBridge;
  }
  if (cut && row.fsdp.value_or(1) == 1)
    return hopper_or_later ? Framework::kMegatronBridge : Framework::kMegatron;
  return Framework::kTorch;
}

}  // namespace

RowFramework row_framework(const RowFields& row, bool moe) {
  if (const auto named = framework_in_text(row)) return {*named, ""};
  if (contains_any(row.software, {"torch", "fsdp"})) return {torch_framework(row), ""};
  // A source without any of the names above is custom code.
  // A row that says it ran with Transformer Engine was Megatron's, or like it.
  const bool guess = row.source.empty() || row.compile == "te" || row.compile == "c/cuda";
  const Framework probable = guess ? probable_framework(row, moe) : torch_framework(row);
  if (probable != Framework::kTorch && probable != Framework::kTorchCompiled)
    return {probable, fmt::format("software unknown: {} assumed", to_text(probable))};
  return {torch_framework(row), fmt::format("software unknown: {} PyTorch assumed",
                                            is_compiled(row) ? "compiled" : "eager")};
}

Software row_software(const RowFields& row, Framework framework, const Shape& shape,
                      const Card& card) {
  const std::string& text = row.software;
  const bool compiled = is_compiled(row) || contains_any(row.compile, {"c/cuda", "xla", "c++"});
  Software s = software_of(framework, card);
  s.compiled = s.compiled || compiled;
  s.fused = s.fused || compiled || row.compile == "te";
  if (contains_any(text, {"no flash", "without flash", "unfused attention"}))
    s.flash = false;
  else if (contains_any(text, {"flash attention", "flash-attn", "flashattention"}))
    s.flash = true;
  if (!s.flash || contains_any(text, {"flash-attn-3", "cudnn"})) s.old_attention = false;
  if (contains_any(text, {"zero-1", "distributed optimizer"}) || contains(row.zero, "1") ||
      contains(row.zero, "2")) {
    s.shards_optimizer = true;
  }
  if (contains(row.async_tp, "yes") || contains(row.async_tp, "userbuffers") ||
      contains_any(text, {"async tp", "async-tp", "asynctp"})) {
    s.overlaps_tensor = true;
  }
  const bool unsaid_graphs = !contains(text, "graph") && !contains(text, "natural routing");
  if (contains_any(text, {"full_iteration", "full-iteration", "full iteration"}))
    s.graphed = s.graphed_experts = 1;
  else if (contains_any(text, {"no cuda graphs"}))
    s.graphed = 0;
  else if (contains_any(text, {"cuda graph", "cuda_graph", "te graph"})) {
    s.graphed = kGraphedLayers;
    s.graphed_experts = kGraphedRouters;
  }
  const bool hides = contains_any(text, {"a2a_overlap=true", "ep overlap", "ep comm overlap",
                                         "ep communication overlap", "dualpipe"}) &&
                     !contains_any(text, {"no ep overlap", "ep overlap off"});
  if (hides || contains(row.schedule, "dualpipe")) s.overlaps_experts = true;
  if (contains(text, "shard_grad_op")) s.gathers_once = true;
  // FSDP2 gathers in bf16 and reduces in fp32, unless told otherwise.
  const bool torch = framework == Framework::kTorch || framework == Framework::kTorchCompiled;
  if (torch || contains(text, "mp=default")) s.gradient_bytes = 4;
  if (contains(text, "pure")) {
    s.pure_bf16 = true;
    s.optimizer_traffic = kPureTraffic;
  }
  s.drops_tokens = contains_any(row.model, {"tokendrop"}) || contains(text, "tokendrop");
  // Megatron fused what is around experts, and captured whole iterations, in the middle of 2026.
  const bool megatron =
      framework == Framework::kMegatronBridge || framework == Framework::kMegatronCore;
  const bool late = row.date && *row.date >= kFusedExperts;
  const bool newest = megatron && late && unsaid_graphs &&
                      card.generation == Generation::kBlackwell &&
                      !contains(row.attention, "mamba");
  s.early_experts = shape.is_moe() && s.graphed < 1 && !newest &&
                    !(megatron && late && card.generation == Generation::kHopper);
  if (newest && shape.is_moe()) {
    s.graphed = s.graphed_experts = kGraphedUnsaid;
    s.overlaps_experts = s.overlaps_experts || !contains(text, "overlap off");
  }
  s.sends_tokens_once = contains_any(text, {"hybridep", "deepep"}) || newest;
  // With a capacity nothing waits for counts of tokens.
  if (s.drops_tokens) s.graphed_experts = std::max(s.graphed_experts, kGraphedLayers);
  const bool hopper = card.generation == Generation::kHopper;
  const bool blackwell = card.generation == Generation::kBlackwell;
  s.young = row.date &&
            ((hopper && *row.date < kMatureHopper) || (blackwell && *row.date < kMatureBlackwell));
  s.loose_experts =
      framework == Framework::kKempner && shape.is_moe() && contains(row.source, "unpacked");
  s.late_wrap = contains(row.lower_notes, "deferred fsdp");
  return s;
}

}  // namespace assay::plan
