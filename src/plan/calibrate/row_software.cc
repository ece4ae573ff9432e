#include "plan/calibrate/row_software.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "plan/calibrate/row_text.h"
#include "plan/model/release.h"

namespace assay::plan {
namespace {

// Flash attention and Transformer Engine came to Megatron.
constexpr double kFlashMegatron = 2023.5;
// Of the launches around experts, graphs of layers replay the router and what prepares dispatch.
constexpr double kGraphedRouters = 0.3;

bool is_compiled(const RowFields& row) {
  return row.framework == "torch-compiled" || says_yes(row.compile) ||
         contains_any(row.compile, {"torch.compile", "inductor"});
}

// PyTorch as its trainers run it.
Framework torch_framework(const RowFields& row) {
  return is_compiled(row) ? Framework::kTorchCompiled : Framework::kTorch;
}

std::optional<Framework> framework_in_text(const RowFields& row, const std::string& text) {
  if (contains(text, "zero-3") && !contains_any(text, {"torch", "fsdp"})) return Framework::kZero3;
  if (contains(text, "nanochat")) return Framework::kNanochat;
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
  if (const auto said = framework_in_text(row, name)) return said;
  // "torch", "PyTorch FSDP"; of names with PyTorch behind them, source and notes say more.
  if (name.starts_with("torch") || name.starts_with("pytorch")) return torch_framework(row);
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
  if (const auto named = framework_in_column(row)) return {*named, ""};
  if (contains(row.model, "nanochat")) return {Framework::kNanochat, ""};
  if (const auto named = framework_in_text(row, row.software)) return {*named, ""};
  // Pipelines that are said to shard their gradients "as FSDP" are not PyTorch's FSDP.
  const bool shards_weights = !row.fsdp || *row.fsdp > 1;
  if (contains(row.software, "torch") || (contains(row.software, "fsdp") && shards_weights))
    return {torch_framework(row), ""};
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
  const Release release{
      .date = row.date,
      .bf16 = contains(row.precision, "bf16"),
      .quantised = contains_any(row.precision, {"fp8", "float8", "fp4"}),
      .engine = row.compile == "te" || contains_any(text, {"transformer engine", "nemo"}),
      .fused_norms = shape.mlp_matrices < 3,
      .graphs_known = contains_any(text, {"graph", "natural routing"}),
      .hybrid = contains(row.attention, "mamba")};
  make_earlier(release, card, s);
  s.compiled = s.compiled || compiled;
  s.fused = s.fused || compiled || row.compile == "te";
  if (contains_any(text, {"no flash", "without flash", "unfused attention"}))
    s.flash = false;
  else if (contains_any(text, {"flash attention", "flash-attn", "flashattention"}))
    s.flash = true;
  if (!s.flash || contains_any(text, {"flash-attn-3", "cudnn"})) s.old_attention = false;
  if (states_any(text, {"zero-1", "distributed optimizer"}) || contains(row.zero, "1") ||
      contains(row.zero, "2")) {
    s.shards_optimizer = true;
  }
  if (says_yes(row.async_tp) || contains(row.async_tp, "userbuffers") ||
      contains_any(text, {"async tp", "async-tp", "asynctp", "tp overlap", "tp/dp overlap",
                          "tp comm overlap", "tp_comm_overlap"})) {
    s.overlaps_tensor = true;
  }
  if (states_any(text, {"full_iteration", "full-iteration", "full iteration"}))
    s.graphed = s.graphed_experts = 1;
  else if (contains_any(text, {"no cuda graphs"}))
    s.graphed = 0;
  else if (contains_any(text, {"cuda graph", "cuda_graph", "te graph"})) {
    s.graphed = kGraphedLayers;
    s.graphed_experts = kGraphedRouters;
  }
  const bool hides = states_any(text, {"a2a_overlap=true", "ep overlap", "ep comm overlap",
                                       "ep communication overlap", "dualpipe", "dualpipev"}) &&
                     !contains_any(text, {"no ep overlap", "ep overlap off"});
  if (hides || contains(row.schedule, "dualpipe")) s.overlaps_experts = true;
  if (states(text, "shard_grad_op")) s.gathers_once = true;
  if (states(text, "mp=default")) s.gradient_bytes = 4;
  if (states_any(text, {"mp=pure", "pure bf16", "pure fp16", "pure_bf16", "pure half"})) {
    s.pure_bf16 = true;
    s.optimizer_traffic = kPureTraffic;
  }
  s.drops_tokens = contains(row.model, "tokendrop") || states(text, "tokendrop");
  const bool hidden_before = s.overlaps_experts;
  add_release(release, shape.is_moe(), card, s);
  if (contains(text, "overlap off")) s.overlaps_experts = hidden_before;
  if (contains(text, "no permute fusion")) s.early_experts = shape.is_moe() && s.graphed < 1;
  if (states_any(text, {"alltoall", "alltoallv"})) s.sends_tokens_once = false;
  if (states_any(text, {"hybridep", "deepep", "hai-llm"})) s.sends_tokens_once = true;
  // With a capacity nothing waits for counts of tokens.
  if (s.drops_tokens) s.graphed_experts = std::max(s.graphed_experts, kGraphedLayers);
  s.unbatched_experts =
      framework == Framework::kKempner && shape.is_moe() && contains(row.source, "unpacked");
  // Steps that were put together from layers that were measured one by one (docs/plan-model.md, 6).
  s.adds_gradients = !contains(text, "ground_truth_single");
  s.late_wrap = contains(row.lower_notes, "deferred fsdp");
  return s;
}

}  // namespace assay::plan
