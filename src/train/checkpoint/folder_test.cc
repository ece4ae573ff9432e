#include "train/checkpoint/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/testing/temp_dir.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/staging.h"
#include "train/checkpoint/testing/child.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;

TEST(FolderName, StepsAreReadAsTheyAreWritten) {
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{7}, INT64_MAX}) {
    EXPECT_EQ(step_of(step_name(step)), step);
  }
  for (const char* name : {"step-", "step-07", "step--1", "step-1x", "Step-1", "", "step-+1",
                           "step-9223372036854775808"}) {
    EXPECT_FALSE(step_of(name)) << name;
  }
}

TEST(FolderName, HiddenNamesIdentifyTheirOwner) {
  const std::string name = hidden_name(42, HiddenKind::kWas);
  EXPECT_THAT(name, ::testing::StartsWith(".step-42.was-"));
  EXPECT_NE(name, hidden_name(42, HiddenKind::kWas));
  const auto hidden = parse_hidden(name);
  ASSERT_TRUE(hidden);
  EXPECT_EQ(hidden->step, 42);
  EXPECT_EQ(hidden->kind, HiddenKind::kWas);
  EXPECT_EQ(hidden->pid, ::getpid());
  EXPECT_FALSE(owner_has_exited(*hidden, "/nowhere"));
  for (const char* other : {".step-1", ".step-1.tmp", ".step-1.tmp-a-1-2", ".step-1.tmp-a-1-2-x",
                            ".step-1.new-a-1-2-3", "step-1.tmp-a-1-2-3", ".", ".git"}) {
    EXPECT_FALSE(parse_hidden(other)) << other;
  }
  EXPECT_TRUE(parse_hidden(".step-1.tmp-a-1-2-3"));
}

TEST(FolderName, APidThatIsUsedAgainIsAnotherProcess) {
  HiddenName name = parse_hidden(hidden_name(1, HiddenKind::kTmp)).value();
  name.start_ticks += 1;
  EXPECT_TRUE(owner_has_exited(name, "/nowhere"));
}

class SweepTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(root_)) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  // A folder made by a process that has exited.
  void leave(HiddenKind kind, std::int64_t step) {
    const auto body = [&] {
      const fs::path folder = root_ / hidden_name(step, kind);
      fs::create_directories(folder);
      std::ofstream(folder / "weights.safetensors") << "half";
      return 0;
    };
    ASSERT_EQ(testing::wait_for(testing::start_child(body)), 0);
  }

  base::testing::MemoryDir directory_;
  fs::path root_ = directory_.path();
};

TEST_F(SweepTest, RemovesOnlyWhatExitedProcessesLeft) {
  auto staging = StagingFolder::create(root_, 3);
  ASSERT_TRUE(staging);
  fs::create_directories(root_ / ".step-1.mine");
  leave(HiddenKind::kTmp, 1);
  leave(HiddenKind::kGone, 2);
  EXPECT_EQ(names().size(), 4U);
  ASSERT_TRUE(sweep(root_));
  EXPECT_THAT(names(), ::testing::ElementsAre(".step-1.mine", staging->path().filename().string()));
}

TEST_F(SweepTest, PutsBackWhatWasMovedAside) {
  ASSERT_TRUE(write_checkpoint(root_, testing::snapshot_of_step(8)));
  std::string was;
  {
    // As a process killed between the two renames would leave it.
    HiddenName name = parse_hidden(hidden_name(8, HiddenKind::kWas)).value();
    was = fmt::format(".step-8.was-{}-{}-{}-0", name.machine, name.pid, name.start_ticks + 1);
  }
  fs::rename(root_ / "step-8", root_ / was);
  ASSERT_TRUE(sweep(root_));
  EXPECT_THAT(names(), ::testing::ElementsAre("step-8"));
  EXPECT_TRUE(verify(root_ / "step-8"));
  leave(HiddenKind::kWas, 8);
  ASSERT_TRUE(sweep(root_));
  EXPECT_THAT(names(), ::testing::ElementsAre("step-8"));
}

TEST_F(SweepTest, FoldersOfOtherMachinesAreGivenAnHour) {
  const fs::path folder = root_ / ".step-1.tmp-othermachine-1-2-3";
  fs::create_directories(folder);
  std::ofstream(folder / "weights.safetensors") << "half";
  ASSERT_TRUE(sweep(root_));
  EXPECT_TRUE(fs::exists(folder));
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(2);
  fs::last_write_time(folder, old);
  ASSERT_TRUE(sweep(root_));
  EXPECT_TRUE(fs::exists(folder)) << "a file in it is young";
  fs::last_write_time(folder / "weights.safetensors", old);
  ASSERT_TRUE(sweep(root_));
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace assay::checkpoint
