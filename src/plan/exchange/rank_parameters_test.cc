// What ranks hold: all of them together hold the model, nothing twice that is not copied.
#include "plan/exchange/rank_parameters.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "spec/load.h"
#include "step/parameter.h"
#include "step/units.h"

namespace assay::plan {
namespace {

spec::JobSpec job_with_model(const std::string& preset) {
  spec::JobSpec job;
  job.model = std::get<spec::ModelSpec>(spec::load(preset).value().spec);
  job.layout.dp = 1;
  return job;
}

TEST(RankParameters, StagesAndExpertRanksHoldEverythingOnce) {
  struct Case {
    const char* model;
    std::int64_t pp, chunks, ep, moe_every;
  };
  for (const Case& c : {Case{"llama3-8b", 1, 1, 1, 1}, Case{"llama3-8b", 4, 2, 1, 1},
                        Case{"moe-9b", 3, 1, 4, 1}, Case{"moe-9b", 4, 3, 2, 5},
                        Case{"nanochat-d26", 13, 1, 1, 1}, Case{"nanochat-d15", 5, 3, 1, 1}}) {
    SCOPED_TRACE(c.model);
    spec::JobSpec job = job_with_model(c.model);
    job.model.moe_every = c.moe_every;
    job.layout.pp = c.pp;
    job.layout.pp_chunks = c.chunks;
    job.layout.ep = c.ep;
    std::map<std::string, std::int64_t> tensors;
    for (std::int64_t stage = 0; stage < c.pp; ++stage) {
      for (const RankParameterGroup& group : parameters_of_stage(job, stage).groups) {
        EXPECT_FALSE(group.cut());
        tensors[group.part.name] += group.part.count * (group.part.expert ? c.ep : 1);
      }
    }
    for (const spec::ParameterGroup& group : spec::parameters_of(job.model).groups) {
      EXPECT_EQ(tensors[group.name], group.count) << group.name;
    }
  }
}

std::int64_t tensors_held(const spec::JobSpec& job, std::int64_t stage, const std::string& name) {
  for (const RankParameterGroup& group : parameters_of_stage(job, stage).groups) {
    if (group.part.name == name) return group.part.count;
  }
  return -1;
}

// The only mixture is layer 13 of 24: in the third of four runs of six layers, which is the first
// stage's again when two stages take turns.
TEST(RankParameters, InterleavedStagesTakeTurns) {
  spec::JobSpec job = job_with_model("moe-9b");
  job.model.moe_every = 13;
  job.layout.pp = 2;
  EXPECT_EQ(tensors_held(job, 0, "router"), 0);
  EXPECT_EQ(tensors_held(job, 1, "router"), 1);
  job.layout.pp_chunks = 2;
  EXPECT_EQ(tensors_held(job, 0, "router"), 1);
  EXPECT_EQ(tensors_held(job, 1, "router"), 0);
}

// The last block has them, the one before does not, and so on.
TEST(RankParameters, ValueEmbeddingsAreInEverySecondBlockFromTheEnd) {
  spec::JobSpec job = job_with_model("nanochat-d26");
  job.layout.pp = 26;
  for (std::int64_t stage = 0; stage < 26; ++stage) {
    EXPECT_EQ(tensors_held(job, stage, "value_embeddings"), stage % 2) << stage;
  }
}

// A block's projections, MLP and vocabulary in equal parts; norms, and heads of keys and values
// beyond their number, on every rank.
TEST(RankParameters, TensorParallelRanksHoldEqualPartsAndCopies) {
  spec::JobSpec job = job_with_model("llama3-8b");  // 32 heads, 8 of keys and values
  job.layout.tp = 16;
  for (const RankParameterGroup& group : parameters_of_rank(job).groups) {
    const std::string& name = group.part.name;
    const bool copied = name.ends_with("norm");
    const bool keys = name == "attn_k" || name == "attn_v";
    const std::int64_t parts = copied ? 1 : keys ? 8 : 16;
    EXPECT_EQ(group.part.elements_each() * parts, group.whole_each) << name;
  }
}

// 50,257 tokens over 4 ranks: the last one's rows are filled up. Biases follow their matrices.
TEST(RankParameters, VocabularyIsFilledUpAndBiasesAreCutWithTheirMatrices) {
  spec::JobSpec job = job_with_model("gpt2-124m");
  job.layout.tp = 4;
  std::map<std::string, std::int64_t> held;
  for (const RankParameterGroup& group : parameters_of_rank(job).groups) {
    held[group.part.name] = group.part.elements_each();
  }
  EXPECT_EQ(held["embedding"], 12'565 * 768);
  EXPECT_EQ(held["positions"], 1024 * 768);
  EXPECT_EQ(held["attn_qkv_bias"], 3 * 768 / 4);
  EXPECT_EQ(held["mlp_up_bias"], 3072 / 4);
  EXPECT_EQ(held["mlp_down_bias"], 768);
}

TEST(RankParameters, ATiedEmbeddingIsAtBothEndsOfAPipeline) {
  spec::JobSpec job = job_with_model("gpt2-124m");
  job.layout.pp = 3;
  EXPECT_EQ(tensors_held(job, 0, "embedding"), 1);
  EXPECT_EQ(tensors_held(job, 1, "embedding"), 0);
  EXPECT_EQ(tensors_held(job, 2, "embedding"), 1);
}

// What programs keep of the same model: tensor-parallel ranks together, who have different parts of
// a table.
TEST(RankParameters, IsWhatProgramsKeep) {
  struct Case {
    const char* model;
    std::int64_t tp, pp;
  };
  for (const Case& c : {Case{"llama3-70b", 8, 4}, Case{"llama3-8b", 1, 2}, Case{"moe-9b", 2, 1},
                        Case{"gpt2-124m", 4, 3}}) {
    spec::JobSpec job = job_with_model(c.model);
    job.layout.tp = c.tp;
    job.layout.pp = c.pp;
    for (const std::int64_t stage : {std::int64_t{0}, c.pp - 1}) {
      double kept = 0;
      for (std::int64_t rank = 0; rank < c.tp; ++rank) {
        const step::Layout layout = step::layout_of(job.layout, rank).value();
        auto parameters = step::list_parameters(job.model, spec::Optimizer::kAdamw, layout);
        const auto units = step::make_units(job.model, layout, parameters);
        for (const step::Parameter& p : parameters) {
          const step::Unit& unit = units[static_cast<std::size_t>(p.unit)];
          const bool is_head = job.model.tied && stage == c.pp - 1 && unit.name == "embedding";
          if (unit.stage == stage || is_head) kept += static_cast<double>(p.elements());
        }
      }
      const auto held = static_cast<double>(parameters_of_stage(job, stage).elements() * c.tp);
      EXPECT_NEAR(kept / held, 1.0, 1e-4) << c.model << ", stage " << stage;
    }
  }
}

// Units are only another way of listing what the groups count.
RC_GTEST_PROP(RankParameters, UnitsAddUpToGroups, ()) {
  spec::JobSpec job =
      job_with_model(*rc::gen::element<std::string>("moe-9b", "nanochat-d12", "gpt2-124m"));
  job.layout.pp = *rc::gen::element(1, 2, 4);
  if (job.model.is_moe()) job.model.moe_every = *rc::gen::inRange(1, 6);
  const RankParameters held =
      parameters_of_stage(job, *rc::gen::inRange<std::int64_t>(0, job.layout.pp));
  for (std::size_t i = 0; i < held.groups.size(); ++i) {
    std::int64_t tensors = 0;
    for (const ExchangeUnit& unit : held.units) tensors += unit.tensors[i] * unit.count;
    RC_ASSERT(tensors == held.groups[i].part.count);
  }
}

}  // namespace
}  // namespace assay::plan
