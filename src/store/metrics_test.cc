// Metrics that runs report about themselves, written by one connection and read by another.
#include "store/metrics.h"

#include <stdlib.h>

#include <limits>
#include <thread>

#include "store/cleaning.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"
#include "store/this_run.h"

namespace assay::store {
namespace {

using ::testing::HasSubstr;
using testing::line_of;

class MetricsTest : public testing::RunsTest {
 protected:
  // A run and its uid.
  RunRecord begun(const std::string& uid) {
    RunRecord run = testing::run_of("train a=1 -> b=2");
    run.uid = uid;
    run.id = testing::record(store_, "train a=1 -> b=2");
    EXPECT_TRUE(store_.database().exec("UPDATE run SET uid = '" + uid +
                                       "' WHERE id = " + std::to_string(run.id)));
    return run;
  }
  static MetricRow row(std::int64_t step, double loss, double seconds) {
    return {step, {{"loss", "", loss}, {"seconds", "s", seconds}}};
  }
  std::vector<MetricSeries> metrics(RunId run) { return *load_metrics(store_, run); }

  Store writing_ = *Store::open(location_, {});
};

TEST_F(MetricsTest, ComeBackAsTheyWereWritten) {
  const RunRecord run = begun("00000000000000aa");
  auto writer = MetricWriter::begin(writing_, run.uid);
  ASSERT_TRUE(writer) << line_of(writer);
  EXPECT_TRUE(metrics(run.id).empty());
  ASSERT_TRUE(*writer->write(std::vector<MetricRow>{row(1, 5.5, 0.1), row(2, 1.0 / 3, 0.2)}));
  // A quantity that first appears later, one that is not a number, and a repeated step.
  ASSERT_TRUE(*writer->write(
      std::vector<MetricRow>{{2, {{"validation_loss", "", 4.5}, {"seconds", "s", 0.25}}},
                             {3, {{"loss", "", std::numeric_limits<double>::infinity()}}}}));
  const auto series = metrics(run.id);
  ASSERT_EQ(series.size(), 3U);
  EXPECT_EQ(series[0].name, "loss");
  EXPECT_EQ(series[0].points[1].value, 1.0 / 3);
  ASSERT_EQ(series[0].points.size(), 3U);
  EXPECT_FALSE(series[0].points[2].value);
  EXPECT_EQ(series[1].unit, "s");
  EXPECT_EQ(series[1].points[1].value, 0.25);
  EXPECT_EQ(series[2].points[0].step, 2);
  EXPECT_EQ(load_series(store_, run.id, "seconds")->size(), 2U);
  EXPECT_TRUE(load_series(store_, run.id, "watts")->empty());
}

TEST_F(MetricsTest, ProcessesOfARunAreApart) {
  const RunRecord run = begun("00000000000000aa");
  const RunRecord other = begun("00000000000000ab");
  auto first = MetricWriter::begin(writing_, run.uid);
  auto second = MetricWriter::begin(store_, run.uid);
  auto third = MetricWriter::begin(store_, other.uid);
  for (auto* writer : {&first, &second, &third}) {
    ASSERT_TRUE(*(*writer)->write(std::vector<MetricRow>{row(1, 5, 1)}));
  }
  const auto series = metrics(run.id);
  ASSERT_EQ(series.size(), 4U);
  EXPECT_EQ(series[0].source, 1);
  EXPECT_EQ(series[3].source, 2);
  EXPECT_EQ(metrics(other.id)[0].source, 1);
}

TEST_F(MetricsTest, ALockedStoreIsTriedAgain) {
  const RunRecord run = begun("00000000000000aa");
  auto writer = MetricWriter::begin(writing_, run.uid);
  ASSERT_TRUE(writer);
  const std::vector<MetricRow> rows = {row(1, 5, 1)};
  {
    auto lock = Transaction::begin(store_.database());
    ASSERT_TRUE(lock);
    const auto written = writer->write(rows);
    ASSERT_TRUE(written) << line_of(written);
    EXPECT_FALSE(*written);
  }
  EXPECT_TRUE(*writer->write(rows));
  EXPECT_EQ(metrics(run.id).size(), 2U);
}

TEST_F(MetricsTest, GoWithTheirRun) {
  const RunRecord run = begun("00000000000000aa");
  auto writer = MetricWriter::begin(writing_, run.uid);
  ASSERT_TRUE(*writer->write(std::vector<MetricRow>{row(1, 5, 1)}));
  ASSERT_TRUE(remove_run(store_, run.id));
  EXPECT_EQ(*store_.database().integer("SELECT count(*) FROM metric_series"), 0);
  EXPECT_EQ(*store_.database().integer("SELECT count(*) FROM metric_point"), 0);
  EXPECT_THAT(line_of(MetricWriter::begin(writing_, run.uid)), HasSubstr("there is no run"));
}

TEST_F(MetricsTest, ALargeRunIsReadInOnePiece) {
  const RunRecord run = begun("00000000000000aa");
  auto writer = MetricWriter::begin(writing_, run.uid);
  std::vector<MetricRow> rows;
  for (int step = 1; step <= 20'000; ++step) rows.push_back(row(step, 5.0 / step, 0.1));
  ASSERT_TRUE(*writer->write(rows));
  const auto points = *load_series(store_, run.id, "loss");
  ASSERT_EQ(points.size(), 20'000U);
  EXPECT_EQ(points.back().step, 20'000);
  EXPECT_EQ(points.back().value, 5.0 / 20'000);
  EXPECT_EQ((*last_point(store_, run.id, "loss"))->step, 20'000);
  EXPECT_EQ(*last_point(store_, run.id, "watts"), std::nullopt);
  // A second source, as after a restart, is the newer one.
  auto restarted = MetricWriter::begin(store_, run.uid);
  ASSERT_TRUE(*restarted->write(std::vector<MetricRow>{row(7, 2.5, 0.1)}));
  EXPECT_EQ((*last_point(store_, run.id, "loss"))->value, 2.5);
}

TEST(ThisRunTest, IsInTheEnvironment) {
  base::Environment environment = {"A=1", "ASSAY_RUN=old:/x"};
  set_run_variable({location_in("/a:b/c"), "00000000000000aa"}, environment);
  EXPECT_EQ(environment.entries(),
            (std::vector<std::string>{"A=1", "ASSAY_RUN=00000000000000aa:/a:b/c"}));
  ::setenv("ASSAY_RUN", environment.entries()[1].c_str() + 10, 1);
  const auto run = this_run();
  ASSERT_TRUE(run);
  EXPECT_EQ(run->uid, "00000000000000aa");
  EXPECT_EQ(run->location.database, "/a:b/c/.assay/assay.db");
  for (const char* other : {"", "x", "x:", "x:relative"}) {
    ::setenv("ASSAY_RUN", other, 1);
    EXPECT_FALSE(this_run()) << other;
  }
  ::unsetenv("ASSAY_RUN");
  EXPECT_FALSE(this_run());
}

}  // namespace
}  // namespace assay::store
