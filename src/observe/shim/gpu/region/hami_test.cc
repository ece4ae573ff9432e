// As a replacement of HAMi-core: its variables, its cache file, and none of its known bugs.
#include "observe/shim/gpu/region/hami.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "observe/shim/gpu/testing/run.h"

namespace assay::gpu {
namespace {

using testing::GpuTestRun;
using testing::ProgramOutput;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;

HamiSettings settings_of(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return hami_settings(environment.data());
}

TEST(HamiSettings, AreReadAsHamiReadsThem) {
  const HamiSettings settings = settings_of(
      {"PATH=/bin", "CUDA_DEVICE_MEMORY_LIMIT=3000m", "CUDA_DEVICE_MEMORY_LIMIT_0=20g",
       "CUDA_DEVICE_MEMORY_LIMIT_1=0", "CUDA_DEVICE_MEMORY_LIMIT_2=4096", "CUDA_DEVICE_SM_LIMIT=30",
       "CUDA_DEVICE_MEMORY_LIMIT_3=7K", "CUDA_DEVICE_SM_LIMIT_1=100", "CUDA_DEVICE_SM_LIMIT_2=0",
       "CUDA_TASK_PRIORITY=1", "GPU_CORE_UTILIZATION_POLICY=force", "ACTIVE_OOM_KILLER=1",
       "CUDA_DEVICE_MEMORY_SHARED_CACHE=/tmp/x.cache", "LIBCUDA_LOG_LEVEL=4"});
  EXPECT_TRUE(settings.given);
  EXPECT_EQ(settings.invalid, nullptr);
  EXPECT_EQ(settings.bytes, 3000 * kMiB);
  EXPECT_EQ(settings.bytes_of[0], 20 * kGiB);
  EXPECT_EQ(settings.bytes_of[1], 0U);  // as all
  EXPECT_EQ(settings.bytes_of[2], 4096U);
  EXPECT_EQ(settings.bytes_of[3], 7U << 10U);
  EXPECT_EQ(settings.bytes_of[4], 0U);
  EXPECT_EQ(settings.share, 300U);
  EXPECT_EQ(settings.share_of[1], wire::kGpuWholeShare);
  EXPECT_EQ(settings.share_of[2], 0U);
  EXPECT_EQ(settings.priority, static_cast<std::uint32_t>(wire::GpuPriority::kLow));
  EXPECT_STREQ(settings.cache, "/tmp/x.cache");
}

TEST(HamiSettings, PriorityZeroIsHighAndAPolicyCanSwitchComputeLimitsOff) {
  EXPECT_EQ(settings_of({"CUDA_TASK_PRIORITY=0"}).priority,
            static_cast<std::uint32_t>(wire::GpuPriority::kHigh));
  EXPECT_FALSE(settings_of({"CUDA_TASK_PRIORITY=0"}).given);
  const HamiSettings off =
      settings_of({"CUDA_DEVICE_SM_LIMIT=30", "CUDA_DEVICE_SM_LIMIT_1=20", "CUDA_TASK_PRIORITY=1",
                   "GPU_CORE_UTILIZATION_POLICY=DISABLE"});
  EXPECT_EQ(off.share, 0U);
  EXPECT_EQ(off.share_of[1], 0U);
  EXPECT_EQ(off.priority, 0U);
}

TEST(HamiSettings, ZeroAloneIsNoLimit) {
  const HamiSettings settings =
      settings_of({"CUDA_DEVICE_MEMORY_LIMIT=0", "CUDA_DEVICE_SM_LIMIT_1=0"});
  EXPECT_FALSE(settings.given);
  EXPECT_EQ(settings.invalid, nullptr);
}

TEST(HamiSettings, NonsenseIsIgnoredAndNamed) {
  for (const char* line :
       {"CUDA_DEVICE_MEMORY_LIMIT=", "CUDA_DEVICE_MEMORY_LIMIT=lots", "CUDA_DEVICE_MEMORY_LIMIT=-1",
        "CUDA_DEVICE_MEMORY_LIMIT=1.5g", "CUDA_DEVICE_MEMORY_LIMIT=99999999999999999999",
        "CUDA_DEVICE_MEMORY_LIMIT=18446744073709551615g", "CUDA_DEVICE_MEMORY_LIMIT=5gg",
        "CUDA_DEVICE_MEMORY_LIMIT_64=1g", "CUDA_TASK_PRIORITY=1 ", "CUDA_TASK_PRIORITY=\x11",
        "CUDA_DEVICE_SM_LIMIT=101", "CUDA_DEVICE_SM_LIMIT=3x", "CUDA_TASK_PRIORITY=2",
        "GPU_CORE_UTILIZATION_POLICY=maybe"}) {
    const HamiSettings settings = settings_of({line});
    EXPECT_FALSE(settings.given) << line;
    EXPECT_STREQ(settings.invalid, line);
  }
  // Names that only begin like the variables are ignored.
  for (const char* line : {"CUDA_DEVICE_MEMORY_LIMIT_x=1g", "CUDA_DEVICE_MEMORY_LIMITS=1g",
                           "CUDA_DEVICE_SM_LIMIT_=5", "CUDA_DEVICE_MEMORY_LIMIT"}) {
    const HamiSettings settings = settings_of({line});
    EXPECT_FALSE(settings.given) << line;
    EXPECT_EQ(settings.invalid, nullptr) << line;
  }
}

RC_GTEST_PROP(HamiSettings, AnyEnvironmentIsSurvived, (const std::vector<std::string>& values)) {
  std::vector<std::string> lines;
  for (const std::string& value : values) {
    for (const char* name : {"CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_SM_LIMIT_",
                             "CUDA_TASK_PRIORITY=", "CUDA_DEVICE_MEMORY_LIMIT_3="}) {
      lines.push_back(name + value);
    }
  }
  std::vector<const char*> environment;
  for (const std::string& line : lines) environment.push_back(line.c_str());
  const HamiSettings settings = settings_of(environment);
  RC_ASSERT(settings.share <= wire::kGpuWholeShare);
}

// Programs with the library preloaded and HAMi's variables, as in one of its containers.
class InPlaceOfHami : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "assay-hami-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  // Also removes regions named after limits that only this test uses.
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
      const std::string name = file.path().filename();
      if (!name.starts_with("assay-gpu-hami-")) continue;
      std::ifstream stream(file.path(), std::ios::binary);
      auto header = std::make_unique<wire::GpuHeader>();
      stream.read(reinterpret_cast<char*>(header.get()), sizeof(wire::GpuHeader));
      const std::uint64_t bytes = header->limits.bytes.load();
      if (bytes == odd_ || bytes == odd_ + 1) std::filesystem::remove(file.path());
    }
  }
  // A limit that no other test on this machine has at the same time.
  const std::uint64_t odd_ = 10'000'000 + 2 * static_cast<std::uint64_t>(::getpid());

  [[nodiscard]] std::string cache() const { return folder_ + "/cudevshr.cache"; }
  [[nodiscard]] std::string region() const {
    return cache() + ".assay-gpu-" + std::to_string(wire::kGpuVersion);
  }
  [[nodiscard]] std::string line(const std::string& words, const std::string& settings) const {
    return "LD_PRELOAD=" ASSAY_GPU_LIBRARY " LD_LIBRARY_PATH=" ASSAY_FAKECUDA " ASSAY_GPU_LOG=" +
           folder_ + "/log CUDA_DEVICE_MEMORY_SHARED_CACHE=" + cache() + " " + settings +
           " " ASSAY_GPU_PROBE " memory " + words;
  }
  [[nodiscard]] ProgramOutput memory(const std::string& words, const std::string& settings) const {
    return GpuTestRun::run_as(line(words, settings));
  }
  [[nodiscard]] std::string log() const {
    return GpuTestRun::run_as("cat " + folder_ + "/log").text;
  }
  std::string folder_;
};

TEST_F(InPlaceOfHami, AMemoryLimitIsEnforcedAndReported) {
  const ProgramOutput ran = memory("t=total:0 a=alloc:1048577 b=alloc:1048576 i=info n=nvml:0",
                                   "CUDA_DEVICE_MEMORY_LIMIT=1m");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("t.total"), kMiB);
  EXPECT_EQ(ran.values.at("a"), 2);
  EXPECT_EQ(ran.values.at("b"), 0);
  EXPECT_EQ(ran.values.at("i.free"), 0);
  EXPECT_EQ(ran.values.at("n.total"), kMiB);
}

TEST_F(InPlaceOfHami, WithoutVariablesNothingHappensAtAll) {
  const ProgramOutput ran =
      memory("a=alloc:2000000 t=total:0", "LIBCUDA_LOG_LEVEL=4 ACTIVE_OOM_KILLER=1");
  EXPECT_EQ(ran.values.at("t.total"), kGiB) << ran.text;
  EXPECT_FALSE(std::filesystem::exists(region()));
}

TEST_F(InPlaceOfHami, ProcessesOfAContainerShareTheLimit) {
  const std::string limit = "CUDA_DEVICE_MEMORY_LIMIT=1m ";
  const ProgramOutput ran =
      memory("a=alloc:700000 shell:OTHER",
             limit + "OTHER='" ASSAY_GPU_PROBE " memory b=alloc:400000 c=alloc:300000'");
  EXPECT_EQ(ran.values.at("a"), 0) << ran.text;
  EXPECT_EQ(ran.values.at("b"), 2);
  EXPECT_EQ(ran.values.at("c"), 0);
}

TEST_F(InPlaceOfHami, WithoutACacheFileTheSameLimitsAreShared) {
  const std::string none = "CUDA_DEVICE_MEMORY_SHARED_CACHE= ";
  const std::string limit = "CUDA_DEVICE_MEMORY_LIMIT=" + std::to_string(odd_) + " ";
  const std::string most = std::to_string(odd_ - 500'000);
  const ProgramOutput ran = memory(
      "a=alloc:" + most + " shell:OTHER shell:ELSE",
      none + limit +
          "OTHER='" ASSAY_GPU_PROBE " memory b=alloc:600000' ELSE='CUDA_DEVICE_MEMORY_LIMIT=" +
          std::to_string(odd_ + 1) + " " ASSAY_GPU_PROBE " memory c=alloc:600000'");
  EXPECT_EQ(ran.values.at("b"), 2) << ran.text;
  EXPECT_EQ(ran.values.at("c"), 0);  // another limit is another region
}

TEST_F(InPlaceOfHami, DevicesAreNumberedAsTheProgramSeesThem) {
  const std::string limits =
      "FAKECUDA_DEVICES=3 CUDA_DEVICE_MEMORY_LIMIT=3000 CUDA_DEVICE_MEMORY_LIMIT_0=1000 "
      "CUDA_DEVICE_MEMORY_LIMIT_1=0 ";
  const ProgramOutput ran = memory("a=total:0 b=total:1 c=total:2 m=nvml:0", limits);
  EXPECT_EQ(ran.values.at("a.total"), 1000U) << ran.text;
  EXPECT_EQ(ran.values.at("b.total"), 3000U);  // 0: as all
  EXPECT_EQ(ran.values.at("c.total"), 3000U);
  EXPECT_EQ(ran.values.at("m.total"), 1000U);
  const ProgramOutput turned =
      memory("a=total:0 device:0 alloc:600 m=nvml:2",
             limits + "CUDA_VISIBLE_DEVICES=GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a002");
  EXPECT_EQ(turned.values.at("a.total"), 1000U) << turned.text;
  EXPECT_EQ(turned.values.at("m.total"), 1000U);
  EXPECT_EQ(turned.values.at("m.used"), 600U);
}

// nvidia-smi in the container, before a device was used.
TEST_F(InPlaceOfHami, NvmlAloneReportsLimitsByIndex) {
  const ProgramOutput ran =
      memory("a=nvml:0 b=nvml:1", "FAKECUDA_DEVICES=2 CUDA_DEVICE_MEMORY_LIMIT_1=2000");
  EXPECT_EQ(ran.values.at("a.total"), kGiB) << ran.text;
  EXPECT_EQ(ran.values.at("b.total"), 2000U);
}

TEST_F(InPlaceOfHami, AStaleFileKeepsNoOldLimit) {
  EXPECT_EQ(memory("a=alloc:900 kill",
                   "CUDA_DEVICE_MEMORY_LIMIT=1000 "
                   "CUDA_DEVICE_MEMORY_LIMIT_0=900")
                .values.at("a"),
            0U);
  const ProgramOutput more =
      memory("t=total:0 a=alloc:2000 b=alloc:1 kill", "CUDA_DEVICE_MEMORY_LIMIT=2000");
  EXPECT_EQ(more.values.at("t.total"), 2000U) << more.text;
  EXPECT_EQ(more.values.at("a"), 0U);  // memory of exited processes does not count
  EXPECT_EQ(more.values.at("b"), 2U);
  const ProgramOutput none = memory("t=total:0 a=alloc:5000", "CUDA_DEVICE_SM_LIMIT=50");
  EXPECT_EQ(none.values.at("t.total"), kGiB) << none.text;
  std::ifstream stream(region(), std::ios::binary);
  auto header = std::make_unique<wire::GpuHeader>();
  stream.read(reinterpret_cast<char*>(header.get()), sizeof(wire::GpuHeader));
  EXPECT_EQ(header->limits.share.load(), 500U);
  EXPECT_EQ(header->generation.load(), 5U);  // two changes, two changes, one
}

TEST_F(InPlaceOfHami, WhateverStandsInTheFileIsReplaced) {
  for (const std::string& garbage :
       {std::string("HAMi?"), std::string(5 << 20, 'x'), std::string()}) {
    std::ofstream(region(), std::ios::binary | std::ios::trunc) << garbage;
    const ProgramOutput ran = memory("a=alloc:1001 b=alloc:1000", "CUDA_DEVICE_MEMORY_LIMIT=1000");
    EXPECT_EQ(ran.values.at("a"), 2) << ran.text;
    EXPECT_EQ(ran.values.at("b"), 0);
  }
}

TEST_F(InPlaceOfHami, WhereNoFileCanBeMadeTheLimitHoldsForTheProcess) {
  std::filesystem::create_directory(region());  // not a file, and none can be created
  const std::string limit = std::to_string(odd_);
  const ProgramOutput ran = memory("a=alloc:" + std::to_string(odd_ + 1) + " b=alloc:" + limit,
                                   "CUDA_DEVICE_MEMORY_LIMIT=" + limit);
  EXPECT_EQ(ran.values.at("a"), 2) << ran.text;
  EXPECT_EQ(ran.values.at("b"), 0);
  EXPECT_NE(log().find("the file cannot be created"), std::string::npos) << log();
}

TEST_F(InPlaceOfHami, InvalidValuesAreLoggedAndTheProgramRuns) {
  const ProgramOutput ran =
      memory("a=alloc:5000", "CUDA_DEVICE_MEMORY_LIMIT=much CUDA_DEVICE_MEMORY_LIMIT_1=1g");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("a"), 0);
  EXPECT_NE(log().find("CUDA_DEVICE_MEMORY_LIMIT is not understood"), std::string::npos) << log();
}

TEST_F(InPlaceOfHami, InvalidValuesAloneAreLoggedToo) {
  const ProgramOutput ran = memory("a=alloc:5000", "CUDA_DEVICE_MEMORY_LIMIT=2GB");
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(ran.values.at("a"), 0);
  EXPECT_NE(log().find("CUDA_DEVICE_MEMORY_LIMIT is not understood"), std::string::npos) << log();
  EXPECT_FALSE(std::filesystem::exists(region()));
  const GpuTestRun run;
  const ProgramOutput under = run.probe(
      "memory a=alloc:5000", "CUDA_DEVICE_SM_LIMIT=half ASSAY_GPU_LOG=" + folder_ + "/log");
  ASSERT_EQ(under.status, 0) << under.text;
  EXPECT_NE(log().find("CUDA_DEVICE_SM_LIMIT is not understood"), std::string::npos) << log();
}

TEST_F(InPlaceOfHami, ProcessesThatStartAtOnceMakeOneRegion) {
  std::string all;
  for (int i = 0; i < 24; ++i) {
    all += line("alloc:10", "CUDA_DEVICE_MEMORY_LIMIT=1g") + " & ";
  }
  const ProgramOutput ran = GpuTestRun::run_as(all + "wait");
  EXPECT_EQ(ran.text, "");
  struct stat status {};
  ASSERT_EQ(::stat(region().c_str(), &status), 0);
  EXPECT_EQ(status.st_nlink, 1U);
  EXPECT_EQ(status.st_mode & 0777U, 0666U);
  EXPECT_GE(status.st_blocks * 512, static_cast<off_t>(sizeof(wire::GpuRegion)));  // no holes
  std::ifstream stream(region(), std::ios::binary);
  auto header = std::make_unique<wire::GpuHeader>();
  stream.read(reinterpret_cast<char*>(header.get()), sizeof(wire::GpuHeader));
  EXPECT_EQ(header->next_slot.load(), 24U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_),
                          std::filesystem::directory_iterator()),
            2);  // the region and the log: no incomplete one
}

// `assay run` in such a container: the container's limits apply where the run has none.
TEST_F(InPlaceOfHami, UnderAssayRunTheContainersLimitsHoldToo) {
  const GpuTestRun run;
  const ProgramOutput ran =
      run.probe("memory t=total:0 a=alloc:2001", "CUDA_DEVICE_MEMORY_LIMIT=2000");
  EXPECT_EQ(ran.values.at("t.total"), 2000U) << ran.text;
  EXPECT_EQ(ran.values.at("a"), 2U);
  const GpuTestRun other;
  other.region().header.limits.bytes = 1000;
  const ProgramOutput own = other.probe("memory t=total:0", "CUDA_DEVICE_MEMORY_LIMIT=2000");
  EXPECT_EQ(own.values.at("t.total"), 1000U) << own.text;
}

}  // namespace
}  // namespace assay::gpu
