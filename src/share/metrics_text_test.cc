// The Prometheus text, read back by a strict reader.
#include "share/metrics_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "share/testing/exposition.h"

namespace assay::share {
namespace {

UsageView example(const std::string& title) {
  UsageSample sample;
  sample.runs.push_back({.uid = "0123456789abcdef", .id = 7, .title = title, .gpu = RunState{}});
  RunState& state = *sample.runs[0].gpu;
  state.launches = 18446744073709551615U;
  state.collectives = 12;
  state.matmuls = 9;
  state.matmul_flops = 3.5e21;
  DeviceState device{.uuid = {1, 2}, .total = 100, .used = 40, .limit = 50};
  device.share.thousandths = 125;
  device.busy_ns = 1'500'000'000;
  state.devices = {device, {.uuid = {9, 9}}};
  sample.gpus.push_back({.index = 0, .uuid = wire::uuid_text({1, 2}), .name = title});
  sample.activities.push_back({.memory_used = base::Bytes(1 << 30),
                               .watts = 512.5,
                               .tensor_percent = 25,
                               .nvlink_sent = base::BytesPerSecond(1e9)});
  // A training run on CPUs.
  sample.runs.push_back(
      {.uid = "00000000000000cc",
       .id = 8,
       .title = "assay train",
       .elapsed_s = 12.5,
       .usage = ProcessUsage{.processes = 2, .cpu_seconds = 20.25, .memory_bytes = 4096},
       .training = TrainingProgress{.step = 40, .loss = 3.5, .tokens_per_s = std::nullopt}});
  return usage_view(nullptr, sample);
}

TEST(MetricsTextTest, HasTheValuesOfTheView) {
  const auto read = testing::read_exposition(metrics_text(example("python train.py")));
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(read.value("assay_gpu_runs", {}), 1);
  EXPECT_EQ(read.value("assay_runs", {}), 2);
  const testing::Exposition::Labels training = {{"assay_run", "00000000000000cc"}};
  EXPECT_EQ(read.value("assay_run_ran_seconds", training), 12.5);
  EXPECT_EQ(read.value("assay_run_processes", training), 2);
  EXPECT_EQ(read.value("assay_run_cpu_seconds_total", training), 20.25);
  EXPECT_EQ(read.value("assay_run_memory_bytes", training), 4096);
  EXPECT_EQ(read.value("assay_run_step", training), 40);
  EXPECT_EQ(read.value("assay_run_loss", training), 3.5);
  EXPECT_FALSE(read.families.contains("assay_run_tokens_per_s"));
  EXPECT_EQ(read.value("assay_gpu_run_launches_total", training), std::nullopt);
  EXPECT_EQ(read.value("assay_gpu_run_launches_total", {{"assay_run", "0123456789abcdef"}}),
            0x1p64);
  EXPECT_EQ(read.value("assay_gpu_run_collectives_total", {{"title", "python train.py"}}), 12);
  EXPECT_EQ(read.value("assay_gpu_run_matmuls_total", {{"assay_run", "0123456789abcdef"}}), 9);
  EXPECT_EQ(read.value("assay_gpu_run_matmul_flops_total", {{"assay_run", "0123456789abcdef"}}),
            3.5e21);
  const std::string uuid = wire::uuid_text({1, 2});
  EXPECT_EQ(read.value("assay_gpu_run_memory_limit_bytes", {{"uuid", uuid}, {"gpu", "0"}}), 50);
  EXPECT_EQ(read.value("assay_gpu_run_compute_limit_ratio", {{"uuid", uuid}}), 0.125);
  EXPECT_EQ(read.value("assay_gpu_run_busy_seconds_total", {{"uuid", uuid}}), 1.5);
  EXPECT_EQ(read.value("assay_gpu_run_memory_limit_bytes", {{"uuid", wire::uuid_text({9, 9})}}),
            std::nullopt);
  EXPECT_EQ(read.value("assay_gpu_tensor_ratio", {{"gpu", "0"}}), 0.25);
  EXPECT_EQ(read.value("assay_gpu_power_watts", {}), 512.5);
  EXPECT_EQ(read.value("assay_gpu_nvlink_sent_bytes_per_second", {}), 1e9);
  EXPECT_FALSE(read.families.contains("assay_gpu_clock_hertz"));  // not measured
  EXPECT_EQ(testing::read_exposition(metrics_text({})).value("assay_gpu_runs", {}), 0);
}

RC_GTEST_PROP(MetricsTextTest, AnyTitleLeavesTheTextValid, (const std::string& title)) {
  const auto read = testing::read_exposition(metrics_text(example(title)));
  RC_ASSERT(read.error == "");
  RC_ASSERT(read.families.at("assay_gpu_run_launches_total").samples.size() == 1U);
}

TEST(ExpositionReaderTest, IsStrict) {
  const std::string head = "# HELP a b\n# TYPE a gauge\n";
  EXPECT_EQ(testing::read_exposition(head + "a{x=\"1\\\\\\\"\\n\"} 1\n").error, "");
  for (const char* wrong :
       {"a 1", "a{x=\"1} 1\n", "a{x=\"\\x\"} 1\n", "a{x=1} 1\n", "a{1x=\"\"} 1\n", "a one\n",
        "b 1\n", "a  1\n", "a 1\na 2\n", "a{x=\"\",x=\"\"} 1\n", "", "a 1\n# HELP a b\n", "\n"}) {
    EXPECT_NE(testing::read_exposition(head + wrong).error, "") << wrong;
  }
}

}  // namespace
}  // namespace assay::share
