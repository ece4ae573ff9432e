#include "spec/recipe.h"

#include <gtest/gtest.h>

#include "spec/load.h"

namespace assay::spec {
namespace {

// What was published, which the rule knows one of: Llama 3 8B and 70B (their report, table 3),
// GPT-3 of 125 million parameters (its paper, table 2.1), which GPT-2 124M is trained with today.
TEST(Recipe, IsNearWhatWasPublished) {
  EXPECT_DOUBLE_EQ(usual_learning_rate(4096, 4'194'304), 3e-4);
  EXPECT_DOUBLE_EQ(usual_learning_rate(8192, 4'194'304), 1.5e-4);
  EXPECT_NEAR(usual_learning_rate(768, 524'288), 6e-4, 0.4e-4);
  EXPECT_DOUBLE_EQ(usual_learning_rate(4096, 32'768), 2.7e-5);
  EXPECT_DOUBLE_EQ(usual_learning_rate(64, 4'194'304), 3e-3);
}

TEST(Recipe, WarmsUp) {
  EXPECT_EQ(usual_warmup(1), 1);
  EXPECT_EQ(usual_warmup(20), 2);
  EXPECT_EQ(usual_warmup(1'000'000), 2000);
}

JobSpec loaded(const std::string& preset, std::vector<std::string> sets = {}) {
  auto found = load(preset, {.overrides = std::move(sets)});
  EXPECT_TRUE(found.has_value()) << found.error().line();
  return std::get<JobSpec>(found->spec);
}

TEST(Recipe, IsUsedWhereAJobSaysNothing) {
  const JobSpec job = loaded("llama3-8b-h200");
  EXPECT_DOUBLE_EQ(job.train.learning_rate, 2.7e-5);
  EXPECT_GT(job.train.warmup_steps, 0);
  const JobSpec larger = loaded("llama3-8b-h200", {"batch.accumulate=8", "train.steps=500"});
  EXPECT_DOUBLE_EQ(larger.train.learning_rate, 5.3e-5);
  EXPECT_EQ(larger.train.warmup_steps, 50);
  const JobSpec asked =
      loaded("llama3-8b-h200", {"train.warmup_steps=0", "train.learning_rate=0.001"});
  EXPECT_EQ(asked.train.warmup_steps, 0);
  EXPECT_DOUBLE_EQ(asked.train.learning_rate, 1e-3);
}

}  // namespace
}  // namespace assay::spec
