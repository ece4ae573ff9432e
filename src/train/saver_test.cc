// Ranks that save together, when one of them cannot copy its state.
#include "train/saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/testing/temp_dir.h"
#include "comm/local.h"
#include "train/checkpoint/checkpoint.h"
#include "train/testing/memory_backend.h"

namespace assay::train {
namespace {

class CrowdedBackend : public testing::MemoryBackend {
 public:
  base::Result<HostCopy> copy_out(const step::Program& program,
                                  std::span<const step::View> views) override {
    if (failing-- > 0) return base::fail(base::unfit_error("host memory", "is too little"));
    return MemoryBackend::copy_out(program, views);
  }
  int failing = 0;
};

class Notes : public Reporter {
 public:
  void began(std::int64_t, std::int64_t) override {}
  void stepped(const StepReport&) override {}
  void validated(const ValidationReport&) override {}
  void saved(const std::filesystem::path&, std::int64_t) override {}
  void note(const std::string& line) override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

spec::JobSpec saved_job() {
  spec::JobSpec job;
  job.model = {.vocab = 37,
               .dim = 24,
               .layers = 2,
               .heads = 4,
               .kv_heads = 2,
               .head_dim = 6,
               .ffn = 40,
               .context = 8};
  job.batch = {.sequence = 8, .micro_batch = 1, .accumulate = 1};
  job.train.precision = spec::Precision::kFp32;
  return job;
}

TEST(Saver, ARankThatCannotCopyItsStateCostsOneCheckpoint) {
  const spec::JobSpec job = saved_job();
  for (const int crowded : {0, 1}) {
    const base::testing::TempDir dir;
    const auto root = dir.path() / "checkpoints";
    std::vector<std::vector<std::string>> notes(2);
    const auto done = comm::run_local(2, [&](comm::Communicator& ranks) -> base::Result<void> {
      step::Choices choices = step::choices_of(job);
      choices.recompute = spec::Recompute::kNone;
      ASSAY_TRY(choices.layout, step::layout_of({.dp = 1, .fsdp = 2}, ranks.rank()));
      ASSAY_TRY(const step::Program program, step::build(job.model, choices));
      CrowdedBackend backend;
      ASSAY_TRY_VOID(backend.prepare(program, {}));
      backend.failing = ranks.rank() == crowded ? 1 : 0;
      Notes reporter;
      {
        Saver saver(job, {.root = root, .steps = 9}, ranks, reporter);
        if (ranks.rank() == 0) ASSAY_TRY_VOID(saver.open());
        ASSAY_TRY_VOID(ranks.any_rank(false));  // the folder is there
        if (ranks.rank() != 0) ASSAY_TRY_VOID(saver.open());
        ASSAY_TRY_VOID(saver.save(backend, program, {.step = 3}));
        // The rank asks for another checkpoint, and rank 0, which reports to the user, knows of it.
        const bool knows = ranks.rank() == crowded || ranks.rank() == 0;
        EXPECT_EQ(saver.finish().has_value(), !knows);
        EXPECT_EQ(saver.retry_due(), knows);
        EXPECT_FALSE(std::filesystem::exists(root / "step-3"));
        ASSAY_TRY_VOID(ranks.any_rank(false));
        ASSAY_TRY_VOID(saver.save(backend, program, {.step = 4}));
        ASSAY_TRY_VOID(saver.finish());
        EXPECT_FALSE(saver.retry_due());
      }
      notes[static_cast<std::size_t>(ranks.rank())] = reporter.lines();
      return {};
    });
    ASSERT_TRUE(done.has_value()) << done.error().line();
    EXPECT_TRUE(checkpoint::verify(root / "step-4").has_value());
    const std::string begin = "THE CHECKPOINT OF STEP 3 WAS NOT WRITTEN, and will be tried again: ";
    const std::string own = begin + "host memory: is too little";
    const std::string of_others =
        begin + "other ranks: cannot copy their state; see the logs of these ranks";
    EXPECT_EQ(notes[0], std::vector{crowded == 0 ? own : of_others});
    EXPECT_EQ(notes[1], crowded == 1 ? std::vector{own} : std::vector<std::string>{});
  }
}

using ::testing::HasSubstr;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(DiskRoom, OneMoreThanAreKeptIsThereAtATime) {
  EXPECT_EQ((FutureCheckpoints{.count = 10, .keep = 2}).at_once(), 3);
  EXPECT_EQ((FutureCheckpoints{.count = 1, .keep = 2}).at_once(), 1);
  EXPECT_EQ((FutureCheckpoints{.count = 10, .keep = 2, .existing = 2}).at_once(), 1);
  EXPECT_EQ((FutureCheckpoints{.count = 10, .keep = 2, .existing = 7}).at_once(), 1);
  EXPECT_EQ((FutureCheckpoints{.count = 10, .keep = 0, .existing = 7}).at_once(), 10);
}

TEST(DiskRoom, WhatWillNotFitIsRefused) {
  const FutureCheckpoints future{.bytes = kGiB, .count = 10, .keep = 2};
  const auto fits = check_disk_space("out", base::Bytes(3 * kGiB), future);
  ASSERT_TRUE(fits.has_value());
  EXPECT_EQ(*fits, "");
  const auto refused = check_disk_space("out", base::Bytes(3 * kGiB - 1), future);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ExitCode::kUnfit);
  EXPECT_THAT(refused.error().line(), HasSubstr("needs room for 3 checkpoints of 1.00 GiB"));
}

TEST(DiskRoom, WhereAllAreKeptPeopleMayMoveSomeAway) {
  FutureCheckpoints future{.bytes = kGiB, .count = 10, .keep = 0};
  const auto warned = check_disk_space("out", base::Bytes(4 * kGiB), future);
  ASSERT_TRUE(warned.has_value());
  EXPECT_THAT(*warned, HasSubstr("has room for 4 of the 10 checkpoints"));
  EXPECT_FALSE(check_disk_space("out", base::Bytes(kGiB - 1), future).has_value());
}

}  // namespace

}  // namespace assay::train
