#include "spec/rules.h"

#include <gtest/gtest.h>

#include "spec/load.h"

namespace assay::spec {
namespace {

// Published values, of which the rule was derived from one: Llama 3 8B and 70B (their report, table
// 3), and GPT-3 with 125 million parameters (its paper, table 2.1), whose values are used for GPT-2
// 124M today.
TEST(Recipe, IsNearWhatWasPublished) {
  EXPECT_DOUBLE_EQ(usual_learning_rate(4096, 4'194'304), 3e-4);
  EXPECT_DOUBLE_EQ(usual_learning_rate(8192, 4'194'304), 1.5e-4);
  EXPECT_NEAR(usual_learning_rate(768, 524'288), 6e-4, 0.4e-4);
  EXPECT_DOUBLE_EQ(usual_learning_rate(4096, 32'768), 2.7e-5);
}

// Measured, not published: docs/train.md. The number of tokens hardly matters there.
TEST(Recipe, IsNearWhatIsBestForSmallModels) {
  for (const std::int64_t tokens : {256, 1'024, 4'096, 32'768}) {
    EXPECT_DOUBLE_EQ(usual_learning_rate(32, tokens), 9.6e-3);
    EXPECT_DOUBLE_EQ(usual_learning_rate(64, tokens), 4.8e-3);
    EXPECT_DOUBLE_EQ(usual_learning_rate(128, tokens), 2.4e-3);
    EXPECT_DOUBLE_EQ(usual_learning_rate(256, tokens), 1.2e-3);
    EXPECT_DOUBLE_EQ(usual_learning_rate(512, tokens), 6e-4);
  }
  EXPECT_DOUBLE_EQ(usual_learning_rate(64, 4'194'304), 1e-2);  // the most
  // 300 steps are enough to reach these rates, which 30 steps of warm-up bear.
  EXPECT_EQ(usual_warmup(64, 4.8e-3, 300), 30);
  EXPECT_EQ(usual_warmup(512, 6e-4, 300), 30);
}

// Presets whose recipe is the rule's: smaller models did not change them.
TEST(Recipe, OfPresetsStays) {
  EXPECT_DOUBLE_EQ(usual_learning_rate(2048, 32'768), 5.3e-5);   // moe-9b-h200
  EXPECT_DOUBLE_EQ(usual_learning_rate(4096, 32'768), 2.7e-5);   // llama3-8b-h200
  EXPECT_DOUBLE_EQ(usual_learning_rate(5120, 524'288), 8.5e-5);  // llama3-13b-h200x32
  EXPECT_DOUBLE_EQ(usual_learning_rate(768, 524'288), 5.7e-4);   // nanochat-d12-plain-h200
  EXPECT_EQ(usual_warmup(2048, 5.3e-5, 1'000), 177);
}

TEST(Recipe, WarmsUp) {
  EXPECT_EQ(usual_warmup(4096, 3e-4, 1), 1);
  EXPECT_EQ(usual_warmup(4096, 3e-4, 1'000'000), 2000);
  EXPECT_EQ(usual_warmup(4096, 2.7e-5, 1'000), 180);
  EXPECT_EQ(usual_warmup(4096, 2.7e-5, 60), 20);  // a third
  EXPECT_EQ(usual_warmup(64, 1.5e-4, 200), 20);   // a tenth
  EXPECT_EQ(usual_warmup(64, 1.5e-4, 1'000'000), 2000);
  // llm.c has 700 steps for this one.
  EXPECT_NEAR(static_cast<double>(usual_warmup(768, 6e-4, 5000)), 700, 60);
}

JobSpec loaded(const std::string& preset, std::vector<std::string> sets = {}) {
  auto found = load(preset, {.overrides = std::move(sets)});
  EXPECT_TRUE(found.has_value()) << found.error().line();
  return std::get<JobSpec>(found->spec);
}

TEST(Recipe, IsUsedWhereAJobSaysNothing) {
  const JobSpec job = loaded("llama3-8b-h200", {"train.steps=1000"});
  EXPECT_DOUBLE_EQ(job.train.learning_rate, 2.7e-5);
  EXPECT_EQ(job.train.warmup_steps, 180);
  EXPECT_TRUE(job.train.learning_rate_is_usual && job.train.warmup_is_usual);
  const JobSpec larger = loaded("llama3-8b-h200", {"batch.accumulate=8", "train.steps=2000"});
  EXPECT_DOUBLE_EQ(larger.train.learning_rate, 5.3e-5);
  EXPECT_EQ(larger.train.warmup_steps, 354);
  // Too short for that rate.
  const JobSpec brief = loaded("llama3-8b-h200", {"train.steps=60"});
  EXPECT_EQ(brief.train.warmup_steps, 20);
  EXPECT_DOUBLE_EQ(brief.train.learning_rate, 3e-6);
  const JobSpec warm = loaded("llama3-8b-h200", {"train.steps=60", "train.warmup_steps=40"});
  EXPECT_DOUBLE_EQ(warm.train.learning_rate, 6e-6);
  EXPECT_TRUE(warm.train.learning_rate_is_usual && !warm.train.warmup_is_usual);
  const JobSpec asked =
      loaded("llama3-8b-h200", {"train.warmup_steps=0", "train.learning_rate=0.001"});
  EXPECT_EQ(asked.train.warmup_steps, 0);
  EXPECT_DOUBLE_EQ(asked.train.learning_rate, 1e-3);
  EXPECT_FALSE(asked.train.learning_rate_is_usual || asked.train.warmup_is_usual);
}

}  // namespace
}  // namespace assay::spec
