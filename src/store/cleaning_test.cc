#include "store/cleaning.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "store/hash_cache.h"
#include "store/labels.h"
#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/stages.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

using testing::digest_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::line_of;
using testing::record;
using testing::run_of;

class CleaningTest : public testing::RunsTest {
 protected:
  std::vector<RunId> left() { return ids(*list_runs(store_)); }
  std::vector<RunId> collected(const GcRequest& request = {}) {
    const auto report = collect_garbage(store_, request);
    EXPECT_TRUE(report) << line_of(report);
    return ids(report->runs);
  }
  std::int64_t rows(const std::string& table) {
    return *store_.database().integer("SELECT count(*) FROM " + table);
  }
};

TEST_F(CleaningTest, ARemovedRunIsGoneWithAllThatWasRecorded) {
  record(store_, "make -> a=1");
  RunRecord run = run_of("make b=1 -> a=2");
  run.processes.push_back({});
  run.missed.push_back({"x", "y"});
  run.context.packages.push_back({"pip", "torch", "1"});
  run.context.git = Git{};
  ASSERT_TRUE(record_run(store_, run));
  ASSERT_TRUE(set_label(store_, "it", RunId{2}));
  ASSERT_TRUE(remove_run(store_, 2));
  EXPECT_THAT(left(), ElementsAre(1));
  EXPECT_EQ(stage_run(store_, 1)->id, 1);
  for (const char* table : {"run_input", "process", "missed", "run_package", "run_git", "label"}) {
    EXPECT_EQ(rows(table), 0) << table;
  }
  EXPECT_EQ(rows("run_output"), 1);
  EXPECT_THAT(line_of(remove_run(store_, 2)), HasSubstr("no such run"));
  // Its number is never used again.
  EXPECT_EQ(record(store_, "make -> a=3"), 3);
}

TEST_F(CleaningTest, ARunningRunStays) {
  RunRecord run = run_of("x");
  run.status = RunStatus::kRunning;
  run.collector_pid = ::getpid();
  run.collector_start_ticks = testing::own_start_ticks();
  ASSERT_TRUE(begin_run(store_, run));
  EXPECT_THAT(line_of(remove_run(store_, 1)), HasSubstr("run 1: is still running"));
  EXPECT_THAT(collected(), ElementsAre());
  EXPECT_THAT(left(), ElementsAre(1));
}

TEST_F(CleaningTest, WhatNothingNeedsIsCollected) {
  record(store_, "make -> a=1");  // superseded, but 2 reads what it made
  record(store_, "use a=1 -> b=1");
  record(store_, "make -> a=2");  // superseded, and not read
  record(store_, "make -> a=3");
  RunRecord failed = run_of("broken");
  failed.status = RunStatus::kFailed;
  ASSERT_TRUE(record_run(store_, failed));
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
  ASSERT_TRUE(set_label(store_, "run", RunId{1}));
  ASSERT_TRUE(set_label(store_, "content", digest_of("2")));
  EXPECT_THAT(collected(), ElementsAre());
}

TEST_F(CleaningTest, WhatIsSharedGoesWithItsLastUser) {
  const auto with_context = [&](const char* description, const char* package, const char* diff) {
    RunRecord run = run_of(description);
    run.context.packages = {{"pip", package, "1"}};
    run.context.git = Git{.diff = diff};
    ASSERT_TRUE(record_run(store_, run));
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
  EXPECT_EQ(load_run(store_, 2)->context.git->diff, "new diff");
  EXPECT_EQ(rows("package"), 1);
}

TEST_F(CleaningTest, AFileThatIsMostlyEmptyShrinks) {
  RunRecord run = run_of("make -> a=1");
  for (int i = 0; i < 20'000; ++i) {
    run.inputs.push_back({fmt::format("/project/file-{}", i), digest_of(std::to_string(i)), 1});
  }
  ASSERT_TRUE(record_run(store_, run));
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
        // Each repeats its stage, so that there is always something to collect.
        RunRecord run = run_of("make -> x=1", fmt::format("/recorder-{}", r));
        run.outputs[0].blake3 = digest_of(fmt::format("{} {}", r, i));
        run.context.environment = {{"RUN", fmt::format("{} {}", r, i)}};
        const auto id = record_run(*own, run);
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
  // Every stage's last run is there, whole.
  const auto runs = *live_runs(store_);
  ASSERT_EQ(runs.size(), static_cast<std::size_t>(kRecorders));
  for (const RunRecord& run : runs) {
    const RunRecord whole = *load_run(store_, run.id);
    ASSERT_EQ(whole.outputs.size(), 1U);
    const std::string number = whole.context.environment.at("RUN");
    EXPECT_EQ(whole.outputs[0].blake3, digest_of(number));
    EXPECT_THAT(number, ::testing::EndsWith(fmt::format(" {}", kRuns - 1)));
  }
  EXPECT_TRUE(collect_garbage(store_, {}));
  EXPECT_EQ(rows("run"), kRecorders);
  EXPECT_EQ(rows("document"), kRecorders);
}

}  // namespace
}  // namespace assay::store
