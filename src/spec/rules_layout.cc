// Rules of a layout: its degrees against the number of ranks, and against the model they divide.
#include "spec/rules.h"

#include <fmt/format.h>

#include <string>

#include "spec/enum_names.h"
#include "spec/rule_error.h"
#include "spec/schema.h"

namespace assay::spec {
namespace {

// "dp 2 x fsdp 4 x tp 2 = 16", degrees of 1 left out.
std::string product_text(const LayoutSpec& l) {
  std::string text;
  const auto add = [&](const char* name, std::int64_t degree) {
    if (degree > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " x ", name, degree);
  };
  add("dp", l.dp);
  add("fsdp", l.fsdp);
  add("tp", l.tp);
  add("pp", l.pp);
  add("cp", l.cp);
  add("ep", l.ep);
  return fmt::format("{} = {}", text.empty() ? "1" : text, l.dp * l.inner_ranks());
}

// A change of one degree that makes the product right, if there is one.
std::string repair(const LayoutSpec& l, std::int64_t ranks) {
  const auto fits = [&](std::int64_t degree) {
    const std::int64_t others = l.dp * l.inner_ranks() / degree;
    return ranks % others == 0 ? ranks / others : 0;
  };
  if (const std::int64_t dp = fits(l.dp); dp > 0) return fmt::format("layout.dp = {} fits", dp);
  if (const std::int64_t fsdp = fits(l.fsdp); fsdp > 0) {
    return fmt::format("layout.fsdp = {} fits", fsdp);
  }
  if (const std::int64_t tp = fits(l.tp); tp > 0) return fmt::format("layout.tp = {} fits", tp);
  return "change the layout or the cluster";
}

// `ranks_text` names the source of the ranks: "the cluster has 8 devices (1 node of 8)".
base::Result<void> fit_ranks(LayoutSpec& l, std::int64_t ranks, const std::string& ranks_text,
                             const RuleErrors& rule) {
  if (l.dp == 0) l.dp = ranks % l.inner_ranks() == 0 ? ranks / l.inner_ranks() : 1;
  if (l.dp * l.inner_ranks() != ranks) {
    return rule.broken("layout", fmt::format("{} ranks, but {}", product_text(l), ranks_text),
                       repair(l, ranks));
  }
  return {};
}

// Rules that do not depend on the model.
base::Result<void> check_degrees(const LayoutSpec& l, const RuleErrors& rule) {
  const auto product = checked_product({l.dp == 0 ? 1 : l.dp, l.fsdp, l.tp, l.pp, l.cp, l.ep});
  if (!product || static_cast<double>(*product) > kMostRanks) {
    return rule.broken("layout", "more than 10,000,000 ranks", "lower a degree");
  }
  if (l.sequence_parallel && l.tp == 1) {
    return rule.broken("layout.sequence_parallel", "applies to tensor-parallel ranks, but tp is 1",
                       "set layout.tp above 1 or remove it");
  }
  const bool shards = l.fsdp > 1 || l.ep > 1;
  if (!shards && rule.written("layout.zero")) {
    return rule.broken("layout.zero", "sets what fsdp shards, but fsdp is 1",
                       "set layout.fsdp above 1 or remove it");
  }
  if ((!shards || l.zero < 3) && rule.written("layout.unit")) {
    return rule.broken("layout.unit",
                       "sets how sharded parameters are gathered, but none are sharded",
                       "set layout.fsdp above 1 and layout.zero to 3, or remove it");
  }
  const bool interleaved = l.pp_schedule == PipelineSchedule::kInterleaved;
  if (interleaved && l.pp == 1) {
    return rule.broken("layout.pp_schedule", "interleaves pipeline stages, but pp is 1",
                       "set layout.pp above 1 or remove it");
  }
  if (l.pp_schedule == PipelineSchedule::kZbH1 && l.pp == 1) {
    return rule.broken("layout.pp_schedule", "applies to pipeline stages, but pp is 1",
                       "set layout.pp above 1 or remove it");
  }
  if (interleaved != (l.pp_chunks > 1)) {
    return rule.broken("layout.pp_chunks",
                       fmt::format("the {} schedule cannot have {} chunks per stage",
                                   to_text(l.pp_schedule), l.pp_chunks),
                       interleaved ? "set it to 2 or more" : "use pp_schedule = \"interleaved\"");
  }
  return {};
}

// Each degree must divide the model into equal parts.
base::Result<void> check_cuts(const JobSpec& job, const RuleErrors& rule) {
  const ModelSpec& m = job.model;
  const LayoutSpec& l = job.layout;
  if (m.heads % l.tp != 0) {
    return rule.broken("layout.tp", fmt::format("tp {} does not divide {} heads", l.tp, m.heads),
                       "choose a divisor of model.heads");
  }
  if (m.kv_heads % l.tp != 0 && l.tp % m.kv_heads != 0) {
    return rule.broken("layout.tp",
                       fmt::format("tp {} neither divides {} kv_heads nor is a multiple of them",
                                   l.tp, m.kv_heads));
  }
  if (m.ffn % l.tp != 0) {
    return rule.broken("layout.tp", fmt::format("tp {} does not divide ffn {}", l.tp, m.ffn),
                       "choose a divisor of model.ffn");
  }
  // An interleaved first chunk may have the embedding alone, and the last one the head.
  const std::int64_t empty = l.pp_chunks > 1 ? 2 : 0;
  if (m.layers + empty < l.pp * l.pp_chunks) {
    return rule.broken("layout.pp",
                       fmt::format("{} layers are too few for {} stages of {} chunk{}", m.layers,
                                   l.pp, l.pp_chunks, l.pp_chunks == 1 ? "" : "s"),
                       "each chunk needs a layer: lower layout.pp or layout.pp_chunks");
  }
  if (job.batch.sequence % l.cp != 0) {
    return rule.broken("layout.cp", fmt::format("cp {} does not divide the sequence of {}", l.cp,
                                                job.batch.sequence));
  }
  if (l.sequence_parallel && job.batch.sequence % (l.tp * l.cp) != 0) {
    return rule.broken("layout.sequence_parallel",
                       fmt::format("tp {} x cp {} does not divide the sequence of {}", l.tp, l.cp,
                                   job.batch.sequence),
                       "choose divisors of batch.sequence");
  }
  if (l.ep > 1 && !m.is_moe()) {
    return rule.broken("layout.ep", fmt::format("ep {}, but the model has no experts", l.ep),
                       "remove it or set model.experts");
  }
  if (l.ep > 1 && m.experts % l.ep != 0) {
    return rule.broken("layout.ep",
                       fmt::format("ep {} does not divide {} experts", l.ep, m.experts));
  }
  return {};
}

}  // namespace

base::Result<void> complete(LayoutSpec& l, const Value& document) {
  const RuleErrors rule(document);
  ASSAY_TRY_VOID(check_degrees(l, rule));
  if (!l.ranks) {
    if (l.dp == 0) l.dp = 1;
    l.ranks = l.dp * l.inner_ranks();
    return {};
  }
  return fit_ranks(l, *l.ranks, fmt::format("layout.ranks is {}", *l.ranks), rule);
}

base::Result<void> complete_layout(JobSpec& job, const Value& document, bool ranks_from_layout) {
  const RuleErrors rule(document);
  LayoutSpec& l = job.layout;
  if (ranks_from_layout) {
    ASSAY_TRY_VOID(complete(l, document));
    return check_cuts(job, rule);
  }
  const std::int64_t devices = job.cluster.devices();
  ASSAY_TRY_VOID(check_degrees(l, rule));
  if (l.ranks && *l.ranks != devices) {
    return rule.broken("layout.ranks",
                       fmt::format("{} ranks, but the cluster has {} devices", *l.ranks, devices),
                       "remove it or change the cluster");
  }
  l.ranks = devices;
  const std::string text = fmt::format(
      "the cluster has {} device{} ({} node{} of {})", devices, devices == 1 ? "" : "s",
      job.cluster.nodes, job.cluster.nodes == 1 ? "" : "s", job.cluster.devices_per_node);
  ASSAY_TRY_VOID(fit_ranks(l, devices, text, rule));
  return check_cuts(job, rule);
}

base::Result<void> check_layout(const JobSpec& job) {
  JobSpec copy;
  copy.model = job.model;
  copy.batch = job.batch;
  copy.layout = job.layout;
  copy.cluster = job.cluster;
  return complete_layout(copy, Value());
}

}  // namespace assay::spec
