// The recipes of presets, on models small enough for a CPU: no loss ever exceeds its first by more
// than 5 %, and all fall as they did when their curves were recorded (curves.csv).
//
//   ASSAY_RECORD_CURVES=tests/train/curves.csv build/tests/trainer_test --gtest_filter='*Recipe*'
//
// records them anew, after a change that is meant to change them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <variant>

#include "base/testing/temp_dir.h"
#include "spec/load.h"
#include "train/cpu/cpu_backend.h"
#include "train/data/synth.h"
#include "train/tiny_job.h"

namespace assay::train {
namespace {

constexpr std::int64_t kSteps = 100;
constexpr std::int64_t kEvery = 10;  // steps that are recorded

struct Recipe {
  const char* preset;
  std::vector<std::string> smaller;  // keys that make it small; what is trained how stays
  std::uint64_t sequence = 32;
  std::int64_t steps = kSteps;  // of its schedule's first
};

// The width and batch of the recipe's learning rate are those of the small model.
std::vector<std::string> with_small_model(std::vector<std::string> more) {
  std::vector<std::string> keys = {
      "model.vocab=256",    "model.dim=64",        "model.layers=2",    "model.heads=4",
      "model.ffn=128",      "model.context=32",    "batch.sequence=32", "batch.micro_batch=8",
      "batch.accumulate=1", "train.precision=fp32"};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> list = {
      {"demo", {}, 256, 10},
      {"llama3-8b-h200", with_small_model({"model.kv_heads=2", "train.steps=200"})},
      {"moe-9b-h200", with_small_model({"model.kv_heads=2", "model.experts=4", "train.steps=200"})},
      {"gpt2-124m-h200", with_small_model({"train.steps=200", "train.warmup_steps=20"})},
      {"nanochat-d12-plain-h200", with_small_model({"train.tokens_per_matmul_parameter=0.7"})}};
  return list;
}

using Curve = std::map<std::int64_t, double>;  // loss by step

std::map<std::string, Curve> recorded_curves() {
  std::map<std::string, Curve> curves;
  std::ifstream file(std::string(ASSAY_SOURCE_DIR) + "/tests/train/curves.csv");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("preset,")) continue;
    std::istringstream fields(line);
    std::string name;
    std::string step;
    std::string loss;
    std::getline(fields, name, ',');
    std::getline(fields, step, ',');
    std::getline(fields, loss, ',');
    curves[name][std::stoll(step)] = std::stod(loss);
  }
  return curves;
}

class RecipeTest : public ::testing::Test {
 protected:
  std::vector<StepReport> trained(const Recipe& recipe, const std::vector<std::string>& more = {}) {
    std::vector<std::string> overrides = recipe.smaller;
    overrides.insert(overrides.end(), more.begin(), more.end());
    const auto loaded = spec::load(recipe.preset, {.overrides = overrides});
    EXPECT_TRUE(loaded.has_value()) << loaded.error().line();
    if (!loaded) return {};
    spec::JobSpec job = std::get<spec::JobSpec>(loaded->spec);
    EXPECT_GT(job.train.warmup_steps, 0) << recipe.preset;
    const auto backend = cpu::make_cpu_backend(2);
    const auto planned =
        plan_step(job, step::choices_of(job), memory_budget(*backend, std::int64_t{1} << 32U));
    EXPECT_TRUE(planned.has_value()) << planned.error().line();
    if (!planned || !backend->prepare(planned->program, planned->plan)) return {};
    const auto set = data::TokenSet::open({.paths = {tokens_.string()}}, recipe.sequence);
    EXPECT_TRUE(set.has_value()) << set.error().line();
    if (!set) return {};
    const data::BatchReader reader(*set, 1, static_cast<std::int32_t>(job.model.vocab));
    RecordingReporter reporter;
    const base::testing::TempDir out;
    const auto result = train(job, *planned, *backend, reader,
                              {.out = out.path(), .stop_after = recipe.steps}, reporter);
    EXPECT_TRUE(result.has_value()) << result.error().line();
    return reporter.reports;
  }

  // Not the built-in text, which changes with every sentence of the documentation.
  void SetUp() override {
    const auto written =
        data::synthesize({.output = tokens_, .tokens = 1 << 18, .vocabulary = 256, .seed = 1});
    ASSERT_TRUE(written.has_value()) << written.error().line();
  }

  base::testing::TempDir dir_;
  std::filesystem::path tokens_ = dir_.path() / "synthetic.tokens";
};

// The worst of a run, as a part of its first loss.
double worst(const std::vector<StepReport>& reports) {
  double most = 0;
  for (const StepReport& report : reports) most = std::max(most, report.loss);
  return most / reports.front().loss;
}

TEST_F(RecipeTest, LearnsWithoutJumping) {
  const char* record = std::getenv("ASSAY_RECORD_CURVES");
  const auto curves = recorded_curves();
  std::string text = "preset,step,loss\n";
  for (const Recipe& recipe : recipes()) {
    SCOPED_TRACE(recipe.preset);
    const std::vector<StepReport> reports = trained(recipe);
    ASSERT_EQ(reports.size(), static_cast<std::size_t>(recipe.steps));
    EXPECT_LT(worst(reports), 1.05);
    for (std::int64_t step = kEvery; step <= recipe.steps; step += kEvery) {
      const double loss = reports[static_cast<std::size_t>(step - 1)].loss;
      text += fmt::format("{},{},{:.4f}\n", recipe.preset, step, loss);
      if (record != nullptr) continue;
      ASSERT_TRUE(curves.contains(recipe.preset));
      // Processors and libraries round differently.
      EXPECT_LE(loss, 1.01 * curves.at(recipe.preset).at(step)) << "step " << step;
    }
  }
  if (record != nullptr) std::ofstream(record) << text;
}

// What the presets did before they had a warm-up and a learning rate for their batch.
TEST_F(RecipeTest, WouldJumpWithoutOne) {
  const Recipe recipe{"llama3-8b-h200",
                      with_small_model({"model.kv_heads=2", "train.steps=200",
                                        "train.warmup_steps=1", "train.learning_rate=0.1"})};
  const std::vector<StepReport> reports = trained(recipe);
  ASSERT_FALSE(reports.empty());
  EXPECT_GT(worst(reports), 1.05);
}

}  // namespace
}  // namespace assay::train
