#include "train/checkpoint/background_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "base/testing/temp_dir.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::snapshot_of_step;

TEST(BackgroundWriter, WritesAndPrunesWhileOthersWork) {
  base::testing::MemoryDir directory;
  const fs::path root = directory.path() / "checkpoints";
  std::atomic<int> done = 0;
  {
    auto writer = BackgroundWriter::start(root, {.retention = {.keep_last = 2}});
    ASSERT_TRUE(writer) << writer.error().line();
    for (std::int64_t step = 1; step <= 5; ++step) {
      ASSERT_TRUE((*writer)->submit(snapshot_of_step(step), [&](const auto& outcome) {
        EXPECT_TRUE(outcome);
        ++done;
      }));
    }
  }
  EXPECT_EQ(done, 5) << "the end waits for the last";
  EXPECT_THAT(steps_in(root).value(), ElementsAre(4, 5));
  EXPECT_EQ(testing::difference(*latest(root)->checkpoint, snapshot_of_step(5)), "");
}

TEST(BackgroundWriter, RefusesASecondOneIfConfigured) {
  base::testing::MemoryDir directory;
  auto writer = BackgroundWriter::start(directory.path(), {.when_busy = WhenBusy::kRefuse});
  ASSERT_TRUE(writer);
  std::promise<void> started;
  std::promise<void> go_on;
  ASSERT_TRUE((*writer)->submit(snapshot_of_step(1), [&](const auto&) {
    started.set_value();
    go_on.get_future().wait();
  }));
  started.get_future().wait();
  EXPECT_TRUE((*writer)->busy());
  EXPECT_THAT((*writer)->submit(snapshot_of_step(2)).error().line(),
              HasSubstr("a checkpoint is still being written"));
  go_on.set_value();
  EXPECT_TRUE((*writer)->wait());
  EXPECT_FALSE((*writer)->busy());
  EXPECT_TRUE((*writer)->submit(snapshot_of_step(3)));
  EXPECT_TRUE((*writer)->wait());
  EXPECT_THAT(steps_in(directory.path()).value(), ElementsAre(1, 3));
}

TEST(BackgroundWriter, ErrorsComeWithTheNextCallOnce) {
  base::testing::MemoryDir directory;
  const fs::path root = directory.path() / "checkpoints";
  auto writer = BackgroundWriter::start(root);
  ASSERT_TRUE(writer);
  fs::remove(root);
  bool failed = false;
  ASSERT_TRUE(
      (*writer)->submit(snapshot_of_step(1), [&](const auto& outcome) { failed = !outcome; }));
  const auto refused = (*writer)->submit(snapshot_of_step(2), [](const auto&) { FAIL(); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().line(),
            root.string() +
                ": cannot create a folder there: No such file or directory; the "
                "checkpoint folder is gone; create it again or choose another");
  EXPECT_TRUE(failed);
  EXPECT_FALSE(fs::exists(root)) << "a folder that vanished is not made again";
  fs::create_directories(root);
  EXPECT_TRUE((*writer)->submit(snapshot_of_step(2)));
  EXPECT_TRUE((*writer)->wait());
  fs::remove_all(root);
  ASSERT_TRUE((*writer)->submit(snapshot_of_step(3)));
  EXPECT_FALSE((*writer)->wait());
  EXPECT_TRUE((*writer)->wait());
  ASSERT_TRUE((*writer)->submit(snapshot_of_step(4)));
  ::testing::internal::CaptureStderr();
  writer->reset();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a checkpoint was not written"));
}

TEST(BackgroundWriter, BorrowedMemoryIsReadUntilDone) {
  base::testing::MemoryDir directory;
  auto writer = BackgroundWriter::start(directory.path());
  ASSERT_TRUE(writer);
  std::vector<std::byte> memory = testing::noise(1 << 20, 1);
  const std::vector<std::byte> before = memory;
  Snapshot snapshot;
  snapshot.state.step = 1;
  snapshot.parts = {{"weights", {{{"w", TensorDtype::kU8, {1 << 20}}, memory}}}};
  std::promise<void> free;
  ASSERT_TRUE((*writer)->submit(std::move(snapshot), [&](const auto&) { free.set_value(); }));
  free.get_future().wait();
  std::fill(memory.begin(), memory.end(), std::byte{0});
  ASSERT_TRUE((*writer)->wait());
  const auto found = latest(directory.path());
  ASSERT_TRUE(found->checkpoint);
  const auto set = found->checkpoint->part("weights");
  std::vector<std::byte> bytes(before.size());
  ASSERT_TRUE(set->read(*set->find("w"), 0, bytes));
  EXPECT_EQ(bytes, before);
}

TEST(BackgroundWriter, ARootThatCannotBeMadeIsOneLine) {
  const auto writer = BackgroundWriter::start("/proc/no/such/place");
  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().line(), HasSubstr("/proc/no/such/place: cannot create this folder"));
}

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
