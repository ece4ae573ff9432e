// Meters of fake devices, and energy between two readings.
#include "machine/meter.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "machine/power_log.h"
#include "machine/testing/fake_tree.h"

namespace assay::machine {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(GpuMeterTest, ReadsTheGpuOnThisBus) {
  ::setenv("FAKE_NVML", "nvswitch", 1);
  const auto meter = gpu_meter("0000:AB:00.0", FAKE_NVML);  // as CUDA writes it; GPU 5
  ASSERT_NE(meter, nullptr);
  const MeterReading first = meter->read();
  const MeterReading second = meter->read();
  EXPECT_EQ(first.watts, 405);
  EXPECT_EQ(first.clock_mhz, 1980);
  EXPECT_EQ(throttling_faults(*first.clock_limits), std::vector<std::string>{"too hot"});
  const auto other = gpu_meter("0000:18:00.0", FAKE_NVML);  // at its power limit, as it may be
  EXPECT_TRUE(throttling_faults(*other->read().clock_limits).empty());
  EXPECT_DOUBLE_EQ(*second.joules - *first.joules, 50);
  EXPECT_EQ(*second.too_hot_ns - *first.too_hot_ns, 50 * kMs);
  EXPECT_EQ(other->read().too_hot_ns, 0);
}

TEST(GpuMeterTest, MissingReadingsAreEmpty) {
  ::setenv("FAKE_NVML", "pairs", 1);
  const MeterReading little = gpu_meter("0000:18:00.0", FAKE_NVML)->read();
  EXPECT_FALSE(little.joules || little.too_hot_ns);
  EXPECT_EQ(gpu_meter("0000:77:00.0", FAKE_NVML), nullptr);
  EXPECT_EQ(gpu_meter("", FAKE_NVML), nullptr);
  EXPECT_EQ(gpu_meter("0000:18:00.0", FAKE_NVML_BARE), nullptr);
  EXPECT_EQ(gpu_meter("0000:18:00.0", "/nonexistent"), nullptr);
  const auto meter = gpu_meter("0000:18:00.0", FAKE_NVML);
  for (const char* scenario : {"errors", "garbage"}) {
    ::setenv("FAKE_NVML", scenario, 1);
    const MeterReading reading = meter->read();
    EXPECT_FALSE(reading.watts || reading.clock_mhz || reading.clock_limits || reading.too_hot_ns)
        << scenario;
  }
  ::setenv("FAKE_NVML", "driver_not_loaded", 1);
  EXPECT_EQ(gpu_meter("0000:18:00.0", FAKE_NVML), nullptr);
}

class ProcessorMeterTest : public ::testing::Test {
 protected:
  void zone(const std::string& folder, const std::string& name, const std::string& energy) {
    const std::string path = "/sys/class/powercap/" + folder;
    tree_.write(path + "/name", name + "\n");
    tree_.write(path + "/energy_uj", energy + "\n");
    tree_.write(path + "/max_energy_range_uj", "1000000000\n");
  }
  FakeTree tree_;
};

TEST_F(ProcessorMeterTest, SumsPackagesAndFollowsWraps) {
  zone("intel-rapl:0", "package-0", "999000000");
  zone("intel-rapl:1", "package-1", "5000000");
  zone("intel-rapl:0:0", "core", "1");
  zone("intel-rapl:2", "psys", "1");
  zone("intel-rapl-mmio:0", "package-0", "1");
  const auto meter = processor_meter(tree_.root());
  ASSERT_NE(meter, nullptr);
  EXPECT_EQ(meter->read().joules, 0);
  zone("intel-rapl:0", "package-0", "2000000");  // 3 J later, around the end
  zone("intel-rapl:1", "package-1", "6000000");
  EXPECT_DOUBLE_EQ(*meter->read().joules, 4);
  tree_.write("/sys/class/powercap/intel-rapl:1/energy_uj", "");
  EXPECT_FALSE(meter->read().joules);
}

TEST_F(ProcessorMeterTest, NoneOrClosedIsNone) {
  EXPECT_EQ(processor_meter(tree_.root()), nullptr);
  zone("intel-rapl:0", "package-0", "many");
  EXPECT_EQ(processor_meter(tree_.root()), nullptr);
}

TEST(ConsumptionTest, PiecesAddUpToTheCounter) {
  Consumption line(0);
  double sum = 0;
  double counter = 1000;
  // 400 W, then 600 W; taken every 30 ms, read every 100.
  for (int ms = 0; ms <= 3000; ms += 10) {
    if (ms % 100 == 0)
      line.add(ms * kMs, {.joules = counter, .clock_mhz = ms < 1500 ? 1000 : 1200});
    if (ms % 30 == 0) sum += line.take(ms * kMs).joules.value_or(0);
    counter += ms < 1500 ? 4 : 6;
  }
  EXPECT_NEAR(sum, 1500, 60);  // without what was used before the second reading
  line.add(3100 * kMs, {.joules = counter + 54, .clock_mhz = 1200});
  const PowerUse last = line.take(3100 * kMs);
  EXPECT_NEAR(*last.joules, 60, 1);
  EXPECT_EQ(last.clock_mhz, 1200);
  EXPECT_NEAR(last.seconds, 0.1, 1e-9);
}

TEST(ConsumptionTest, PowerAloneIsSummed) {
  Consumption line(0);
  line.add(0, {.watts = 100});
  EXPECT_DOUBLE_EQ(*line.take(50 * kMs).joules, 5);
  line.add(100 * kMs, {.watts = 300});  // 20 J by now
  EXPECT_DOUBLE_EQ(*line.take(100 * kMs).joules, 15);
  EXPECT_DOUBLE_EQ(*line.take(200 * kMs).joules, 30);
}

TEST(ConsumptionTest, CountersThatRestStandStillOrBeginAnew) {
  Consumption line(0);
  EXPECT_FALSE(line.take(5 * kMs).joules);
  line.add(10 * kMs, {.joules = 100});
  EXPECT_FALSE(line.take(20 * kMs).joules);
  line.add(110 * kMs, {.joules = 140});                 // 400 W
  EXPECT_NEAR(*line.take(110 * kMs).joules, 36, 1e-9);  // since 20 ms
  line.add(210 * kMs, {.joules = 140});                 // not brought up to date yet
  EXPECT_NEAR(*line.take(210 * kMs).joules, 40, 1e-9);
  line.add(310 * kMs, {.joules = 1});  // the counter was reset: the driver was reloaded
  EXPECT_FALSE(line.take(310 * kMs).joules);
  line.add(410 * kMs, {.joules = 41});
  EXPECT_NEAR(*line.take(410 * kMs).joules, 40, 1e-9);
  line.add(5000 * kMs, {.joules = 41});  // at rest
  EXPECT_NEAR(*line.take(6000 * kMs).joules, 0, 1e-9);
}

TEST(PowerLogTest, ReadsOnAThreadOfItsOwn) {
  class Steady : public Meter {
   public:
    MeterReading read() override {
      ++reads;
      return {.watts = 250};
    }
    std::atomic<int> reads = 0;
  };
  auto meter = std::make_unique<Steady>();
  Steady& steady = *meter;
  PowerLog log(std::move(meter), std::chrono::milliseconds(1));
  while (steady.reads < 5) std::this_thread::yield();
  const PowerUse used = log.take();
  EXPECT_NEAR(*used.joules / used.seconds, 250, 25);
}

}  // namespace
}  // namespace assay::machine
