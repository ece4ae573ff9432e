// Checkpoints that several ranks write: readers get what one rank would have written, and a rank
// that fails, dies, hangs or lies leaves no checkpoint.
#include "train/checkpoint/shared_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <random>
#include <thread>

#include "base/testing/temp_dir.h"
#include "train/checkpoint/background_writer.h"
#include "train/checkpoint/diff.h"
#include "train/checkpoint/folder.h"
#include "train/checkpoint/rank_note.h"
#include "train/checkpoint/staging.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::difference;
using ::testing::HasSubstr;
using testing::snapshot_of_step;
using testing::spread;
using testing::write_by_ranks;

constexpr std::chrono::milliseconds kShort{300};

std::size_t entries_in(const fs::path& root) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(root), {}));
}

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), count);
  }
  return ::pclose(pipe) == 0 ? text : "failed";
}

RC_GTEST_PROP(SharedWrite, ReadersGetWhatOneRankWouldHaveWritten, ()) {
  const base::testing::MemoryDir directory;
  const fs::path& root = directory.path();
  const int ranks = *rc::gen::inRange(1, 9);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const std::int64_t scale = *rc::gen::inRange<std::int64_t>(0, 40);
  const WriteOptions options{.shard_bytes = *rc::gen::element<std::int64_t>(50, 5'000'000'000)};
  const Snapshot whole = snapshot_of_step(7, scale);
  const auto written = write_by_ranks(root, spread(whole, ranks, seed), options);
  RC_ASSERT(written.has_value());
  RC_ASSERT(entries_in(root) == 1U);
  const auto read = Checkpoint::open(written->folder);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->verify().has_value());
  RC_ASSERT(difference(*read, whole) == "");
  RC_ASSERT(read->manifest().ranks == ranks);
  for (const FileRecord& file : read->manifest().files) {
    const auto opened = SafetensorsFile::open(written->folder / file.name);
    RC_ASSERT(opened.has_value());
    const bool of_weights = file.name.starts_with("weights-rank-");
    RC_ASSERT(opened->header().metadata == whole.parts[of_weights ? 0 : 1].metadata);
  }
  // Nothing but what the manifest lists.
  RC_ASSERT(entries_in(written->folder) == read->manifest().files.size() + 1);
  // Any range of bytes, across pieces.
  std::mt19937_64 random(seed);
  for (const SnapshotPart& part : whole.parts) {
    const auto set = read->part(part.name);
    RC_ASSERT(set.has_value());
    for (const Tensor& tensor : part.tensors) {
      const std::size_t first = random() % (tensor.data.size() + 1);
      const std::size_t count = random() % (tensor.data.size() - first + 1);
      std::vector<std::byte> bytes(count);
      RC_ASSERT(set->read(*set->find(tensor.info.name), static_cast<std::int64_t>(first), bytes)
                    .has_value());
      RC_ASSERT(std::ranges::equal(bytes, tensor.data.subspan(first, count)));
      std::vector<std::byte> beyond(tensor.data.size() + 1);
      RC_ASSERT(!set->read(*set->find(tensor.info.name), 0, beyond).has_value());
    }
  }
  // Our own comparison finds it equal to one written by a single rank.
  const base::testing::MemoryDir other;
  const auto alone = write_checkpoint(other.path(), whole);
  const auto same = diff(*read, *Checkpoint::open(alone->folder));
  RC_ASSERT(same.has_value());
  RC_ASSERT(same->equal());
  RC_ASSERT(same->compared_tensors == 8);
}

TEST(SharedWriteFiles, AnIndependentReaderAgrees) {
  const base::testing::MemoryDir directory;
  const Snapshot whole = snapshot_of_step(3, 50);
  const auto alone = write_checkpoint(directory.path(), whole);
  ASSERT_TRUE(alone);
  const std::string reader = "python3 " ASSAY_CHECKPOINT_FIXTURES "/read_pieces.py ";
  const std::string expected = output_of(reader + alone->folder.string());
  EXPECT_THAT(expected, HasSubstr("optimizer first F32 100 "));
  for (const int ranks : {1, 2, 5}) {
    const base::testing::MemoryDir other;
    const auto written = write_by_ranks(other.path(), spread(whole, ranks, 9), {.shard_bytes = 99});
    ASSERT_TRUE(written);
    EXPECT_EQ(output_of(reader + written->folder.string()), expected);
  }
}

class SharedWriteFaults : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_checkpoint(root_, snapshot_of_step(1))); }
  // Only the old checkpoint is there.
  void expect_untouched() {
    EXPECT_EQ(entries_in(root_), 1U);
    const auto found = latest(root_);
    ASSERT_TRUE(found && found->checkpoint);
    EXPECT_TRUE(found->damaged.empty());
    EXPECT_EQ(difference(*found->checkpoint, snapshot_of_step(1)), "");
  }

  base::testing::MemoryDir directory_;
  const fs::path& root_ = directory_.path();
};

TEST_F(SharedWriteFaults, ARankThatFailsFailsTheCheckpointWithItsReason) {
  for (const std::size_t bad : {0U, 2U}) {
    std::vector<Snapshot> snapshots = spread(snapshot_of_step(2), 4, 1);
    snapshots[bad].ready = []() -> base::Result<void> {
      return base::fail(base::failed_error("the device", "fell off", "put it back"));
    };
    const auto written = write_by_ranks(root_, snapshots);
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().line(), HasSubstr("the device: fell off; put it back"));
    EXPECT_THAT(written.error().line(), HasSubstr(bad == 0 ? "the device" : "rank 2: "));
    expect_untouched();
  }
}

TEST_F(SharedWriteFaults, ARankThatNeverComesIsNamedAndNotWaitedForForEver) {
  std::vector<Snapshot> snapshots = spread(snapshot_of_step(2), 3, 1);
  auto share = begin_shared(root_, 2, 3);
  ASSERT_TRUE(share);
  snapshots[1].share = RankOfWrite{.rank = 1, .ranks = 3, .staging = share->staging};
  ASSERT_TRUE(write_shared(root_, snapshots[1]));
  snapshots[0].share = *share;
  const auto written = write_shared(root_, snapshots[0], {.timeout = kShort});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().line(), HasSubstr("rank 2 of 3 did not write a part"));
  expect_untouched();
  // Too late: the rank gets an error, and nothing appears.
  snapshots[2].share = RankOfWrite{.rank = 2, .ranks = 3, .staging = share->staging};
  const auto late = write_shared(root_, snapshots[2]);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().line(), HasSubstr("rank 2 does not see the folder of rank 0"));
  expect_untouched();
}

TEST_F(SharedWriteFaults, NotesThatLieAreRefused) {
  const auto outcome = [&](const std::function<void(const fs::path&)>& lie) {
    std::vector<Snapshot> snapshots = spread(snapshot_of_step(2), 2, 1);
    auto share = begin_shared(root_, 2, 2);
    EXPECT_TRUE(share);
    snapshots[1].share = RankOfWrite{.rank = 1, .ranks = 2, .staging = share->staging};
    EXPECT_TRUE(write_shared(root_, snapshots[1]));
    lie(root_ / share->staging);
    snapshots[0].share = *share;
    const auto written = write_shared(root_, snapshots[0], {.timeout = kShort});
    return written ? "written" : written.error().line();
  };
  const auto change = [](const std::function<void(RankNote&)>& how) {
    return [how](const fs::path& folder) {
      auto note = read_note(folder, 1);
      ASSERT_TRUE(note);
      how(*note);
      ASSERT_TRUE(leave_note(folder, *note));
    };
  };
  EXPECT_THAT(outcome([](const fs::path& folder) {
                std::ofstream(folder / rank_note_name(1)) << "garbage";
              }),
              HasSubstr("rank-00001.json: is not valid JSON"));
  EXPECT_THAT(outcome([](const fs::path& folder) {
                fs::copy_file(folder / rank_note_name(1), folder / "x");
                fs::resize_file(folder / rank_note_name(1), 20);
              }),
              HasSubstr("rank-00001.json"));
  EXPECT_THAT(outcome(change([](RankNote& note) { note.step = 3; })),
              HasSubstr("rank 1 wrote step 3"));
  EXPECT_THAT(outcome(change([](RankNote& note) { note.ranks = 3; })), HasSubstr("one of 3 ranks"));
  EXPECT_THAT(outcome(change([](RankNote& note) { note.parts.clear(); })),
              HasSubstr("has no file for its elements"));
  EXPECT_THAT(outcome(change([](RankNote& note) { ++note.files[0].bytes; })),
              HasSubstr("differs from what its rank wrote"));
  EXPECT_THAT(outcome(change([](RankNote& note) { note.parts[0].tensors[0].info.name = "else"; })),
              HasSubstr("that rank 0 does not expect"));
  expect_untouched();
  EXPECT_EQ(outcome([](const fs::path&) {}), "written");
}

TEST_F(SharedWriteFaults, AMissingTruncatedOrDamagedShardIsNamedAndTheOneBeforeUsed) {
  const Snapshot whole = snapshot_of_step(2, 500);
  const auto damage = [&](const std::function<void(const fs::path&)>& how, const char* what) {
    const auto written = write_by_ranks(root_, spread(whole, 3, 4));
    ASSERT_TRUE(written) << written.error().line();
    const auto read = Checkpoint::open(written->folder);
    ASSERT_TRUE(read);
    const std::string name = read->manifest().files.back().name;
    EXPECT_THAT(name, HasSubstr("-rank-00002-of-00003"));
    how(written->folder / name);
    const auto found = latest(root_);
    ASSERT_TRUE(found && found->checkpoint);
    EXPECT_EQ(found->checkpoint->manifest().state.step, 1);
    ASSERT_EQ(found->damaged.size(), 1U);
    EXPECT_THAT(found->damaged[0].line(), HasSubstr(name + what));
  };
  damage([](const fs::path& file) { fs::remove(file); }, ": is missing");
  damage([](const fs::path& file) { fs::resize_file(file, 9); }, ": has 9 bytes, but");
  damage(
      [](const fs::path& file) {
        std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
        stream.seekg(-1, std::ios::end);
        const auto last = static_cast<char>(stream.get() ^ 1);
        stream.seekp(-1, std::ios::end);
        stream.put(last);
      },
      ": differs from what was written");
}

// A manifest and files that do not belong together, each intact by itself.
TEST_F(SharedWriteFaults, AShardOfAnotherCheckpointIsRefusedWhenItIsRead) {
  const auto written = write_by_ranks(root_, spread(snapshot_of_step(2, 500), 2, 4));
  ASSERT_TRUE(written);
  const auto read = Checkpoint::open(written->folder);
  const auto set = read->part("weights");
  ASSERT_TRUE(set);
  const std::string file = set->tensors()[0].pieces[0].file;
  ASSERT_TRUE(fs::remove(written->folder / file));
  fs::copy_file(root_ / "step-1/optimizer.safetensors", written->folder / file);
  std::vector<std::byte> bytes(static_cast<std::size_t>(*set->tensors()[0].info.bytes()));
  const auto result = set->read(set->tensors()[0], 0, bytes);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().line(), HasSubstr(file + ": has no 'embedding"));
}

TEST_F(SharedWriteFaults, AWriterThatIsDestroyedDoesNotWaitLongForOthers) {
  std::vector<Snapshot> snapshots = spread(snapshot_of_step(2), 2, 1);
  snapshots[0].share = *begin_shared(root_, 2, 2);
  {
    auto writer = BackgroundWriter::start(
        root_, {.write = {.timeout = std::chrono::hours(10), .timeout_when_stopping = kShort}});
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->submit(snapshots[0]));
    EXPECT_FALSE((*writer)->idle_within(kShort));
  }
  expect_untouched();
}

TEST_F(SharedWriteFaults, AFolderIsRemovedWhileOthersStillWriteToIt) {
  auto share = begin_shared(root_, 9, 2);
  ASSERT_TRUE(share);
  const fs::path folder = root_ / share->staging;
  std::jthread other([&] {
    constexpr int kMostFiles = 100'000;
    for (int i = 0; i < kMostFiles; ++i) {
      if (!std::ofstream(folder / std::to_string(i))) return;
    }
  });
  while (fs::is_empty(folder)) std::this_thread::yield();
  share->folder->discard();
  other.join();
  expect_untouched();
}

}  // namespace
}  // namespace assay::checkpoint
