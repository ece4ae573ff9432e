#include "train/checkpoint/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Retention, KeepsTheLastAndEveryMth) {
  const std::vector<std::int64_t> steps = {0, 50, 100, 150, 200, 250};
  EXPECT_THAT(steps_to_remove(steps, {}), IsEmpty());
  EXPECT_THAT(steps_to_remove(steps, {.keep_every = 100}), IsEmpty()) << "all stay";
  EXPECT_THAT(steps_to_remove(steps, {.keep_last = 2}), ElementsAre(0, 50, 100, 150));
  EXPECT_THAT(steps_to_remove(steps, {.keep_last = 1, .keep_every = 100}), ElementsAre(50, 150));
  EXPECT_THAT(steps_to_remove(steps, {.keep_last = 9}), IsEmpty());
}

TEST(Retention, RemovesCheckpointsWithoutReaders) {
  base::testing::MemoryDir directory;
  const auto& root = directory.path();
  for (std::int64_t step = 1; step <= 5; ++step) {
    ASSERT_TRUE(write_checkpoint(root, testing::snapshot_of_step(step)));
  }
  {
    const auto reader = Checkpoint::open(root / "step-2");
    const auto pruned = prune(root, {.keep_last = 2});
    ASSERT_TRUE(pruned) << pruned.error().line();
    EXPECT_THAT(pruned->removed, ElementsAre(1, 3));
    EXPECT_THAT(pruned->in_use, ElementsAre(2));
    EXPECT_TRUE(reader->verify());
  }
  EXPECT_THAT(prune(root, {.keep_last = 2})->removed, ElementsAre(2));
  EXPECT_THAT(steps_in(root).value(), ElementsAre(4, 5));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root), {}), 2);
}

// The two newest are damaged: the intact ones before them are kept.
TEST(Retention, DamagedOnesDoNotCount) {
  base::testing::MemoryDir directory;
  const auto& root = directory.path();
  for (std::int64_t step = 1; step <= 5; ++step) {
    ASSERT_TRUE(write_checkpoint(root, testing::snapshot_of_step(step)));
  }
  std::filesystem::remove(root / "step-4/weights.safetensors");
  std::filesystem::remove(root / "step-5/manifest.json");
  EXPECT_THAT(prune(root, {.keep_last = 2})->removed, ElementsAre(1));
  EXPECT_EQ(latest(root)->checkpoint->manifest().state.step, 3);
}

}  // namespace
}  // namespace assay::checkpoint
