// What a run reports about its steps: the live line, the ETA, rows of metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "assay-train/live_line.h"
#include "assay-train/step_metrics.h"
#include "assay-train/stop_requests.h"
#include "store/metrics.h"

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

MeasuredStep measured() {
  MeasuredStep step;
  step.report = {.step = 40,
                 .steps = 1000,
                 .tokens = 40 * 1000,
                 .loss = 3.25,
                 .gradient_norm = 0.5,
                 .learning_rate = 3e-4,
                 .seconds = 0.1,
                 .tokens_per_s = 10'000};
  step.usage = {.power = {.seconds = 0.11, .joules = 77, .clock_mhz = 1980},
                .memory_bytes = std::int64_t{3} << 30U,
                .host_bytes = std::int64_t{1} << 30U};
  step.utilisation = Utilisation{.mfu = 0.4123, .mfu_6n = 0.45};
  step.unix_ns = 1'794'752'807'849'123'456;
  step.tokens = 1000;
  return step;
}

TEST(LiveLine, ShowsEverythingIfItFits) {
  EXPECT_EQ(live_line(measured(), 3.5, 3725, {}),
            "step   40/1000  loss 3.2500  val 3.5000  norm 0.500  lr 3.00e-04  10,000 tok/s  "
            "MFU 41.2 % (6N 45.0 %)  3.00 GiB  700 W  1980 MHz  ETA 1:02:05");
  EXPECT_THAT(live_line(measured(), {}, {}, {}), Not(HasSubstr("ETA")));
}

TEST(LiveLine, DropsTheLeastImportantFields) {
  for (std::size_t columns = 1; columns < 200; ++columns) {
    EXPECT_LT(live_line(measured(), 3.5, 60, columns).size(), columns);
  }
  EXPECT_EQ(live_line(measured(), 3.5, 60, 80),
            "step   40/1000  loss 3.2500  10,000 tok/s  MFU 41.2 % (6N 45.0 %)  ETA 1:00");
  MeasuredStep bare = measured();
  bare.utilisation.reset();
  bare.usage.power = {};
  bare.report.skipped = true;
  EXPECT_EQ(live_line(bare, {}, 60, 100),
            "step   40/1000  loss 3.2500  skipped: gradients not finite  "
            "10,000 tok/s  3.00 GiB  ETA 1:00");
}

TEST(Rows, AreAboutTwentyAndOneEveryHalfMinute) {
  const auto printed = [](std::int64_t steps, double step_s) {
    Rows rows(1, steps, steps);
    std::vector<std::int64_t> list;
    for (std::int64_t step = 1; step <= steps; ++step) {
      if (rows.due(step, static_cast<double>(step) * step_s)) list.push_back(step);
    }
    return list;
  };
  EXPECT_EQ(printed(100, 0.01).size(), 21U);  // the first, and every fifth
  const std::vector<std::int64_t> day = printed(86'400, 1);
  EXPECT_EQ(day.front(), 1);
  EXPECT_EQ(day.back(), 86'400);
  for (std::size_t i = 1; i < day.size(); ++i) EXPECT_LE(day[i] - day[i - 1], 30);
  EXPECT_LE(day.size(), 86'400U / 30 + 22);
  EXPECT_EQ(printed(100, 45).size(), 100U);
}

TEST(StopAnswer, SaysWhatWillHappenAndWhen) {
  LoopState state{.doing = train::Doing::kStep, .step = 12, .since_s = 11.6, .usual_s = 40.2};
  EXPECT_EQ(answer_to(SIGINT, false, state),
            "Ctrl-C: stopping after step 12 (12 of about 40 s done), then a checkpoint; Ctrl-C "
            "again stops at once, without one");
  EXPECT_EQ(answer_to(SIGTERM, true, state),
            "SIGTERM: stopping after step 12 (12 of about 40 s done), then a checkpoint; Ctrl-C "
            "stops at once, without one");
  state.since_s = 50;
  EXPECT_THAT(answer_to(SIGTERM, false, state), HasSubstr("step 12 (50 s so far), then"));
  state.usual_s.reset();
  EXPECT_THAT(answer_to(SIGUSR1, false, state), HasSubstr("SIGUSR1: stopping after step 12 (50 s"));
  state.doing = train::Doing::kLastCheckpoint;
  EXPECT_THAT(answer_to(SIGHUP, true, state), HasSubstr("step 12, is being written (50 s so far)"));
  EXPECT_EQ(answer_to(SIGINT, true, state),
            "Ctrl-C: stopped without a checkpoint; --resume continues from the last one");
}

TEST(StepMetrics, HaveOnlyWhatWasMeasured) {
  const base::Json json = store::row_json(row_of(measured()));
  EXPECT_EQ(json.dump(),
            "{\"step\":40,\"unix_s\":1794752807.849,\"tokens\":40000,\"loss\":3.25,\"z_loss\":0.0,"
            "\"gradient_norm\":0.5,\"learning_rate\":0.0003,\"seconds\":0.1,"
            "\"tokens_per_s\":10000.0,\"mfu\":0.4123,\"mfu_6n\":0.45,"
            "\"memory_bytes\":3221225472,\"host_bytes\":1073741824,\"watts\":700.0,"
            "\"joules\":77.0,\"joules_per_token\":0.077,\"sm_mhz\":1980.0,\"left_out\":false}");
  MeasuredStep bare = measured();
  bare.utilisation.reset();
  bare.usage.power = {};
  bare.report.loss = std::nan("");
  const base::Json less = store::row_json(row_of(bare));
  for (const char* absent : {"mfu", "mfu_6n", "watts", "joules", "joules_per_token", "sm_mhz"}) {
    EXPECT_FALSE(less.contains(absent)) << absent;
  }
  EXPECT_TRUE(less["loss"].is_null());
}

TEST(UtilisationModel, IsNotMadeUp) {
  spec::JobSpec job;
  job.model.vocab = 1000;
  job.model.dim = 64;
  job.model.layers = 2;
  job.model.heads = job.model.kv_heads = 4;
  job.model.head_dim = 16;
  job.model.ffn = 128;
  job.batch.sequence = 128;
  EXPECT_FALSE(UtilisationModel(job).at(1000));
  job.cluster.device.bf16 = base::FlopsPerSecond(1e12);
  const auto utilisation = UtilisationModel(job).at(1000);
  ASSERT_TRUE(utilisation);
  EXPECT_GT(utilisation->mfu, 0);
  EXPECT_GT(utilisation->mfu_6n, utilisation->mfu);  // the embedding
  EXPECT_STREQ(utilisation->peak, "bf16");
  EXPECT_FALSE(utilisation->fp8);
}

// Work done in fp8 is compared with what the device can do in fp8; in bf16 it could not have been
// done at all.
TEST(UtilisationModel, OfFp8IsOfItsOwnPeakToo) {
  spec::JobSpec job;
  job.model = {.vocab = 1000, .dim = 64, .layers = 2, .heads = 4, .kv_heads = 4, .head_dim = 16};
  job.model.ffn = 128;
  job.batch.sequence = 128;
  job.train.precision = spec::Precision::kFp8;
  job.cluster.device.bf16 = base::FlopsPerSecond(1e12);
  EXPECT_FALSE(UtilisationModel(job).at(1000)->fp8);  // its peak is not known
  job.cluster.device.fp8 = base::FlopsPerSecond(2e12);
  MeasuredStep step = measured();
  step.utilisation = UtilisationModel(job).at(1000);
  ASSERT_TRUE(step.utilisation->fp8);
  EXPECT_DOUBLE_EQ(step.utilisation->fp8->mfu, step.utilisation->mfu / 2);
  EXPECT_DOUBLE_EQ(step.utilisation->fp8->mfu_6n, step.utilisation->mfu_6n / 2);
  const base::Json json = store::row_json(row_of(step));
  EXPECT_EQ(json["mfu_fp8"], step.utilisation->fp8->mfu);
  EXPECT_EQ(json["mfu_6n_fp8"], step.utilisation->fp8->mfu_6n);
  step.utilisation = Utilisation{.mfu = 0.97, .mfu_6n = 1.03, .fp8 = {{0.485, 0.515}}};
  EXPECT_THAT(live_line(step, {}, {}, {}),
              HasSubstr("MFU 48.5 % (6N 51.5 %) of fp8, 97.0 % of bf16"));
}

TEST(Eta, KnowsWhatIsLeft) {
  Eta eta(1, 100, 10);
  eta.stepped(1, 30);  // warming up
  EXPECT_DOUBLE_EQ(eta.seconds_left(), 99 * 30);
  eta.stepped(2, 1);
  EXPECT_DOUBLE_EQ(eta.seconds_left(), 98);
  for (int step = 3; step <= 50; ++step) eta.stepped(step, 1);
  EXPECT_DOUBLE_EQ(eta.seconds_left(), 50);
  eta.validated(5);  // five more of them
  EXPECT_DOUBLE_EQ(eta.seconds_left(), 75);
  eta.stepped(51, 2);
  EXPECT_NEAR(eta.seconds_left(), 49 * 1.1 + 25, 1e-9);
  eta.stepped(100, 1);
  EXPECT_EQ(eta.seconds_left(), 0);
}

TEST(Eta, AResumedRunBeginsAnew) {
  Eta eta(91, 100, 0);
  eta.stepped(91, 9);
  EXPECT_DOUBLE_EQ(eta.seconds_left(), 81);
}

}  // namespace
}  // namespace assay::cli
