#include "train/checkpoint/verification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::snapshot_of_step;
using testing::spread;

void flip_a_bit(const fs::path& path) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto at = static_cast<std::streamoff>(fs::file_size(path)) - 3;
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 0x40));
}

// Whole tensors of one rank, several files of a part, and pieces of several ranks.
TEST(VerificationTest, FindsABitInTheFilesOfItsPartsAndInNoOthers) {
  for (int kind = 0; kind < 3; ++kind) {
    const base::testing::MemoryDir directory;
    const Snapshot snapshot = snapshot_of_step(3);
    const auto written = kind == 2
                             ? testing::write_by_ranks(directory.path(), spread(snapshot, 3, 5))
                             : write_checkpoint(directory.path(), snapshot,
                                                {.shard_bytes = kind == 0 ? 5'000'000'000 : 160});
    ASSERT_TRUE(written);
    const auto checkpoint = Checkpoint::open(written->folder);
    ASSERT_TRUE(checkpoint);
    for (const FileRecord& file : checkpoint->manifest().files) {
      if (!file.name.ends_with(".safetensors")) continue;
      flip_a_bit(written->folder / file.name);
      for (const std::string part : {"weights", "optimizer"}) {
        const auto found = Verification(*checkpoint, {part}).finish();
        EXPECT_EQ(found.has_value(), !file.name.starts_with(part)) << file.name << " " << part;
        if (!found) EXPECT_THAT(found.error().line(), ::testing::HasSubstr(file.name));
      }
      EXPECT_FALSE(Verification(*checkpoint).finish());
      flip_a_bit(written->folder / file.name);
    }
    EXPECT_TRUE(Verification(*checkpoint).finish());
  }
}

TEST(VerificationTest, DamageExplainsMoreThanWhatItMadeFail) {
  const base::testing::MemoryDir directory;
  const auto written = write_checkpoint(directory.path(), snapshot_of_step(3));
  const auto checkpoint = Checkpoint::open(written->folder);
  const base::Result<int> read = base::fail(base::usage_error("here", "cannot be read"));
  EXPECT_EQ(Verification(*checkpoint).finish(read).error().where, "here");
  EXPECT_EQ(*Verification(*checkpoint).finish(base::Result<int>(5)), 5);
  flip_a_bit(written->folder / "weights.safetensors");
  EXPECT_THAT(Verification(*checkpoint).finish(read).error().line(),
              ::testing::HasSubstr("differs from what was written"));
  EXPECT_FALSE(Verification(*checkpoint).finish(base::Result<int>(5)));
}

TEST(VerificationTest, CanBeAbandoned) {
  const base::testing::MemoryDir directory;
  const auto written = write_checkpoint(directory.path(), snapshot_of_step(3, 100));
  const auto checkpoint = Checkpoint::open(written->folder);
  for (int i = 0; i < 20; ++i) const Verification unused(*checkpoint);
}

}  // namespace
}  // namespace assay::checkpoint
