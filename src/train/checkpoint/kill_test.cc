// Writers killed at any moment: afterwards every visible checkpoint is intact, and the newest is
// the last one reported or the one being written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <random>

#include "base/clock.h"
#include "base/testing/temp_dir.h"
#include "train/checkpoint/background_writer.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/shared_write.h"
#include "train/checkpoint/testing/child.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::snapshot_of_step;

// A number in shared memory, which outlives the child that writes it.
class SharedNumber {
 public:
  SharedNumber()
      : value_(static_cast<std::atomic<std::int64_t>*>(
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedNumber() { ::munmap(value_, 4096); }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;
  std::atomic<std::int64_t>& operator*() const { return *value_; }

 private:
  std::atomic<std::int64_t>* value_;
};

std::size_t entries_of(const fs::path& root) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(root), {}));
}

// The time to write a checkpoint on this disk: kills must come before and after that.
std::uint32_t usual_us() {
  const base::testing::MemoryDir directory;
  const base::Stopwatch watch;
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(write_checkpoint(directory.path(), snapshot_of_step(0, 64)));
  return static_cast<std::uint32_t>(watch.elapsed_ns() / 5'000) + 500;
}

// Writes checkpoints from `step` on, until it is killed.
int write_on(const fs::path& root, std::int64_t step, std::atomic<std::int64_t>& promised) {
  auto writer = BackgroundWriter::start(root, {.retention = {.keep_last = 2}});
  if (!writer) return 1;
  for (;; ++step) {
    const auto done = [&promised, step](const auto& outcome) {
      if (outcome) promised = step;
    };
    if (!(*writer)->submit(snapshot_of_step(step, 64), done)) return 2;
  }
}

TEST(Killed, TheLatestIsIntactAndTheNewestOrTheOneBefore) {
  base::testing::MemoryDir directory;
  const fs::path root = directory.path() / "checkpoints";
  ASSERT_TRUE(prepare_root(root));
  const SharedNumber promised;
  std::mt19937 random(7);
  std::int64_t left_behind = 0;
  const std::uint32_t longest_us = 6 * usual_us();
  constexpr int kKills = 200;
  for (int round = 0; round < kKills; ++round) {
    const std::int64_t first = *promised + 1;
    const pid_t child = testing::start_child([&] { return write_on(root, first, *promised); });
    ::usleep(static_cast<useconds_t>(random() % longest_us));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(testing::wait_for(child), 128 + SIGKILL);
    if (*promised == 0) continue;
    const auto found = latest(root);
    ASSERT_TRUE(found) << found.error().line();
    ASSERT_TRUE(found->damaged.empty()) << found->damaged[0].line();
    ASSERT_TRUE(found->checkpoint);
    const std::int64_t step = found->checkpoint->manifest().state.step;
    // Committed, but killed before reporting it: one more than reported.
    ASSERT_GE(step, *promised);
    ASSERT_LE(step, *promised + 1);
    ASSERT_EQ(testing::difference(*found->checkpoint, snapshot_of_step(step, 64)), "");
    *promised = step;
    for (const auto& entry : fs::directory_iterator(root)) {
      left_behind += parse_hidden(entry.path().filename().string()).has_value();
    }
  }
  EXPECT_GT(*promised, kKills / 10);
  EXPECT_GT(left_behind, 0) << "no kill came while a checkpoint was written";
  // Nothing hidden is left, and pruning leaves as many as retention allows.
  ASSERT_TRUE(prepare_root(root));
  EXPECT_EQ(entries_of(root), steps_in(root)->size());
  ASSERT_TRUE(prune(root, {.keep_last = 2}));
  EXPECT_EQ(entries_of(root), 2U);
}

// The same step is rewritten repeatedly: it is never missing and never a mixture.
TEST(Killed, AReplacedCheckpointIsTheOldOrTheNewOne) {
  base::testing::MemoryDir directory;
  const fs::path& root = directory.path();
  const auto version = [](std::int64_t number) {
    Snapshot snapshot = snapshot_of_step(number, 16);
    snapshot.state.step = 1;
    return snapshot;
  };
  ASSERT_TRUE(write_checkpoint(root, version(0)));
  std::mt19937 random(8);
  const std::uint32_t longest_us = 4 * usual_us();
  for (int round = 0; round < 50; ++round) {
    const pid_t child = testing::start_child([&] {
      for (std::int64_t number = 0;; number = 1 - number) {
        if (!write_checkpoint(root, version(number))) return 1;
      }
    });
    ::usleep(static_cast<useconds_t>(random() % longest_us));
    ::kill(child, SIGKILL);
    ASSERT_EQ(testing::wait_for(child), 128 + SIGKILL);
    if (round % 2 == 0) {
      ASSERT_TRUE(prepare_root(root));
      ASSERT_EQ(entries_of(root), 1U);
    }
    const auto found = latest(root);
    ASSERT_TRUE(found && found->checkpoint);
    EXPECT_TRUE(found->damaged.empty());
    const bool is_old = testing::difference(*found->checkpoint, version(0)).empty();
    EXPECT_TRUE(is_old || testing::difference(*found->checkpoint, version(1)).empty());
  }
}

constexpr int kCheckpointFailed = 3;
constexpr std::size_t kNameBytes = 256;

// Rank 0 of two processes: starts checkpoints, tells rank 1 the folder, and commits, until one
// fails.
int begin_on(const fs::path& root, std::int64_t step, int to, std::atomic<std::int64_t>& promised) {
  std::signal(SIGPIPE, SIG_IGN);
  for (;; ++step) {
    auto share = begin_shared(root, step, 2);
    if (!share) return 1;
    std::array<char, kNameBytes> name{};
    std::ranges::copy(share->staging, name.begin());
    std::memcpy(&name[kNameBytes - sizeof(step)], &step, sizeof(step));
    if (::write(to, name.data(), name.size()) != kNameBytes) return kCheckpointFailed;
    Snapshot snapshot = testing::spread(snapshot_of_step(step, 64), 2, 3)[0];
    snapshot.share = *std::move(share);
    const auto written = write_shared(root, snapshot, {.timeout = std::chrono::milliseconds(500)});
    if (!written) return kCheckpointFailed;
    promised = step;
  }
}

// Rank 1, until nobody tells it a folder any more.
int follow(const fs::path& root, int from) {
  std::array<char, kNameBytes> name{};
  while (::read(from, name.data(), name.size()) == kNameBytes) {
    std::int64_t step = 0;
    std::memcpy(&step, &name[kNameBytes - sizeof(step)], sizeof(step));
    Snapshot snapshot = testing::spread(snapshot_of_step(step, 64), 2, 3)[1];
    snapshot.share = RankOfWrite{.rank = 1, .ranks = 2, .staging = name.data()};
    static_cast<void>(write_shared(root, snapshot));
  }
  return 0;
}

// Either rank is killed at any moment: the newest checkpoint is complete and from both ranks, and
// the surviving rank ends by itself.
TEST(Killed, OneOfTwoRanksLeavesNoHalfCheckpoint) {
  base::testing::MemoryDir directory;
  const fs::path& root = directory.path();
  const SharedNumber promised;
  std::mt19937 random(9);
  const std::uint32_t longest_us = 10 * usual_us();
  for (int round = 0; round < 40; ++round) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const std::int64_t first = *promised + 1;
    const std::array<pid_t, 2> ranks = {testing::start_child([&] {
                                          ::close(ends[0]);
                                          return begin_on(root, first, ends[1], *promised);
                                        }),
                                        testing::start_child([&] {
                                          ::close(ends[1]);
                                          return follow(root, ends[0]);
                                        })};
    ::close(ends[0]);
    ::close(ends[1]);
    ::usleep(static_cast<useconds_t>(random() % longest_us));
    const std::size_t victim = random() % 2;
    ASSERT_EQ(::kill(ranks[victim], SIGKILL), 0);
    ASSERT_EQ(testing::wait_for(ranks[victim]), 128 + SIGKILL);
    ASSERT_EQ(testing::wait_for(ranks[1 - victim]), victim == 1 ? kCheckpointFailed : 0);
    const auto found = latest(root);
    ASSERT_TRUE(found) << found.error().line();
    ASSERT_TRUE(found->damaged.empty()) << found->damaged[0].line();
    const std::int64_t step = found->checkpoint ? found->checkpoint->manifest().state.step : 0;
    ASSERT_GE(step, *promised);
    ASSERT_LE(step, *promised + 1);
    *promised = step;
    if (step == 0) continue;
    ASSERT_EQ(testing::difference(*found->checkpoint, snapshot_of_step(step, 64)), "");
  }
  EXPECT_GT(*promised, 3);
  ASSERT_TRUE(prepare_root(root));
  EXPECT_EQ(entries_of(root), steps_in(root)->size());
}

}  // namespace
}  // namespace assay::checkpoint
