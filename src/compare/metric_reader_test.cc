#include "compare/metric_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "compare/metric_reader.h"
#include "store/metrics.h"
#include "store/testing/runs.h"

namespace assay::compare {
namespace {

using ::testing::HasSubstr;

TEST(StoredMetrics, AreThoseOfTheRunThatCameAfter) {
  const base::testing::TempDir directory;
  EXPECT_FALSE(StoredMetrics::open(directory.path()));
  auto store = store::Store::create(store::location_in(directory.path()), store::StoreProgram{});
  ASSERT_TRUE(store) << store.error().line();
  const auto record = [&](const std::string& uid, std::vector<store::MetricRow> rows) {
    const store::RunId id = store::testing::record(*store, "train a=1 -> b=2");
    ASSERT_TRUE(store->database().exec("UPDATE run SET uid = '" + uid +
                                       "' WHERE id = " + std::to_string(id)));
    ASSERT_TRUE(*store::MetricWriter::begin(*store, uid)->write(rows));
  };
  record("00000000000000aa", {{1, {{"seconds", "s", 9}}}});
  auto stored = StoredMetrics::open(directory.path());
  ASSERT_TRUE(stored) << stored.error().line();
  ASSERT_TRUE(stored->remember());
  EXPECT_THAT(stored->steps("seconds").error().line(), HasSubstr("the command recorded no run in"));
  record("00000000000000ab",
         {{1, {{"seconds", "s", 0.5}}}, {2, {{"seconds", "s", 0.25}, {"loss", "", -1}}}});
  const std::vector<StepValue> expected = {{1, 0.5, 0}, {2, 0.25, 0}};
  EXPECT_EQ(*stored->steps("seconds"), expected);
  EXPECT_EQ(stored->steps("loss")->back().value, -1);
  EXPECT_TRUE(stored->step_ends()->empty());
  EXPECT_THAT(stored->steps("watts").error().line(), HasSubstr("has no such metric"));
  ASSERT_TRUE(stored->remember());
  EXPECT_FALSE(stored->steps("seconds"));
}

// A run that recorded when its steps ended is divided like one whose output was timed.
TEST(StoredMetrics, StartUpIsFoundIfStepsHaveTheirEndTime) {
  const base::testing::TempDir directory;
  auto store = store::Store::create(store::location_in(directory.path()), store::StoreProgram{});
  ASSERT_TRUE(store) << store.error().line();
  Experiment experiment;
  experiment.steps = *parse_steps("stored:seconds");
  experiment.directory = directory.path();
  const auto interrupts = Interrupts::watch();
  auto reading = MetricReader::of(experiment, *interrupts);
  ASSERT_TRUE(reading) << reading.error().line();
  ASSERT_TRUE(reading->begin());
  const store::RunId id = store::testing::record(*store, "train a=1 -> b=2");
  ASSERT_TRUE(store->database().exec("UPDATE run SET uid = '00000000000000ac' WHERE id = " +
                                     std::to_string(id)));
  std::vector<store::MetricRow> rows;
  for (int step = 1; step <= 5; ++step) {
    rows.push_back({step, {{"seconds", "s", 0.5}, {"unix_s", "s", 1'790'000'003 + 0.5 * step}}});
  }
  ASSERT_TRUE(*store::MetricWriter::begin(*store, "00000000000000ac")->write(rows));
  ArmRun record{.wall_s = 7};
  ASSERT_TRUE(reading->read({}, {}, 1'790'000'000'000'000'000, record));
  EXPECT_EQ(record.steps.size(), 5U);
  EXPECT_EQ(record.startup_s, 3);
  EXPECT_EQ(record.after_s, 1.5);
}

}  // namespace
}  // namespace assay::compare
