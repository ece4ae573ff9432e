#include "store/cleaning.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "store/hash_cache.h"
#include "store/job_reader.h"
#include "store/job_writer.h"
#include "store/labels.h"
#include "store/steps.h"
#include "store/testing/jobs.h"
#include "store/testing/jobs_fixture.h"

namespace assay::store {
namespace {

using testing::digest_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::job_of;
using testing::line_of;
using testing::record;

class CleaningTest : public testing::JobsTest {
 protected:
  std::vector<JobId> left() { return ids(*list_jobs(store_)); }
  std::vector<JobId> collected(const GcOptions& options = {}) {
    const auto report = collect_garbage(store_, options);
    EXPECT_TRUE(report) << line_of(report);
    return ids(report->jobs);
  }
  std::int64_t rows(const std::string& table) {
    return *store_.database().integer("SELECT count(*) FROM " + table);
  }
};

TEST_F(CleaningTest, ARemovedJobIsGoneWithAllThatWasRecorded) {
  record(store_, "make -> a=1");
  Job job = job_of("make b=1 -> a=2");
  job.processes.push_back({});
  job.missed.push_back({"x", "y"});
  job.context.packages.push_back({"pip", "torch", "1"});
  job.context.git = Git{};
  ASSERT_TRUE(record_job(store_, job));
  ASSERT_TRUE(set_label(store_, "it", JobId{2}));
  ASSERT_TRUE(remove_job(store_, 2));
  EXPECT_THAT(left(), ElementsAre(1));
  EXPECT_EQ(step_job(store_, 1)->id, 1);
  for (const char* table : {"job_input", "process", "missed", "job_package", "job_git", "label"}) {
    EXPECT_EQ(rows(table), 0) << table;
  }
  EXPECT_EQ(rows("job_output"), 1);
  EXPECT_THAT(line_of(remove_job(store_, 2)), HasSubstr("no such job"));
  // Its number is never used again.
  EXPECT_EQ(record(store_, "make -> a=3"), 3);
}

TEST_F(CleaningTest, ARunningJobStays) {
  Job job = job_of("x");
  job.status = JobStatus::kRunning;
  job.collector_pid = ::getpid();
  job.collector_start_ticks = testing::own_start_ticks();
  ASSERT_TRUE(begin_job(store_, job));
  EXPECT_THAT(line_of(remove_job(store_, 1)), HasSubstr("job 1: is still running"));
  EXPECT_THAT(collected(), ElementsAre());
  EXPECT_THAT(left(), ElementsAre(1));
}

TEST_F(CleaningTest, WhatNothingNeedsIsCollected) {
  record(store_, "make -> a=1");  // superseded, but 2 reads what it made
  record(store_, "use a=1 -> b=1");
  record(store_, "make -> a=2");  // superseded, and nobody read it
  record(store_, "make -> a=3");
  Job failed = job_of("broken");
  failed.status = JobStatus::kFailed;
  ASSERT_TRUE(record_job(store_, failed));
  EXPECT_THAT(collected({.dry_run = true}), ElementsAre(5, 3));
  EXPECT_THAT(left(), ElementsAre(5, 4, 3, 2, 1));
  EXPECT_THAT(collected({.keep = 1, .dry_run = true}), ElementsAre(3));
  EXPECT_THAT(
      collected({.before_unix_ns = head_of(store_, 3)->started_unix_ns + 1, .dry_run = true}),
      ElementsAre(3));
  EXPECT_THAT(collected(), ElementsAre(5, 3));
  EXPECT_THAT(left(), ElementsAre(4, 2, 1));
}

TEST_F(CleaningTest, LabelsProtect) {
  record(store_, "make -> a=1");
  record(store_, "make -> a=2");
  record(store_, "make -> a=3");
  ASSERT_TRUE(set_label(store_, "job", JobId{1}));
  ASSERT_TRUE(set_label(store_, "content", digest_of("2")));
  EXPECT_THAT(collected(), ElementsAre());
}

TEST_F(CleaningTest, WhatIsSharedGoesWithItsLastUser) {
  const auto with_context = [&](const char* description, const char* package, const char* diff) {
    Job job = job_of(description);
    job.context.packages = {{"pip", package, "1"}};
    job.context.git = Git{.diff = diff};
    ASSERT_TRUE(record_job(store_, job));
  };
  with_context("make -> a=1", "old", "old diff");
  with_context("make -> a=2", "new", "new diff");
  HashCache cache = *HashCache::prepare(store_);
  ASSERT_TRUE(cache.insert({{1, 1, 1, 1, 1}, digest_of("x"), kStampTick_ns + 1}));
  const GcReport report = *collect_garbage(store_, {.hashes_before_unix_ns = kStampTick_ns + 2});
  EXPECT_EQ(report.documents, 1);
  EXPECT_EQ(report.packages, 1);
  EXPECT_EQ(report.hashes, 1);
  EXPECT_EQ(report.files, 1);
  EXPECT_EQ(load_job(store_, 2)->context.git->diff, "new diff");
  EXPECT_EQ(rows("package"), 1);
}

TEST_F(CleaningTest, AFileThatIsMostlyEmptyShrinks) {
  Job job = job_of("make -> a=1");
  for (int i = 0; i < 20'000; ++i) {
    job.inputs.push_back({fmt::format("/project/file-{}", i), digest_of(std::to_string(i)), 1});
  }
  ASSERT_TRUE(record_job(store_, job));
  record(store_, "make -> a=2");
  ASSERT_TRUE(store_.database().exec("PRAGMA wal_checkpoint(TRUNCATE)"));
  const GcReport report = *collect_garbage(store_, {});
  EXPECT_LT(report.bytes_after * 4, report.bytes_before);
  EXPECT_TRUE(store_.check());
}

TEST_F(CleaningTest, IsSafeWhileOthersRecord) {
  constexpr int kRecorders = 6;
  constexpr int kRuns = 15;
  std::atomic<int> running = kRecorders;
  std::vector<std::thread> recorders;
  std::vector<std::string> errors(kRecorders);
  for (int r = 0; r < kRecorders; ++r) {
    recorders.emplace_back([&, r] {
      auto own = Store::open(store_.location(), {});
      for (int i = 0; own && i < kRuns; ++i) {
        // Each repeats its step, so that there is always something to collect.
        Job job = job_of("make -> x=1", fmt::format("/recorder-{}", r));
        job.outputs[0].blake3 = digest_of(fmt::format("{} {}", r, i));
        job.context.environment = {{"RUN", fmt::format("{} {}", r, i)}};
        const auto id = record_job(*own, job);
        if (!id) errors[static_cast<std::size_t>(r)] = id.error().line();
      }
      --running;
    });
  }
  while (running > 0) {
    const auto report = collect_garbage(store_, {});
    EXPECT_TRUE(report) << line_of(report);
  }
  for (std::thread& recorder : recorders) recorder.join();
  EXPECT_THAT(errors, ::testing::Each(""));
  EXPECT_TRUE(store_.check());
  // Every step's last job is there, whole.
  const auto jobs = *live_jobs(store_);
  ASSERT_EQ(jobs.size(), static_cast<std::size_t>(kRecorders));
  for (const Job& job : jobs) {
    const Job whole = *load_job(store_, job.id);
    ASSERT_EQ(whole.outputs.size(), 1U);
    const std::string run = whole.context.environment.at("RUN");
    EXPECT_EQ(whole.outputs[0].blake3, digest_of(run));
    EXPECT_THAT(run, ::testing::EndsWith(fmt::format(" {}", kRuns - 1)));
  }
  EXPECT_TRUE(collect_garbage(store_, {}));
  EXPECT_EQ(rows("job"), kRecorders);
  EXPECT_EQ(rows("document"), kRecorders);
}

}  // namespace
}  // namespace assay::store
