#include "compare/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/testing/fake_tree.h"

namespace assay::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HostTest : public ::testing::Test {
 protected:
  HostTest() {
    tree_.add_host(1, 2);
    processors("100 0 100 1000 50 0 0 0 0 0");
    tree_.write("/proc/vmstat", "nr_free_pages 5\npswpin 10\npswpout 20\n");
    tree_.write("/proc/loadavg", "0.10 0.20 0.30 1/100 4242\n");
  }
  void processors(const std::string& columns) const {
    tree_.write("/proc/stat", "cpu  " + columns + "\ncpu0 1 2 3\n");
  }
  machine::FakeTree tree_;
};

TEST_F(HostTest, CountsWhatOthersUsed) {
  Host host(tree_.root(), "");
  EXPECT_EQ(host.cpus(), 4);
  HostSample before = host.sample();
  EXPECT_EQ(before.busy_s, 2);
  EXPECT_EQ(before.swapped_pages, 30);
  processors("300 50 250 1000 99 5 5 80 77 0");
  HostSample after = host.sample();
  before.monotonic_ns = 0;
  after.monotonic_ns = 2'000'000'000;
  const HostUsage s = host_usage(before, after, 1.1, host.cpus());
  EXPECT_DOUBLE_EQ(s.seconds, 2);
  EXPECT_NEAR(s.others_cpus, (6.1 - 2 - 1.1) / 2, 1e-9);
  EXPECT_NEAR(s.steal_share, 0.8 / 8, 1e-9);
  EXPECT_THAT(host_problems(s), ElementsAre("other processes used 1.5 processors",
                                            "the hypervisor took 10 % of the processor time"));
}

TEST_F(HostTest, AQuietMachineIsNotComplainedAbout) {
  const HostUsage quiet{.seconds = 1, .others_cpus = 0.1, .steal_share = 0.001};
  EXPECT_THAT(host_problems(quiet), IsEmpty());
  EXPECT_THAT(Host(tree_.root(), "").preflight(), IsEmpty());
}

TEST_F(HostTest, HeatAndSwapAreSeen) {
  const std::string throttled = "/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count";
  tree_.write(throttled, "7\n");
  Host host(tree_.root(), "");
  const HostSample before = host.sample();
  tree_.write(throttled, "9\n");
  tree_.write("/proc/vmstat", "pswpin 10\npswpout 25\n");
  HostSample after = host.sample();
  after.gpu_problems = {"GPU 0: too hot"};
  EXPECT_THAT(
      host_problems(host_usage(before, after, 0, 4)),
      ElementsAre("GPU 0: too hot", "5 pages were swapped", "processors were throttled for heat"));
}

TEST_F(HostTest, AGpuThatWasHotInBetweenIsSeen) {
  HostSample before;
  HostSample after;
  before.gpu_hot_ns = {{0, 500}, {1, 500}};
  after.gpu_hot_ns = {{0, 500}, {1, 501}, {2, 9}};  // of the third nothing was known before
  EXPECT_THAT(host_problems(host_usage(before, after, 0, 4)), ElementsAre("GPU 1: too hot"));
  after.gpu_problems = {"GPU 1: too hot"};
  EXPECT_THAT(host_problems(host_usage(before, after, 0, 4)), ElementsAre("GPU 1: too hot"));
}

TEST_F(HostTest, PreflightNamesLoadGovernorAndSwap) {
  tree_.write("/proc/loadavg", "3.50 1 1 1/1 1\n");
  tree_.write("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n");
  tree_.write("/proc/meminfo", "MemTotal: 100 kB\nSwapTotal: 2048 kB\nSwapFree: 1024 kB\n");
  EXPECT_THAT(Host(tree_.root(), "").preflight(),
              ElementsAre("load is 3.5 on 4 processors: other processes are running",
                          "the frequency governor is 'powersave', not 'performance'",
                          "1.00 MiB are swapped out"));
}

TEST_F(HostTest, AMachineWithoutReadingsGivesNoWarnings) {
  const machine::FakeTree empty;
  Host host(empty.root(), "");
  EXPECT_EQ(host.sample().busy_s, 0);
  EXPECT_THAT(host.preflight(), IsEmpty());
}

}  // namespace
}  // namespace assay::compare
