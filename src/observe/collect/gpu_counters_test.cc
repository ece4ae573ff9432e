#include "observe/collect/gpu_counters.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/process/proc.h"

namespace assay::collect {
namespace {

namespace fs = std::filesystem;

class GpuCountersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "gpu-count-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string uid() const { return "test-" + folder_.filename().string(); }

  fs::path folder_;
};

TEST_F(GpuCountersTest, IsEnabledByADriverOrByTheVariable) {
  EXPECT_TRUE(cuda_may_run({"ASSAY_GPU=1"}));
  EXPECT_FALSE(cuda_may_run({"ASSAY_GPU=0", "LD_LIBRARY_PATH=" + folder_.string()}));
  std::ofstream(folder_ / "libcuda.so.1") << "x";
  EXPECT_TRUE(cuda_may_run({"LD_LIBRARY_PATH=/nowhere::" + folder_.string()}));
  EXPECT_FALSE(cuda_may_run({"ASSAY_GPU=0", "LD_LIBRARY_PATH=" + folder_.string()}));
}

TEST_F(GpuCountersTest, WhatProcessesCountedIsSummedUpAndFoundAgain) {
  auto count = GpuCounters::make(uid(), folder_);
  ASSERT_TRUE(count);
  base::Environment environment = {"A=1", "ASSAY_GPU_REGION=/old"};
  const bool added = count->add_to(environment);
  EXPECT_EQ(added, environment.entries().back().starts_with("ASSAY_GPU_REGION=/") &&
                       environment.entries().back() != "ASSAY_GPU_REGION=/old");
  EXPECT_FALSE(GpuCounters::make(uid(), "/nowhere"));  // it is there already
  auto found = GpuCounters::find(uid(), folder_);
  ASSERT_TRUE(found);
  const GpuReport report = found->report();
  EXPECT_EQ(report.totals[wire::GpuQuantity::kKernel].calls, 0U);
  EXPECT_TRUE(report.collectives.empty());
  EXPECT_TRUE(report.memory.empty());
  count->remove();
  EXPECT_FALSE(GpuCounters::find(uid(), folder_));
}

TEST_F(GpuCountersTest, LimitsAndWaitsAreReported) {
  auto count = GpuCounters::make(uid(), folder_);
  ASSERT_TRUE(count);
  EXPECT_TRUE(count->report().shares.empty());
  wire::GpuRegion& region = count->region();
  region.header.limits.bytes = 1000;
  wire::claim_device(region, 1, 2);
  region.devices[0].limits.share = 300;
  region.devices[0].busy_ns = 5;
  const auto shares = count->report().shares;
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].uuid, "");
  EXPECT_EQ(shares[0].byte_limit, 1000U);
  EXPECT_EQ(shares[1].uuid, "GPU-01000000-0000-0000-0200-000000000000");
  EXPECT_EQ(shares[1].share.thousandths, 300U);
  EXPECT_EQ(shares[1].busy_ns, 5U);
  count->remove();
}

// By the lock on the slot's byte, or, where a program closed the descriptor that held it, by pid
// and start time.
TEST_F(GpuCountersTest, ExitedProcessesAreRecognised) {
  auto count = GpuCounters::make(uid(), folder_);
  ASSERT_TRUE(count);
  const auto uids = GpuCounters::uids();
  EXPECT_NE(std::find(uids.begin(), uids.end(), uid()), uids.end());
  wire::GpuRegion& region = count->region();
  struct stat here {};
  ASSERT_EQ(::stat("/proc/self/ns/pid", &here), 0);
  region.header.next_slot = 4;
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(("/dev/shm/assay-gpu-" + uid()).c_str(), O_RDWR);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_start = 1;
    lock.l_len = 1;
    char byte = ::fcntl(file, F_SETLK, &lock) == 0 ? 'y' : 'n';
    (void)!::write(pipes[1], &byte, 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(pipes[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  region.slots[0].process = child;        // never locked, with a wrong start time
  region.slots[1].process = 999'999'999;  // of another namespace: only the lock counts
  region.slots[2].process = ::getpid();   // running, without a lock
  region.slots[2].namespace_id = here.st_ino;
  region.slots[2].start_ticks =
      static_cast<std::uint64_t>(base::process_stat(::getpid())->start_ticks);
  EXPECT_EQ(count->living(), (std::vector<bool>{false, true, true, false}));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(count->living(), (std::vector<bool>{false, false, true, false}));
  region.slots[2].start_ticks = 1;
  EXPECT_EQ(count->living(), std::vector<bool>(4));
  ::close(pipes[0]);
  ::close(pipes[1]);
  count->remove();
  EXPECT_EQ(count->living(), std::vector<bool>(4));
}

}  // namespace
}  // namespace assay::collect
