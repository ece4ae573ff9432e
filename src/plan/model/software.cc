#include "plan/model/software.h"

#include <algorithm>
#include <array>

#include "base/units.h"
#include "plan/model/work.h"

namespace assay::plan {
namespace {

constexpr std::array<std::string_view, 15> kFrameworkNames = {"assay",
                                                              "nanochat",
                                                              "llm.c",
                                                              "llm-foundry",
                                                              "megatron-bridge",
                                                              "automodel",
                                                              "megatron-deepspeed",
                                                              "megatron-core",
                                                              "megatron",
                                                              "zero-3",
                                                              "kempner",
                                                              "torch",
                                                              "torch-compiled",
                                                              "xla",
                                                              "llmq"};

constexpr std::array<std::string_view, 4> kSoftwareClassNames = {"megatron-eager", "torch-eager",
                                                                 "fused", "moe"};

// Tensor cores of Hopper and later generations need their own kernels.
constexpr base::FlopsPerSecond kMostOfAmpere(400e12);

Software eager_torch(Framework framework) {
  Software s;
  s.framework = framework;
  s.fused = false;
  s.compiled = false;
  s.naive_experts = true;
  return s;
}

// Bytes as the trainer holds them: weight 2, its low half 2, two moments of 2, gradient 2. The
// optimizer reads the 10 and writes all but the gradient, where Adam in mixed precision moves 28.
Software assay_trainer() {
  Software s;
  s.framework = Framework::kAssay;
  s.hostless = true;
  s.overlaps_gradients = true;
  s.folds_gradients = true;
  s.shards_optimizer = true;
  s.stops_early = true;
  s.optimizer_bytes = 6;
  s.optimizer_traffic = (10.0 + 8.0) / 28.0;
  return s;
}

// Megatron-Core with Transformer Engine.
Software megatron_core(Framework framework) {
  Software s;
  s.framework = framework;
  s.compiled = false;
  // Options that recipes of Megatron-Bridge and NeMo turn on.
  s.overlaps_tensor = framework == Framework::kMegatronBridge;
  s.overlaps_sends = true;
  s.overlaps_gradients = true;
  s.shards_optimizer = true;
  // Megatron adds gradients up in fp32; recipes of Megatron-Bridge and NeMo that are made for speed
  // do it in bf16.
  s.gradient_bytes = framework == Framework::kMegatronCore ? 4 : 2;
  s.vocab_parallel_loss = framework == Framework::kMegatronCore;
  s.quantised_copies = true;
  s.fused_accumulation = true;
  return s;
}

// Megatron of 2020 to 2022, and what was made from it.
Software eager_megatron(Framework framework, const Card& card) {
  Software s = eager_torch(framework);
  s.flash = card.bf16_flops >= kMostOfAmpere;
  s.megatron_fused = true;
  s.vocab_parallel_loss = true;
  s.zero3_by_tensor = framework == Framework::kZero3;
  s.copies_gathered = framework == Framework::kZero3;
  return s;
}

// Eager PyTorch with FSDP2 and DTensor.
Software dtensor(Framework framework) {
  Software s = eager_torch(framework);
  s.dtensor = true;
  s.stops_early = true;
  s.copies_gathered = true;
  if (framework == Framework::kKempner) {
    s.gathers_logits = true;
    s.pure_bf16 = true;
    s.keeps_unsharded = true;
    s.optimizer_traffic = kPureTraffic;
  } else {
    s.recomputes_products = true;
  }
  if (framework == Framework::kTorch || framework == Framework::kTorchCompiled) {
    s.overlaps_gradients = true;
    s.gradient_bytes = 4;  // FSDP2 reduces in fp32 by default
  }
  s.naive_experts = framework == Framework::kKempner;
  if (framework == Framework::kTorchCompiled) s.fused = s.compiled = true;
  return s;
}

Software traits_of(Framework framework, const Card& card) {
  switch (framework) {
    case Framework::kAssay:
      return assay_trainer();
    case Framework::kNanochat:
    case Framework::kLlmc: {
      Software s;
      s.framework = framework;
      s.hostless = framework == Framework::kLlmc;
      s.fused_accumulation = framework == Framework::kLlmc;
      s.shards_optimizer = true;
      s.naive_experts = true;
      return s;
    }
    case Framework::kXla: {
      Software s;
      s.framework = framework;
      s.hostless = true;
      s.overlaps_tensor = true;
      s.overlaps_sends = true;
      s.overlaps_gradients = true;
      s.shards_optimizer = true;
      s.gradient_bytes = 4;
      return s;
    }
    case Framework::kLlmq: {  // weights and moments in bf16
      Software s;
      s.framework = framework;
      s.hostless = true;
      s.overlaps_gradients = true;
      s.shards_optimizer = true;
      s.fused_accumulation = true;
      s.optimizer_bytes = 4;
      s.optimizer_traffic = kPureTraffic;
      return s;
    }
    case Framework::kFoundry: {
      Software s = eager_torch(framework);
      s.triton_attention = true;
      s.fused_loss = true;
      return s;
    }
    case Framework::kMegatronBridge:
    case Framework::kMegatronCore:
      return megatron_core(framework);
    case Framework::kMegatronDeepspeed:
    case Framework::kMegatron:
    case Framework::kZero3:
      return eager_megatron(framework, card);
    case Framework::kAutomodel:
    case Framework::kKempner:
    case Framework::kTorch:
    case Framework::kTorchCompiled:
      break;
  }
  return dtensor(framework);
}

bool has_native_attention(Framework framework) {
  switch (framework) {
    case Framework::kAssay:
    case Framework::kNanochat:
    case Framework::kLlmc:
    case Framework::kMegatronBridge:
    case Framework::kMegatronCore:
    case Framework::kAutomodel:
    case Framework::kXla:
    case Framework::kLlmq:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view to_text(Framework framework) {
  return kFrameworkNames[static_cast<std::size_t>(framework)];
}

std::optional<Framework> parse_framework(std::string_view text) {
  const auto* at = std::find(kFrameworkNames.begin(), kFrameworkNames.end(), text);
  if (at == kFrameworkNames.end()) return std::nullopt;
  return static_cast<Framework>(at - kFrameworkNames.begin());
}

std::vector<std::string> framework_names() {
  return {kFrameworkNames.begin(), kFrameworkNames.end()};
}

std::string_view to_text(SoftwareClass kind) {
  return kSoftwareClassNames[static_cast<std::size_t>(kind)];
}

bool pads_vocabulary(Framework framework) {
  switch (framework) {
    case Framework::kTorch:
    case Framework::kKempner:
    case Framework::kAutomodel:
    case Framework::kFoundry:
    case Framework::kZero3:
      return false;
    default:
      return true;
  }
}

bool has_precision(Framework framework, bool nvfp4) {
  switch (framework) {
    case Framework::kMegatronBridge:
    case Framework::kMegatronCore:
      return true;
    case Framework::kAutomodel:
    case Framework::kTorch:
    case Framework::kTorchCompiled:
    case Framework::kXla:
      return !nvfp4;
    default:
      return false;
  }
}

bool has_zero_bubble(Framework framework) {
  switch (framework) {
    case Framework::kAssay:
    case Framework::kTorch:
    case Framework::kTorchCompiled:
      return true;
    default:
      return false;
  }
}

bool has_interleaving(Framework framework) {
  return has_zero_bubble(framework) || is_megatron_core(framework) ||
         framework == Framework::kMegatron;
}

bool cuts_models(Framework framework) {
  return framework != Framework::kNanochat && framework != Framework::kLlmc;
}

Software software_of(Framework framework, const Card& card) {
  Software s = traits_of(framework, card);
  s.old_attention = s.flash && !has_native_attention(framework) && card.bf16_flops > kMostOfAmpere;
  return s;
}

}  // namespace assay::plan
