#include "plan/calibrate/row_software.h"

#include <fmt/format.h>

#include <optional>

#include "plan/calibrate/row_text.h"

namespace assay::plan {
namespace {

std::optional<Framework> framework_in_text(const RowFields& row) {
  const std::string& text = row.software;
  if (contains(text, "zero-3")) return Framework::kZero3;
  if (contains(text, "nanochat") || contains(row.model, "nanochat")) return Framework::kNanochat;
  if (contains(text, "llm.c")) return Framework::kLlmc;
  if (contains_any(text, {"foundry", "full_shard", "shard_grad_op"})) return Framework::kFoundry;
  if (contains_any(text, {"nemo container", "megatron-bridge", "nemo 2", "performance_summary"}))
    return Framework::kMegatronBridge;
  if (contains(text, "automodel")) return Framework::kAutomodel;
  if (contains_any(text, {"megatron-deepspeed", "mt-nlg"})) return Framework::kMegatronDeepspeed;
  if (contains(text, "megatron") && (contains(text, "core") || contains(row.gpu_type, "H100")))
    return Framework::kMegatronCore;
  if (contains_any(text, {"megatron", "no flash"})) return Framework::kMegatron;
  if (contains(text, "kempner")) return Framework::kKempner;
  return std::nullopt;
}

// What most rows that look like this one ran on.
Framework probable_framework(const RowFields& row, bool moe) {
  const bool hopper_or_later = !contains_any(row.gpu_type, {"A100", "V100"});
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
  if (contains_any(row.software, {"torch", "fsdp"})) return {Framework::kTorch, ""};
  // A source without any of the names above is custom code.
  const Framework probable = row.source.empty() ? probable_framework(row, moe) : Framework::kTorch;
  if (probable != Framework::kTorch)
    return {probable, fmt::format("software unknown: {} assumed", to_text(probable))};
  const bool compiled = row.compile == "yes" || row.compile == "true";
  return {probable,
          fmt::format("software unknown: {} PyTorch assumed", compiled ? "compiled" : "eager")};
}

Software row_software(const RowFields& row, Framework framework, const Shape& shape,
                      const Card& card) {
  const std::string& text = row.software;
  const bool compiled = row.compile == "yes" || row.compile == "true" || row.compile == "c/cuda";
  Software s = software_of(framework, card);
  s.compiled = s.compiled || compiled;
  s.fused = s.fused || compiled || row.compile == "te";
  if (contains(text, "no flash")) s.flash = false;
  if (!s.flash || contains_any(text, {"flash-attn-3", "cudnn"})) s.old_attention = false;
  if (contains_any(text, {"zero-1", "distributed optimizer"})) s.shards_optimizer = true;
  if (contains(text, "shard_grad_op")) s.gathers_once = true;
  if (contains(text, "mp=default")) s.gradient_bytes = 4;
  if (contains(text, "pure")) {
    s.pure_bf16 = true;
    s.optimizer_traffic = kPureTraffic;
  }
  s.drops_tokens = contains(row.model, "tokendrop");
  s.loose_experts =
      framework == Framework::kKempner && shape.is_moe() && contains(row.source, "unpacked");
  s.late_wrap = contains(row.lower_notes, "deferred fsdp");
  return s;
}

}  // namespace assay::plan
