// The verb `assay checkpoint`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(checkpoint::prepare_root(directory_.path() / "run"));
    for (const std::int64_t step : {100, 200, 300}) {
      ASSERT_TRUE(checkpoint::write_checkpoint(directory_.path() / "run",
                                               checkpoint::testing::snapshot_of_step(step)));
    }
  }
  support::ProcessResult run_verb(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {support::program(), "checkpoint"});
    return support::run({arguments, "", directory_.path()});
  }

  base::testing::TempDir directory_;
};

TEST_F(CheckpointVerb, ListsTheSameForPeopleAndPrograms) {
  const auto text = run_verb({"list", "run"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("next: assay checkpoint verify run/step-300\n"));
  const Json json = Json::parse(run_verb({"list", "run", "--json"}).out);
  ASSERT_EQ(json["checkpoints"].size(), 3U);
  for (const Json& one : json["checkpoints"]) {
    EXPECT_THAT(text.out, HasSubstr(one["written"].get<std::string>()));
    EXPECT_EQ(one["tokens"], one["step"].get<std::int64_t>() * 4096);
    EXPECT_EQ(one["files"][0]["blake3"].get<std::string>().size(), 64U);
  }
  EXPECT_EQ(json["checkpoints"][2]["folder"], "run/step-300");
}

TEST_F(CheckpointVerb, VerifiesOneOrAll) {
  EXPECT_EQ(run_verb({"verify", "run/step-100"}).exit_code, 0);
  EXPECT_EQ(run_verb({"verify", "run/step-100/"}).exit_code, 0);
  const auto all = run_verb({"verify", "run"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_THAT(all.out, HasSubstr("intact"));
  EXPECT_THAT(run_verb({"verify", "run", "--quiet"}).out, IsEmpty());
}

TEST_F(CheckpointVerb, DamageIsOneLineThatNamesTheFile) {
  const fs::path file = directory_.path() / "run/step-200/optimizer.safetensors";
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(-1, std::ios::end);
  const char before = static_cast<char>(stream.peek());
  stream.put(static_cast<char>(before + 1));
  stream.close();
  for (const char* folder : {"run", "run/step-200"}) {
    const auto outcome = run_verb({"verify", folder});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.err,
              "assay: run/step-200/optimizer.safetensors: differs from what was written; "
              "the checkpoint is damaged; use another\n");
    EXPECT_THAT(outcome.out, HasSubstr("damaged: differs from what was written"));
  }
  const Json json = Json::parse(run_verb({"verify", "run", "--json"}).out);
  EXPECT_EQ(json["checkpoints"][0]["ok"], true);
  EXPECT_EQ(json["checkpoints"][1]["ok"], false);
  EXPECT_EQ(json["checkpoints"][1]["error"]["where"], "run/step-200/optimizer.safetensors");
  // `list` compares lengths only.
  EXPECT_THAT(run_verb({"list", "run"}).out, ::testing::Not(HasSubstr("damaged")));
}

TEST_F(CheckpointVerb, MissingFilesAndFolders) {
  fs::remove(directory_.path() / "run/step-200/manifest.json");
  auto outcome = run_verb({"verify", "run/step-200"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "assay: run/step-200/manifest.json: is missing\n");
  EXPECT_THAT(run_verb({"list", "run"}).out, HasSubstr("damaged: is missing"));
  fs::create_directory(directory_.path() / "run/step-200/manifest.json");
  outcome = run_verb({"verify", "run"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "assay: run/step-200/manifest.json: is a directory; expected a file\n");

  EXPECT_EQ(run_verb({"verify", "none"}).err, "assay: none: there is no such folder\n");
  EXPECT_EQ(run_verb({"verify", "none/step-1"}).exit_code, 64);
  fs::create_directory(directory_.path() / "empty");
  outcome = run_verb({"verify", "empty"});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.err, HasSubstr("empty: has no checkpoints"));
  outcome = run_verb({"list", "empty"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "no checkpoints\n");
}

TEST_F(CheckpointVerb, ShardedOnesAreListedAndVerified) {
  const fs::path root = directory_.path() / "sharded";
  ASSERT_TRUE(checkpoint::prepare_root(root));
  const auto whole = checkpoint::testing::snapshot_of_step(300, 100);
  ASSERT_TRUE(checkpoint::testing::write_by_ranks(root, checkpoint::testing::spread(whole, 3, 5)));
  const Json json = Json::parse(run_verb({"list", "sharded", "--json"}).out);
  EXPECT_EQ(json["checkpoints"][0]["ranks"], 3);
  EXPECT_EQ(run_verb({"verify", "sharded"}).exit_code, 0);
  const std::string file = json["checkpoints"][0]["files"].back()["name"];
  fs::remove(root / "step-300" / file);
  const auto outcome = run_verb({"verify", "sharded"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, "assay: sharded/step-300/" + file + ": is missing\n");
}

TEST_F(CheckpointVerb, DiffComparesWhateverTheLayout) {
  const fs::path root = directory_.path() / "other/checkpoints";
  ASSERT_TRUE(checkpoint::prepare_root(root));
  auto whole = checkpoint::testing::snapshot_of_step(300);
  const auto save = [&] {
    return checkpoint::testing::write_by_ranks(root, checkpoint::testing::spread(whole, 3, 5));
  };
  ASSERT_TRUE(save());
  auto outcome = run_verb({"diff", "run", "other"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("A run/step-300\nB other/checkpoints/step-300\n"));
  EXPECT_THAT(outcome.out, HasSubstr("bitwise equal: state and 8 tensors"));
  EXPECT_EQ(run_verb({"diff", "run/step-300/", "other/checkpoints"}).exit_code, 0);

  outcome = run_verb({"diff", "run/step-200", "other", "--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["equal"], false);
  EXPECT_EQ(json["state"][0], (Json{{"key", "step"}, {"a", 200}, {"b", 300}}));
  EXPECT_EQ(json["tensors"].size(), 7U);  // of one there is nothing

  auto bytes =
      std::vector(whole.parts[1].tensors[0].data.begin(), whole.parts[1].tensors[0].data.end());
  const auto info = whole.parts[1].tensors[0].info;
  const std::vector<float> values = {1.0F, 2.5F};
  std::memcpy(bytes.data() + 8, values.data(), 8);
  whole.parts[1].tensors[0] = checkpoint::owned_tensor(info, bytes);
  ASSERT_TRUE(save());
  outcome = run_verb({"diff", "other", "run", "--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  const Json found = Json::parse(outcome.out);
  ASSERT_EQ(found["tensors"].size(), 1U);
  EXPECT_EQ(found["tensors"][0]["name"], "first");
  EXPECT_EQ(found["tensors"][0]["differing"], 2);
  EXPECT_EQ(found["tensors"][0]["first"]["element"], 2);
  EXPECT_EQ(found["tensors"][0]["first"]["a"], 1.0);
  EXPECT_THAT(run_verb({"diff", "other", "run"}).out, HasSubstr("2 of 16 elements"));
}

TEST_F(CheckpointVerb, DiffOfWhatCannotBeReadIsNoAnswer) {
  EXPECT_EQ(run_verb({"diff", "run"}).exit_code, 64);
  EXPECT_EQ(run_verb({"diff", "run", "none"}).exit_code, 64);
  fs::resize_file(directory_.path() / "run/step-200/weights.safetensors", 9);
  const auto outcome = run_verb({"diff", "run/step-100", "run/step-200"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("run/step-200/weights.safetensors: has 9 bytes"));
}

}  // namespace
}  // namespace assay
