// Metrics written to stores that work, are locked, missing or read-only.
#include "train/metrics_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/testing/temp_dir.h"
#include "store/run_writer.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MetricsLogTest : public ::testing::Test {
 protected:
  MetricsLogTest() {
    store::RunRecord run;
    run.uid = "00000000000000aa";
    run_ = *store::begin_run(store_, run);
  }
  std::unique_ptr<MetricsLog> log(std::chrono::milliseconds every = std::chrono::milliseconds(1)) {
    return std::make_unique<MetricsLog>(
        store::ThisRun{location_, "00000000000000aa"},
        [this](const std::string& line) { notes_.push_back(line); }, every);
  }
  std::size_t points() { return store::load_series(store_, run_, "loss")->size(); }
  static store::MetricRow row(std::int64_t step) { return {step, {{"loss", "", 1.0}}}; }

  base::testing::TempDir dir_;
  store::Location location_ = store::location_in(dir_.path());
  store::Store store_ = *store::Store::create(location_, {});
  store::RunId run_ = 0;
  std::vector<std::string> notes_;
};

TEST_F(MetricsLogTest, EverythingIsWrittenByTheEnd) {
  auto metrics = log(std::chrono::hours(1));
  for (int step = 1; step <= 1000; ++step) metrics->add(row(step));
  metrics.reset();
  EXPECT_EQ(points(), 1000U);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(MetricsLogTest, ThePlanIsThereBeforeTheFirstStep) {
  const auto metrics = log(std::chrono::hours(1));
  metrics->add(store::PlanRecord{.job = "demo", .device = "CPUs", .plan = base::Json::object()});
  while (!*store::load_plan(store_, run_)) std::this_thread::yield();
  EXPECT_TRUE(notes_.empty());
}

TEST_F(MetricsLogTest, ThePlanWaitsForALockInTheBackground) {
  auto lock = std::make_optional(*store::Transaction::begin(store_.database()));
  auto metrics = log();
  const base::Stopwatch watch;
  metrics->add(store::PlanRecord{.job = "demo", .device = "CPUs", .plan = base::Json::object()});
  metrics->add(row(1));
  EXPECT_LT(watch.elapsed().count(), 0.5);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  lock.reset();
  metrics.reset();
  EXPECT_TRUE(*store::load_plan(store_, run_));
  EXPECT_EQ(points(), 1U);
}

TEST_F(MetricsLogTest, ComesWhileItRuns) {
  const auto metrics = log();
  for (std::int64_t step = 1; step <= 3; ++step) {
    metrics->add(row(step));
    while (points() < static_cast<std::size_t>(step)) std::this_thread::yield();
  }
}

TEST_F(MetricsLogTest, ALockDelaysRowsOnly) {
  auto lock = std::make_optional(*store::Transaction::begin(store_.database()));
  auto metrics = log();
  const base::Stopwatch watch;
  for (int step = 1; step <= 100; ++step) metrics->add(row(step));
  EXPECT_LT(watch.elapsed().count(), 0.5);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  lock.reset();
  metrics.reset();
  EXPECT_EQ(points(), 100U);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(MetricsLogTest, AnUnwritableStoreIsReportedOnce) {
  fs::rename(location_.directory, dir_.path() / "away");
  auto metrics = log();
  for (int step = 1; step <= 100; ++step) metrics->add(row(step));
  metrics.reset();
  fs::rename(dir_.path() / "away", location_.directory);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("metrics are not written to the store: ")));
}

TEST_F(MetricsLogTest, AStoreThatStaysLockedIsReportedAtTheEnd) {
  const auto lock = store::Transaction::begin(store_.database());
  auto metrics = log();
  metrics->add(row(1));
  metrics.reset();
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("locked until the end; 1 steps are missing")));
}

}  // namespace
}  // namespace assay::train
