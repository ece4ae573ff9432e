// Random jobs for property tests: small models of every kind, with any layout, batch, precision,
// optimizer and recomputation that programs can execute.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "spec/job.h"
#include "step/program.h"
#include "step/recompute.h"

namespace assay::step::testing {

inline spec::ModelSpec drawn_model() {
  spec::ModelSpec m{.vocab = *rc::gen::element(64, 100, 257),
                    .dim = 24,
                    .layers = *rc::gen::inRange(4, 9),
                    .heads = 4,
                    .kv_heads = *rc::gen::element(2, 4),
                    .head_dim = 6,
                    .ffn = *rc::gen::element(40, 64),
                    .context = 16};
  m.tied = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) m.qk_norm = spec::QkNorm::kLearned;
  if (*rc::gen::arbitrary<bool>()) m.positions = spec::Positions::kLearned;
  if (*rc::gen::inRange(0, 3) == 0) {
    m.experts = *rc::gen::inRange(1, 6);
    m.experts_per_token = *rc::gen::inRange<std::int64_t>(1, m.experts + 1);
    m.moe_every = *rc::gen::inRange(1, 3);
    m.dense_layers = *rc::gen::inRange(0, 2);
    m.expert_ffn = *rc::gen::element(0, 16);
    m.shared_ffn = *rc::gen::element(0, 32);
    m.router = *rc::gen::element(spec::Router::kSoftmax, spec::Router::kSigmoid);
    m.normalise_router = *rc::gen::arbitrary<bool>();
    m.capacity = *rc::gen::element(0.0, 0.75);
  }
  return m;
}

inline spec::LayoutSpec drawn_layout(const spec::ModelSpec& model) {
  spec::LayoutSpec l;
  l.dp = *rc::gen::inRange(1, 4);
  l.fsdp = *rc::gen::inRange(1, 5);
  l.zero = *rc::gen::inRange(1, 4);
  l.unit = *rc::gen::element(spec::ShardUnit::kBlock, spec::ShardUnit::kModule);
  l.pp = *rc::gen::weightedElement<std::int64_t>({{3, 1}, {2, 2}, {1, 3}, {1, 4}});
  const auto or_one = [&](std::int64_t spec::LayoutSpec::*degree, std::int64_t value) {
    l.*degree = value;
    if (!layout_of(l, 0)) l.*degree = 1;
  };
  or_one(&spec::LayoutSpec::tp, *rc::gen::element(1, 2));
  or_one(&spec::LayoutSpec::cp, model.is_moe() ? 1 : *rc::gen::element(1, 2));
  if (model.is_moe() && model.experts % 2 == 0) l.ep = *rc::gen::element(1, 2);
  l.sequence_parallel = l.tp > 1 && *rc::gen::arbitrary<bool>();
  if (l.pp > 1) {
    l.pp_schedule =
        *rc::gen::element(spec::PipelineSchedule::kGpipe, spec::PipelineSchedule::k1f1b,
                          spec::PipelineSchedule::kInterleaved, spec::PipelineSchedule::kZbH1);
    const bool fits = 2 * l.pp <= model.layers;
    if (l.pp_schedule == spec::PipelineSchedule::kInterleaved) {
      if (fits) l.pp_chunks = 2;
      if (!fits) l.pp_schedule = spec::PipelineSchedule::k1f1b;
    }
  }
  return l;
}

inline spec::JobSpec drawn_job() {
  spec::JobSpec job;
  job.model = drawn_model();
  job.layout = drawn_layout(job.model);
  job.layout.ranks = job.layout.dp * job.layout.inner_ranks();
  job.batch.sequence = 16;
  job.batch.micro_batch = *rc::gen::inRange(1, 3);
  job.batch.accumulate = *rc::gen::inRange(1, 20);
  if (job.layout.pp_chunks > 1) {
    job.batch.accumulate = job.layout.pp * *rc::gen::inRange(1, 4);
  }
  job.train.precision =
      *rc::gen::element(spec::Precision::kFp32, spec::Precision::kBf16, spec::Precision::kFp8);
  job.train.recompute = *rc::gen::elementOf(
      std::vector<spec::Recompute>(kRecomputePolicies.begin(), kRecomputePolicies.end()));
  const bool whole = job.layout.zero < 3 || job.layout.fsdp == 1;
  if (whole && !job.model.is_moe() && *rc::gen::inRange(0, 3) == 0)
    job.train.optimizer = spec::Optimizer::kMuon;
  if (job.layout.cp == 1)
    job.data.mask = *rc::gen::element(spec::Mask::kNone, spec::Mask::kDocument);
  // Combinations that are refused with Muon are often accepted with AdamW.
  Choices choices = choices_of(job);
  choices.layout = *layout_of(job.layout, 0);
  if (!build(job.model, choices)) job.train.optimizer = spec::Optimizer::kAdamw;
  return job;
}

inline Choices choices_of_rank(const spec::JobSpec& job, std::int64_t rank) {
  Choices choices = choices_of(job);
  choices.layout = *layout_of(job.layout, rank);
  return choices;
}

}  // namespace assay::step::testing
