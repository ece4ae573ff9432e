#include "step/rules.h"

#include <fmt/format.h>

#include <span>
#include <string>

namespace assay::step {
namespace {

using base::Error;
using base::usage_error;
using spec::ModelSpec;

constexpr std::int64_t kGpuWidestHead = 128;
constexpr std::int64_t kGpuWidestFfn = std::int64_t{1} << 20U;

bool is_muon(const Choices& c) {
  return c.optimizer == spec::Optimizer::kMuon;
}

// Tokens of a micro-batch on one rank.
std::int64_t micro_tokens(const Choices& c) {
  return c.sequence / c.layout.context.ranks * c.micro_batch;
}

Error no_such_model(const char* key, const char* what) {
  return usage_error(key, what, "leave it out, or choose another model");
}

// Tensor-parallel ranks must have equal parts of this.
template <std::int64_t ModelSpec::*count>
bool parts_differ(const ModelSpec& m, const Choices& c) {
  return m.*count % c.layout.tensor.ranks != 0;
}

Error parts_error(const char* key, std::int64_t count, const Choices& c) {
  return usage_error(
      "layout.tp",
      fmt::format("{} {} cannot be divided by {} ranks", key, count, c.layout.tensor.ranks),
      "choose a divisor");
}

constexpr ProgramRule kRules[] = {
    {[](const ModelSpec& m, const Choices&) { return m.has_latent_attention(); },
     [](const ModelSpec&, const Choices&) {
       return no_such_model("model.kv_lora_rank", "latent attention cannot be trained yet");
     }},
    {[](const ModelSpec& m, const Choices&) { return m.router_groups > 0; },
     [](const ModelSpec&, const Choices&) {
       return no_such_model("model.router_groups",
                            "routers that choose groups of experts cannot be trained yet");
     }},
    {[](const ModelSpec&, const Choices& c) { return c.numerics.block_scales; },
     [](const ModelSpec&, const Choices&) {
       return usage_error("train.precision", "mxfp8 and nvfp4 cannot be trained yet",
                          "set train.precision to \"fp8\" or \"bf16\"");
     }},
    {[](const ModelSpec& m, const Choices&) { return m.is_moe() && m.bias; },
     [](const ModelSpec&, const Choices&) {
       return no_such_model("model.bias", "experts with biases cannot be trained yet");
     }},
    {[](const ModelSpec& m, const Choices& c) { return m.is_moe() && is_muon(c); },
     [](const ModelSpec&, const Choices&) {
       return usage_error("train.optimizer", "Muon cannot update the matrices of experts yet",
                          "set train.optimizer=adamw");
     }},
    {[](const ModelSpec& m, const Choices& c) { return m.is_moe() && c.layout.context.ranks > 1; },
     [](const ModelSpec&, const Choices&) {
       return usage_error("layout.cp", "the load of experts is balanced over whole sequences",
                          "set layout.cp=1");
     }},
    {[](const ModelSpec&, const Choices& c) {
       return c.document_mask && c.layout.context.ranks > 1;
     },
     [](const ModelSpec&, const Choices&) {
       return usage_error("layout.cp", "documents cannot be masked with context parallelism yet",
                          "set layout.cp=1, or data.mask=none");
     }},
    {[](const ModelSpec& m, const Choices& c) {
       return m.is_moe() && m.expert_width() % c.layout.tensor.ranks != 0;
     },
     [](const ModelSpec& m, const Choices& c) {
       return parts_error("model.expert_ffn", m.expert_width(), c);
     }},
    {[](const ModelSpec& m, const Choices& c) {
       return c.layout.spreads_experts() && (!m.is_moe() || m.experts % c.layout.expert.ranks != 0);
     },
     [](const ModelSpec& m, const Choices& c) {
       return usage_error("layout.ep",
                          fmt::format("{} experts cannot be divided by {} ranks", m.experts,
                                      c.layout.expert.ranks),
                          m.is_moe() ? "choose a divisor of model.experts" : "set layout.ep=1");
     }},
    {parts_differ<&ModelSpec::shared_ffn>,
     [](const ModelSpec& m, const Choices& c) {
       return parts_error("model.shared_ffn", m.shared_ffn, c);
     }},
    {[](const ModelSpec& m, const Choices&) { return m.value_embeddings; },
     [](const ModelSpec&, const Choices&) {
       return no_such_model("model.value_embeddings", "value embeddings cannot be trained yet");
     }},
    {[](const ModelSpec& m, const Choices&) { return m.residual_lambdas; },
     [](const ModelSpec&, const Choices&) {
       return no_such_model("model.residual_lambdas", "residual lambdas cannot be trained yet");
     }},
    {[](const ModelSpec& m, const Choices& c) {
       return c.layout.chunks > 1 && m.layers < c.layout.chunks * c.layout.pipeline.ranks;
     },
     [](const ModelSpec& m, const Choices& c) {
       return usage_error("layout.pp_chunks",
                          fmt::format("{} layers cannot fill {} stages of {} chunks", m.layers,
                                      c.layout.pipeline.ranks, c.layout.chunks),
                          "choose fewer chunks");
     }},
    {[](const ModelSpec&, const Choices& c) {
       return c.layout.chunks > 1 && c.accumulate % c.layout.pipeline.ranks != 0;
     },
     [](const ModelSpec&, const Choices& c) {
       return usage_error("batch.accumulate",
                          fmt::format("{} micro-batches cannot be interleaved over {} stages",
                                      c.accumulate, c.layout.pipeline.ranks),
                          "choose a multiple of layout.pp");
     }},
    {[](const ModelSpec&, const Choices& c) {
       const std::int64_t ranks = c.layout.context.ranks;
       return ranks > 1 && c.sequence % (2 * ranks) != 0;
     },
     [](const ModelSpec&, const Choices& c) {
       const std::int64_t ranks = c.layout.context.ranks;
       return usage_error(
           "batch.sequence",
           fmt::format("{} tokens cannot be cut into two pieces for each of layout.cp={} ranks",
                       c.sequence, ranks),
           fmt::format("choose a multiple of {}", 2 * ranks));
     }},
    {[](const ModelSpec&, const Choices& c) { return c.layout.tensor.ranks > 1 && is_muon(c); },
     [](const ModelSpec&, const Choices&) {
       return usage_error(
           "layout.tp",
           "Muon updates whole matrices, but tensor-parallel ranks have only parts of them",
           "set layout.tp=1, or train.optimizer=adamw");
     }},
    {parts_differ<&ModelSpec::heads>,
     [](const ModelSpec& m, const Choices& c) { return parts_error("model.heads", m.heads, c); }},
    {parts_differ<&ModelSpec::kv_heads>,
     [](const ModelSpec& m, const Choices& c) {
       return parts_error("model.kv_heads", m.kv_heads, c);
     }},
    {parts_differ<&ModelSpec::ffn>,
     [](const ModelSpec& m, const Choices& c) { return parts_error("model.ffn", m.ffn, c); }},
    {[](const ModelSpec&, const Choices& c) {
       return micro_tokens(c) % c.layout.tensor.ranks != 0;
     },
     [](const ModelSpec&, const Choices& c) {
       return usage_error("layout.tp",
                          fmt::format("{} tokens of a micro-batch cannot be divided by {} ranks",
                                      micro_tokens(c), c.layout.tensor.ranks),
                          "choose a divisor of batch.sequence");
     }},
    {[](const ModelSpec&, const Choices& c) { return is_muon(c) && c.layout.gathers_weights(); },
     [](const ModelSpec&, const Choices&) {
       return usage_error("layout.zero",
                          "Muon updates whole matrices, but zero 3 keeps only parts of them",
                          "set layout.zero=2");
     }},
};

// A width of the model whose rows are read in vectors, and its key.
struct GpuWidth {
  const char* key;
  std::int64_t ModelSpec::*value;
  std::int64_t most;
};
constexpr GpuWidth kGpuDim{"model.dim", &ModelSpec::dim, kGpuWidestRow};
constexpr GpuWidth kGpuFfn{"model.ffn", &ModelSpec::ffn, kGpuWidestFfn};
constexpr GpuWidth kGpuHead{"model.head_dim", &ModelSpec::head_dim, kGpuWidestHead};

template <const GpuWidth& width>
constexpr ProgramRule of_width() {
  return {[](const ModelSpec& m, const Choices&) {
            return m.*width.value % kGpuVector != 0 || m.*width.value > width.most;
          },
          [](const ModelSpec& m, const Choices&) {
            return usage_error(
                width.key, fmt::format("{} cannot be trained on a GPU", m.*width.value),
                fmt::format("choose a multiple of {}, at most {}", kGpuVector, width.most));
          }};
}

Error no_fp8(const char* key, std::int64_t size) {
  return usage_error(key, fmt::format("{} cannot be trained in fp8", size),
                     fmt::format("choose a multiple of {}, or bf16", kFp8Alignment));
}

template <const GpuWidth& width>
constexpr ProgramRule of_fp8_width() {
  return {[](const ModelSpec& m, const Choices& c) {
            return c.numerics.fp8_blocks && m.*width.value % kFp8Alignment != 0;
          },
          [](const ModelSpec& m, const Choices&) { return no_fp8(width.key, m.*width.value); }};
}

std::int64_t aligned_sides(const Choices& c) {
  return c.numerics.fp8_blocks ? kFp8Alignment : kGpuVector;
}

// A width that is divided among tensor-parallel ranks.
bool parts_unaligned(std::int64_t width, std::int64_t aligned, const Choices& c) {
  return width / c.layout.tensor.ranks % aligned != 0;
}

Error unaligned_parts(const char* key, std::int64_t width, std::int64_t aligned, const Choices& c) {
  if (c.layout.tensor.ranks == 1) {
    return usage_error(key, fmt::format("{} cannot be trained on a GPU", width),
                       fmt::format("choose a multiple of {}", aligned));
  }
  return usage_error("layout.tp",
                     fmt::format("{} ranks of {} {} cannot be trained on a GPU",
                                 c.layout.tensor.ranks, key, width),
                     fmt::format("choose a width that is a multiple of {} for each rank", aligned));
}

constexpr ProgramRule kGpuRules[] = {
    {[](const ModelSpec& m, const Choices&) { return m.experts > kGpuMostExperts; },
     [](const ModelSpec& m, const Choices&) {
       return usage_error("model.experts",
                          fmt::format("{} experts cannot be trained on a GPU", m.experts),
                          fmt::format("choose at most {}, or --device cpu", kGpuMostExperts));
     }},
    {[](const ModelSpec& m, const Choices& c) {
       return m.is_moe() && parts_unaligned(m.expert_width(), aligned_sides(c), c);
     },
     [](const ModelSpec& m, const Choices& c) {
       return unaligned_parts("model.expert_ffn", m.expert_width(), aligned_sides(c), c);
     }},
    {[](const ModelSpec& m, const Choices& c) {
       return m.is_moe() && parts_unaligned(m.shared_ffn, aligned_sides(c), c);
     },
     [](const ModelSpec& m, const Choices& c) {
       return unaligned_parts("model.shared_ffn", m.shared_ffn, aligned_sides(c), c);
     }},
    of_width<kGpuDim>(),
    of_width<kGpuFfn>(),
    of_width<kGpuHead>(),
    {[](const ModelSpec& m, const Choices& c) {
       return m.ffn / c.layout.tensor.ranks % aligned_sides(c) != 0;
     },
     [](const ModelSpec& m, const Choices& c) {
       return usage_error(
           "layout.tp",
           fmt::format("{} ranks of model.ffn {} cannot be trained on a GPU", c.layout.tensor.ranks,
                       m.ffn),
           fmt::format("choose a width that is a multiple of {} for each rank", aligned_sides(c)));
     }},
    of_fp8_width<kGpuDim>(),
    of_fp8_width<kGpuFfn>(),
    of_fp8_width<kGpuHead>(),
    {[](const ModelSpec&, const Choices& c) {
       return c.numerics.fp8_blocks && micro_tokens(c) % kFp8Alignment != 0;
     },
     [](const ModelSpec&, const Choices& c) { return no_fp8("batch.sequence", micro_tokens(c)); }},
};

const ProgramRule* first_broken(std::span<const ProgramRule> rules, const ModelSpec& model,
                                const Choices& choices) {
  for (const ProgramRule& rule : rules) {
    if (rule.broken(model, choices)) return &rule;
  }
  return nullptr;
}

base::Result<void> as_error(const ProgramRule* rule, const ModelSpec& model,
                            const Choices& choices) {
  if (rule == nullptr) return {};
  return base::fail(rule->error(model, choices));
}

}  // namespace

const ProgramRule* broken_rule(const ModelSpec& model, const Choices& choices) {
  return first_broken(kRules, model, choices);
}

const ProgramRule* broken_gpu_rule(const ModelSpec& model, const Choices& choices) {
  return first_broken(kGpuRules, model, choices);
}

base::Result<void> check(const ModelSpec& model, const Choices& choices) {
  return as_error(broken_rule(model, choices), model, choices);
}

base::Result<void> check_for_gpus(const ModelSpec& model, const Choices& choices) {
  return as_error(broken_gpu_rule(model, choices), model, choices);
}

}  // namespace assay::step
