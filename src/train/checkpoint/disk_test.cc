// Disks that are full or read-only: one error line, no partial checkpoint, old ones untouched. The
// disks are mounted in a child's own namespace, which needs root; without it the tests are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <iostream>

#include "base/testing/temp_dir.h"
#include "train/checkpoint/background_writer.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/testing/child.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::snapshot_of_step;

constexpr int kCannotMount = 77;

bool mount_small_disk(const fs::path& at, const char* options) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", at.c_str(), "tmpfs", 0, options) == 0;
}

// Prints the failure, because expectations in the child do not reach the test.
int complain(const std::string& what) {
  std::cerr << what << '\n';
  return 1;
}

int expect_refused(const fs::path& root, std::int64_t scale, const std::string& line) {
  const auto written = write_checkpoint(root, snapshot_of_step(2, scale));
  if (written) return complain("it was written");
  if (written.error().line().find(line) == std::string::npos) {
    return complain(written.error().line());
  }
  const auto found = latest(root);
  if (!found || !found->checkpoint || !found->damaged.empty())
    return complain("the old one is lost");
  if (!testing::difference(*found->checkpoint, snapshot_of_step(1)).empty()) {
    return complain("the old one is another");
  }
  if (std::distance(fs::directory_iterator(root), {}) != 1) return complain("something is left");
  return 0;
}

void run_on_disk(const char* options, const std::function<int(const fs::path&)>& body) {
  base::testing::MemoryDir directory;
  const int code = testing::wait_for(testing::start_child([&] {
    if (!mount_small_disk(directory.path(), options)) return kCannotMount;
    if (!write_checkpoint(directory.path(), snapshot_of_step(1))) return complain("no first one");
    return body(directory.path());
  }));
  if (code == kCannotMount) GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(code, 0);
}

TEST(Disk, FullIsOneLineAndNoHalfCheckpoint) {
  run_on_disk("size=1m", [](const fs::path& root) {
    return expect_refused(root, 100'000, "the disk is full: free space, or keep fewer checkpoints");
  });
}

// Of several ranks only one has more than fits: its reason is rank 0's error.
TEST(Disk, FullForOneRankIsOneLineAndNoHalfCheckpoint) {
  run_on_disk("size=1m", [](const fs::path& root) {
    std::vector<Snapshot> snapshots = testing::spread(snapshot_of_step(2), 3, 1);
    const TensorInfo big{"big", TensorDtype::kU8, {2 << 20}};
    for (Snapshot& snapshot : snapshots) snapshot.parts[0].all.push_back(big);
    snapshots[2].parts[0].tensors.push_back(owned_tensor(big, testing::noise(2 << 20, 1)));
    const auto written = testing::write_by_ranks(root, snapshots);
    if (written) return complain("it was written");
    const std::string line = written.error().line();
    if (!line.starts_with("rank 2: ") || line.find("the disk is full") == std::string::npos) {
      return complain(line);
    }
    if (std::distance(fs::directory_iterator(root), {}) != 1) return complain("something is left");
    const auto found = latest(root);
    if (!found->checkpoint || !found->damaged.empty()) return complain("the old one is lost");
    return testing::write_by_ranks(root, testing::spread(snapshot_of_step(3), 3, 1))
               ? 0
               : complain("not again");
  });
}

TEST(Disk, WithoutSpaceForAnotherName) {
  run_on_disk("size=1m,nr_inodes=5",
              [](const fs::path& root) { return expect_refused(root, 8, "the disk is full"); });
}

TEST(Disk, ReadOnlyIsOneLine) {
  run_on_disk("size=1m", [](const fs::path& root) {
    if (::mount("none", root.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, "size=1m") != 0) {
      return kCannotMount;
    }
    return expect_refused(root, 8, "the checkpoint folder must be writable");
  });
}

// Needs no root: the file size limit fails in the middle of a write.
TEST(Disk, AFileThatMayNotGrowIsOneLine) {
  base::testing::MemoryDir directory;
  ASSERT_TRUE(write_checkpoint(directory.path(), snapshot_of_step(1)));
  EXPECT_EQ(testing::wait_for(testing::start_child([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{100'000, 100'000};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              return expect_refused(directory.path(), 100'000, "ulimit -f");
            })),
            0);
}

TEST(Disk, TheBackgroundWriterReportsAFullDiskAndContinues) {
  run_on_disk("size=1m", [](const fs::path& root) {
    auto writer = BackgroundWriter::start(root);
    if (!writer || !(*writer)->submit(snapshot_of_step(2, 100'000))) return complain("no start");
    if ((*writer)->wait()) return complain("no error");
    if (!(*writer)->submit(snapshot_of_step(3)) || !(*writer)->wait()) return complain("not again");
    return latest(root)->checkpoint->manifest().state.step == 3 ? 0 : complain("not the newest");
  });
}

}  // namespace
}  // namespace assay::checkpoint
