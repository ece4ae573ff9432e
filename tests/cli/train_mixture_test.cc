// Mixtures of experts through the verbs: trained, exported, imported, resumed, sampled from; and
// refused with one line where the checkpoint or the files are of another mixture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::HasSubstr;

class MixtureCli : public ::testing::Test {
 protected:
  support::ProcessResult assay(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), support::program());
    return support::run({arguments, "", directory_.path()});
  }
  support::ProcessResult train(const std::vector<std::string>& more,
                               const std::vector<std::string>& sets = {}) {
    std::vector<std::string> list = {"train", "demo", "--device", "cpu", "--quiet"};
    list.insert(list.end(), more.begin(), more.end());
    for (const char* set :
         {"model.dim=32", "model.layers=2", "model.heads=4", "model.kv_heads=2", "model.ffn=48",
          "model.context=32", "batch.sequence=32", "batch.micro_batch=2", "train.steps=4",
          "train.warmup_steps=1", "model.experts=4", "model.experts_per_token=2"}) {
      list.insert(list.end(), {"--set", set});
    }
    for (const std::string& set : sets) list.insert(list.end(), {"--set", set});
    return assay(std::move(list));
  }
  std::string content(const fs::path& path) {
    std::ifstream file(directory_.path() / path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void expect_refused(const support::ProcessResult& outcome, const std::string& line) {
    EXPECT_EQ(outcome.exit_code, 64) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(line));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

  base::testing::TempDir directory_;
};

TEST_F(MixtureCli, SurvivesTheHuggingFaceFormat) {
  const auto trained = train({"--out", "run", "--stop-after", "2"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(assay({"generate", "run", "--tokens", "3"}).exit_code, 0);
  ASSERT_EQ(assay({"checkpoint", "export-hf", "run/checkpoints/step-2", "hf"}).exit_code, 0);
  EXPECT_EQ(Json::parse(content("hf/config.json"))["model_type"], "mixtral");
  const auto imported = assay({"checkpoint", "import-hf", "hf", "again"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  ASSERT_EQ(assay({"checkpoint", "export-hf", "again/checkpoints/step-0", "hf2"}).exit_code, 0);
  EXPECT_EQ(content("hf/model.safetensors"), content("hf2/model.safetensors"));
  EXPECT_EQ(assay({"generate", "again", "--tokens", "3"}).exit_code, 0);
  const auto resumed = train({"--out", "again", "--resume", "--stop-after", "1"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(MixtureCli, AnotherMixtureIsRefusedInOneLine) {
  ASSERT_EQ(train({"--out", "run", "--stop-after", "2"}).exit_code, 0);
  expect_refused(train({"--out", "run", "--resume"}, {"model.experts=8"}),
                 "step-2: is a checkpoint of another model: model.experts is 4 in the checkpoint "
                 "and 8 in this job");
  // The same shapes, and still another model.
  expect_refused(train({"--out", "run", "--resume"}, {"model.experts_per_token=1"}),
                 "model.experts_per_token is 2 in the checkpoint and 1 in this job");
  expect_refused(train({"--out", "run", "--resume"}, {"model.experts_per_token=5"}),
                 "5 experts per token, but there are only 4");

  ASSERT_EQ(assay({"checkpoint", "export-hf", "run/checkpoints/step-2", "hf"}).exit_code, 0);
  ASSERT_EQ(assay({"checkpoint", "import-hf", "hf", "imported"}).exit_code, 0);
  expect_refused(train({"--out", "imported", "--resume"}, {"model.experts=8"}),
                 "step-0: is a checkpoint of another model: model.experts is 4 in the checkpoint "
                 "and 8 in this job");

  const Json config = Json::parse(content("hf/config.json"));
  for (const auto& [key, value, line] :
       {std::tuple{"num_experts_per_tok", 5, "num_experts_per_tok is 5, but there are 4 experts"},
        std::tuple{"num_local_experts", 8, "gate.weight has the shape 4x32, expected 8x32"},
        std::tuple{"num_local_experts", 0, "does not say how many experts"}}) {
    Json changed = config;
    changed[key] = value;
    std::ofstream(directory_.path() / "hf/config.json") << changed.dump();
    expect_refused(assay({"checkpoint", "import-hf", "hf", "bad"}), line);
    EXPECT_FALSE(fs::exists(directory_.path() / "bad"));
  }
}

// One process for each rank: losses are those of one rank, up to rounding, whatever layout a run is
// moved to.
TEST_F(MixtureCli, ExpertsAreSpreadOverProcesses) {
  const auto last_loss = [&](const std::string& out, std::vector<std::string> more,
                             const std::vector<std::string>& sets) {
    more.insert(more.end(), {"--json", "--out", out});
    const auto trained = train(more, sets);
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    const std::string lines = trained.out.substr(0, trained.out.find_last_not_of('\n') + 1);
    const Json last = Json::parse(lines.substr(lines.rfind('\n') + 1), nullptr, false);
    EXPECT_TRUE(last.is_object() && last.contains("loss")) << trained.out;
    return last.value("loss", 0.0);
  };
  const double expected = last_loss("one", {}, {"batch.accumulate=4"});
  EXPECT_GT(expected, 1);
  const std::vector<std::string> spread = {"batch.accumulate=2", "layout.ep=2"};
  EXPECT_NEAR(last_loss("two", {}, spread), expected, 1e-5 * expected);
  // Stopped, and ended in the same layout: to the last bit. In another: up to rounding.
  last_loss("again", {"--stop-after", "2"}, spread);
  last_loss("again", {"--resume"}, spread);
  EXPECT_EQ(assay({"checkpoint", "diff", "two", "again"}).exit_code, 0);
  last_loss("moved", {"--stop-after", "2"}, spread);
  EXPECT_NEAR(last_loss("moved", {"--resume"}, {"batch.accumulate=1", "layout.ep=4"}), expected,
              1e-5 * expected);
  EXPECT_EQ(assay({"checkpoint", "diff", "two", "moved"}).exit_code, 1);

  expect_refused(train({"--out", "bad"}, {"layout.ep=3"}),
                 "layout.ep: ep 3 does not divide 4 experts");
  expect_refused(train({"--out", "bad"}, {"layout.ep=2", "layout.cp=2"}), "layout.cp: ");
  expect_refused(train({"--out", "bad"}, {"layout.ep=2", "train.optimizer=muon"}),
                 "train.optimizer: ");
  expect_refused(train({"--out", "moved", "--resume"}, {"layout.ep=2", "model.experts=8"}),
                 "model.experts is 4 in the checkpoint and 8 in this job");
}

}  // namespace
}  // namespace assay
