#include "train/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <random>

#include "base/testing/temp_dir.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::difference;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::snapshot_of_step;

std::string contents(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void overwrite(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(prepare_root(root_)); }
  fs::path save(std::int64_t step, WriteOptions options = {}) {
    const auto written = write_checkpoint(root_, snapshot_of_step(step), options);
    EXPECT_TRUE(written) << written.error().line();
    return written ? written->folder : fs::path();
  }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(root_), {}));
  }

  base::testing::MemoryDir directory_;
  fs::path root_ = directory_.path() / "some/checkpoints";
};

TEST_F(CheckpointTest, HoldsWhatWasWritten) {
  const fs::path folder = save(12);
  EXPECT_EQ(folder, root_ / "step-12");
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().line();
  EXPECT_EQ(difference(*checkpoint, snapshot_of_step(12)), "");
  EXPECT_NE(difference(*checkpoint, snapshot_of_step(13)), "");
  EXPECT_TRUE(checkpoint->verify());
  EXPECT_THAT(checkpoint->part("else").error().line(), HasSubstr("has no part 'else'"));
  const auto file = SafetensorsFile::open(folder / "weights.safetensors");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->header().metadata, (Metadata{{"step", "12"}}));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(CheckpointTest, LargePartsAreSplitWithAnIndex) {
  const fs::path folder = save(3, {.shard_bytes = 160});
  EXPECT_TRUE(fs::exists(folder / "weights-00002-of-00002.safetensors"));
  const auto index = base::Json::parse(contents(folder / "weights.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 8 * 4 * 2 + 3 * 8 * 4 + 9);
  EXPECT_EQ(index["weight_map"]["embedding"], "weights-00001-of-00002.safetensors");
  EXPECT_EQ(index["weight_map"]["nothing"], "weights-00002-of-00002.safetensors");
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().line();
  EXPECT_EQ(difference(*checkpoint, snapshot_of_step(3)), "");
}

TEST_F(CheckpointTest, TheSameStepAgainReplacesIt) {
  save(5);
  Snapshot other = snapshot_of_step(6);
  other.state.step = 5;
  ASSERT_TRUE(write_checkpoint(root_, other));
  EXPECT_EQ(difference(*Checkpoint::open(root_ / "step-5"), other), "");
  EXPECT_EQ(entries(), 1U);
}

// A reader of a replaced checkpoint keeps reading what it opened.
TEST_F(CheckpointTest, AReaderKeepsTheOneThatIsReplaced) {
  {
    const auto reader = Checkpoint::open(save(5));
    Snapshot other = snapshot_of_step(6);
    other.state.step = 5;
    ASSERT_TRUE(write_checkpoint(root_, other));
    EXPECT_EQ(difference(*reader, snapshot_of_step(5)), "");
    EXPECT_TRUE(reader->verify());
    EXPECT_EQ(entries(), 2U);
  }
  ASSERT_TRUE(sweep(root_));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(CheckpointTest, TheManifestHasContentsAndItsFileTheTime) {
  const fs::path folder = save(1);
  const std::array<timespec, 2> times = {timespec{1'700'000'000, 5}, timespec{1'700'000'000, 5}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder / "manifest.json").c_str(), times.data(), 0), 0);
  const auto manifest = verify(folder);
  ASSERT_TRUE(manifest) << manifest.error().line();
  EXPECT_EQ(manifest->written_unix_ns, 1'700'000'000'000'000'005);
  ASSERT_EQ(manifest->files.size(), 2U);
  EXPECT_EQ(manifest->files[0].name, "weights.safetensors");
  EXPECT_EQ(manifest->bytes(),
            static_cast<std::int64_t>(fs::file_size(folder / "weights.safetensors") +
                                      fs::file_size(folder / "optimizer.safetensors")));
}

TEST_F(CheckpointTest, EveryTruncationAndChangedByteIsNoticed) {
  const fs::path folder = save(1);
  std::mt19937 random(1);
  for (const char* name : {"manifest.json", "weights.safetensors", "optimizer.safetensors"}) {
    const fs::path path = folder / name;
    const std::string whole = contents(path);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      if (at % 3 == 0) {
        overwrite(path, whole.substr(0, at));
        EXPECT_FALSE(verify(folder)) << name << " cut at " << at;
      }
      std::string text = whole;
      text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << random() % 8));
      overwrite(path, text);
      const auto manifest = verify(folder);
      // Whitespace in the manifest is not significant.
      if (manifest) {
        EXPECT_EQ(difference(*Checkpoint::open(folder), snapshot_of_step(1)), "") << name << at;
        EXPECT_STREQ(name, "manifest.json");
      }
    }
    overwrite(path, whole);
  }
  EXPECT_TRUE(verify(folder));
}

TEST_F(CheckpointTest, DamageNamesTheFileAndTheOneBeforeIsUsed) {
  for (const std::int64_t step : {1, 9, 10}) save(step);
  ASSERT_EQ(latest(root_)->checkpoint->manifest().state.step, 10);
  const fs::path file = root_ / "step-10/weights.safetensors";
  std::string text = contents(file);
  text.back() = static_cast<char>(text.back() ^ 1);
  overwrite(file, text);
  auto found = latest(root_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->checkpoint->manifest().state.step, 9);
  ASSERT_EQ(found->damaged.size(), 1U);
  EXPECT_EQ(found->damaged[0].line(), file.string() +
                                          ": differs from what was written; "
                                          "the checkpoint is damaged; use another");
  EXPECT_EQ(latest(root_, Check::kLengths)->checkpoint->manifest().state.step, 10);

  fs::remove(root_ / "step-9/optimizer.safetensors");
  found = latest(root_);
  EXPECT_EQ(found->checkpoint->manifest().state.step, 1);
  EXPECT_THAT(found->damaged[1].line(), EndsWith("step-9/optimizer.safetensors: is missing"));

  fs::resize_file(root_ / "step-1/weights.safetensors", 3);
  found = latest(root_);
  EXPECT_FALSE(found->checkpoint);
  EXPECT_THAT(found->damaged[2].line(), HasSubstr("has 3 bytes, but"));

  const auto all = list(root_);
  ASSERT_EQ(all->size(), 3U);
  EXPECT_FALSE((*all)[0].manifest);
  EXPECT_TRUE((*all)[2].manifest);
}

TEST_F(CheckpointTest, StrangersInTheFolderAreLeftAlone) {
  fs::create_directories(root_ / "step-07");
  fs::create_directories(root_ / "step-");
  fs::create_directories(root_ / "step-99999999999999999999");
  overwrite(root_ / "step-3", "a file");
  fs::create_directories(root_ / "step-4/manifest.json");
  EXPECT_EQ(steps_in(root_).value(), std::vector<std::int64_t>{4});
  EXPECT_FALSE(latest(root_)->checkpoint);
  save(4);
  EXPECT_EQ(latest(root_)->checkpoint->manifest().state.step, 4);
  fs::rename(root_ / "step-4", root_ / "step-5");
  EXPECT_THAT(verify(root_ / "step-5").error().line(), HasSubstr("holds step 4"));
  EXPECT_THAT(latest(root_ / "none").error().line(), HasSubstr("there is no such folder"));
  EXPECT_THAT(verify(root_ / "none").error().line(), HasSubstr("no such checkpoint"));
}

TEST_F(CheckpointTest, WhatCannotBeReadAgainIsNotWritten) {
  const auto line = [&](const Snapshot& snapshot) {
    const auto written = write_checkpoint(root_, snapshot);
    return written ? std::string() : written.error().line();
  };
  Snapshot bad = snapshot_of_step(1);
  bad.parts[1].name = "weights";
  EXPECT_THAT(line(bad), HasSubstr("two parts are called 'weights'"));
  bad.parts[1].name = "../weights";
  EXPECT_THAT(line(bad), HasSubstr("cannot have this name"));
  bad = snapshot_of_step(1);
  bad.parts[0].tensors[1].info.name = bad.parts[0].tensors[0].info.name;
  EXPECT_THAT(line(bad), HasSubstr("two tensors are called 'embedding'"));
  bad = snapshot_of_step(1);
  for (int i = 0; i < 200; ++i) bad.state.extra = base::Json::array({bad.state.extra});
  EXPECT_THAT(line(bad), HasSubstr("nested too deeply"));
  bad = snapshot_of_step(-1);
  EXPECT_THAT(line(bad), HasSubstr("there is no step -1"));
  EXPECT_EQ(entries(), 0U);
}

}  // namespace
}  // namespace assay::checkpoint
