// Shares and priorities of programs that keep the fake GPU busy, which reports the time each
// process got. The machine may be busy, so bounds are wide here and narrow in
// pace/turn_rules_test.cc, where time is simulated, and in bench/gpu/shares, where the GPU is real.
#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "observe/shim/gpu/testing/run.h"

namespace assay::gpu {
namespace {

using testing::GpuTestRun;
using testing::ProgramOutput;
using wire::GpuPriority;
using wire::GpuQuantity;

constexpr int kWindowMs = 200;

std::uint64_t now_in_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

void limit(const GpuTestRun& run, std::uint32_t share, bool borrow = false,
           GpuPriority priority = GpuPriority::kUnset) {
  wire::GpuLimits& limits = run.region().header.limits;
  limits.share = share;
  limits.borrow = borrow ? 1 : 2;
  limits.priority = static_cast<std::uint32_t>(priority);
  run.region().header.generation.fetch_add(1);
}

// From the start of the programs to the first window; in_one_of_several() gives them more.
constexpr std::uint64_t kTimeToStartMs = 200;
std::uint64_t time_to_start_ms = kTimeToStartMs;

// Runs on one GPU, with their own file of turns.
class OneGpu {
 public:
  OneGpu() {
    ::close(::mkstemp(clock_));
    ::truncate(clock_, 0);
    turns_ = std::string(clock_) + ".turns";
  }
  ~OneGpu() {
    wait();
    ::unlink(clock_);
    ::unlink(turns_.c_str());
  }
  OneGpu(const OneGpu&) = delete;
  OneGpu& operator=(const OneGpu&) = delete;

  [[nodiscard]] std::string settings() const {
    return "FAKECUDA_LAUNCH_NS=1000 FAKECUDA_CLOCK=" + std::string(clock_) +
           " ASSAY_GPU_TURNS=" + turns_ + " ";
  }
  [[nodiscard]] const std::string& turns_file() const { return turns_; }

  // Starts another program; `kernels` as in testing/probe.h.
  void start(const GpuTestRun& run, const std::string& kernels, int windows = 3,
             const std::string& more = "") {
    const std::size_t place = results_.size();
    results_.push_back(std::make_unique<ProgramOutput>());
    const std::size_t at = kernels.find(' ');
    const std::string words = "share " + kernels.substr(0, at) + " " + std::to_string(begin_) +
                              " " + std::to_string(kWindowMs) + " " + std::to_string(windows) +
                              kernels.substr(at);
    ProgramOutput* result = results_[place].get();
    running_.emplace_back([=, this, &run] { *result = run.probe(words, settings() + more); });
  }
  void wait() {
    for (std::thread& thread : running_) thread.join();
    running_.clear();
  }
  // Percent of the GPU that the program got, over a range of windows.
  double share_of(std::size_t program, int from = 0, int to = 3) {
    wait();
    const ProgramOutput& ran = *results_[program];
    EXPECT_EQ(ran.status, 0) << ran.text;
    double sum = 0;
    double span = 0;
    for (int i = from; i < to; ++i) {
      const auto busy = ran.values.find("busy" + std::to_string(i));
      const auto whole = ran.values.find("span" + std::to_string(i));
      if (busy == ran.values.end() || whole == ran.values.end()) return -1;
      sum += static_cast<double>(busy->second);
      span += static_cast<double>(whole->second);
    }
    return 100 * sum / span;
  }
  // GPU time until its end, in nanoseconds.
  double busy_ns(std::size_t program) {
    wait();
    const auto ever = results_[program]->values.find("ever");
    return ever == results_[program]->values.end() ? 0 : static_cast<double>(ever->second);
  }
  [[nodiscard]] std::uint64_t begin() const { return begin_; }

 private:
  char clock_[32] = "/dev/shm/assay-gpu-clock-XXXXXX";
  std::string turns_;
  std::uint64_t begin_ = now_in_ms() + time_to_start_ms;  // time to start in
  std::vector<std::unique_ptr<ProgramOutput>> results_;
  std::vector<std::thread> running_;
};

// A program without a processor cannot keep a GPU busy, and on a busy machine that happens. So
// upper bounds of shares are checked in every attempt, lower bounds in one of several.
template <typename Attempt>
void in_one_of_several(Attempt attempt) {
  constexpr int kAttempts = 5;
  std::string seen;
  bool good = false;
  for (int i = 0; i < kAttempts && !good; ++i) {
    good = attempt(seen);
    seen += "; ";
    time_to_start_ms *= 2;
  }
  time_to_start_ms = kTimeToStartMs;
  if (good) return;
  FAIL() << seen;
}
bool note(std::string& seen, const char* what, double value, bool good) {
  seen += what + std::string(" ") + std::to_string(value) + " ";
  return good;
}

void expect_shares(const std::string& first_kernels, double first,
                   const std::string& second_kernels, double second, const std::string& more = "") {
  in_one_of_several([&](std::string& seen) {
    const GpuTestRun runs[2];
    limit(runs[0], static_cast<std::uint32_t>(first * 10));
    limit(runs[1], static_cast<std::uint32_t>(second * 10));
    OneGpu gpu;
    gpu.start(runs[0], first_kernels, 2, more);
    gpu.start(runs[1], second_kernels, 2, more);
    const double a = gpu.share_of(0, 0, 2);
    const double b = gpu.share_of(1, 0, 2);
    EXPECT_LE(a, first + 6);
    EXPECT_LE(b, second + 6);
    const wire::GpuDevice& device = runs[0].region().devices[0];
    EXPECT_GT(device.busy_ns.load(), 1'000'000);
    EXPECT_GT(device.waited_ns.load(), 1'000'000);
    return note(seen, "a", a, a >= first - 6) && note(seen, "b", b, b >= second - 6);
  });
}

TEST(GpuShares, WithoutLimitsTwoProgramsGetHalfEach) {
  in_one_of_several([&](std::string& seen) {
    const GpuTestRun runs[2];
    OneGpu gpu;
    gpu.start(runs[0], "launch 100", 2);
    gpu.start(runs[1], "launch 100", 2);
    const double a = gpu.share_of(0, 0, 2);
    const double b = gpu.share_of(1, 0, 2);
    return note(seen, "a", a, a > 44 && a < 56) && note(seen, "b", b, b > 44 && b < 56);
  });
}

TEST(GpuShares, ThirtyAndSeventy) {
  expect_shares("launch 100", 30, "launch 100", 70);
}

TEST(GpuShares, TenAndNinetyOfDifferentKernels) {
  expect_shares("launch 500 20 2000", 10, "threads 50 300", 90);
}

// A kernel between two events takes over 50 % longer than it adds to a full queue.
TEST(GpuShares, EventsThatTakeLongerThanTheKernels) {
  expect_shares("launch 20", 30, "launch 20", 70, "FAKECUDA_EVENT_NS=20000");
}

// The time of a launch does not follow from its function and grid.
TEST(GpuShares, OneGridForShortAndLongKernels) {
  expect_shares("onegrid 20 1000", 30, "onegrid 1000 20 20 20", 70, "FAKECUDA_EVENT_NS=3000");
}

TEST(GpuShares, CopiesBesideKernels) {
  expect_shares("copy 64", 50, "launch 1000", 50, "FAKECUDA_DEVICE_COPY_NS=2000");
}

// Two processes of one run share its share.
TEST(GpuShares, ProcessesOfARunShareItsTurns) {
  in_one_of_several([&](std::string& seen) {
    const GpuTestRun runs[2];
    limit(runs[0], 400);
    limit(runs[1], 600);
    OneGpu gpu;
    gpu.start(runs[0], "launch 100");
    gpu.start(runs[0], "launch 150");
    gpu.start(runs[1], "launch 100");
    const double both = gpu.share_of(0) + gpu.share_of(1);
    const double other = gpu.share_of(2);
    EXPECT_LE(both, 46);
    EXPECT_LE(other, 66);
    return note(seen, "both", both, both >= 33) && note(seen, "other", other, other >= 53);
  });
}

// Each on its own GPU, concurrently: a cap holds for every kind of work, and a run is charged what
// it used.
TEST(GpuShares, ACapHoldsForEveryKindOfWork) {
  const std::vector<std::string> kinds = {"launch 100", "ex 100",         "cooperative 100",
                                          "graph 100",  "launch 10000 2", "copies 100",
                                          "copy 64",    "set 128"};
  in_one_of_several([&](std::string& seen) {
    const std::vector<GpuTestRun> runs(kinds.size());
    std::vector<OneGpu> gpus(kinds.size());
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      limit(runs[i], 200);
      gpus[i].start(runs[i], kinds[i], 3, "FAKECUDA_COPY_NS=1000 FAKECUDA_DEVICE_COPY_NS=2000");
    }
    bool good = true;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const double share = gpus[i].share_of(0);
      const auto charged = static_cast<double>(runs[i].region().devices[0].busy_ns.load());
      const double part = charged / gpus[i].busy_ns(0);
      EXPECT_LE(share, 26) << kinds[i];
      EXPECT_GE(part, 0.9) << kinds[i];
      good = note(seen, kinds[i].c_str(), share, share >= 14) && good;
      good = note(seen, "charged", part, part <= 1.2) && good;
    }
    return good;
  });
}

TEST(GpuShares, ABorrowerGetsTheRest) {
  in_one_of_several([&](std::string& seen) {
    const GpuTestRun run;
    limit(run, 200, true);
    OneGpu gpu;
    gpu.start(run, "launch 100", 2);
    return note(seen, "alone", gpu.share_of(0, 0, 2), gpu.share_of(0, 0, 2) >= 85);
  });
}

TEST(GpuShares, PriorityComesFirst) {
  in_one_of_several([&](std::string& seen) {
    const GpuTestRun runs[2];
    limit(runs[0], 0, false, GpuPriority::kHigh);
    limit(runs[1], 0, false, GpuPriority::kLow);
    OneGpu gpu;
    gpu.start(runs[0], "launch 100", 2);
    gpu.start(runs[1], "launch 100", 2);
    const double high = gpu.share_of(0, 0, 2);
    return note(seen, "high", high, high >= 85) &&
           note(seen, "low", gpu.share_of(1, 0, 2), gpu.share_of(1, 0, 2) <= 10);
  });
}

// A limit that is set, changed and removed while a program runs.
TEST(GpuShares, LimitsAreChangedWhileAProgramRuns) {
  in_one_of_several([&](std::string& seen) {
    const GpuTestRun run;
    OneGpu gpu;
    gpu.start(run, "launch 100", 6);
    const auto at = [&](int window) {
      const std::uint64_t time = gpu.begin() + static_cast<std::uint64_t>(window * kWindowMs);
      const std::uint64_t now = now_in_ms();
      if (time > now) std::this_thread::sleep_for(std::chrono::milliseconds(time - now));
    };
    at(1);
    limit(run, 300);
    at(4);
    limit(run, 1000);
    return note(seen, "before", gpu.share_of(0, 0, 1), gpu.share_of(0, 0, 1) >= 80) &&
           note(seen, "limited", gpu.share_of(0, 2, 4), gpu.share_of(0, 2, 4) <= 36) &&
           note(seen, "after", gpu.share_of(0, 5, 6), gpu.share_of(0, 5, 6) >= 80);
  });
}

// A process is killed while it holds the turn, with long promised kernels: the other continues and
// gets nearly everything.
TEST(GpuShares, KilledProcessesAreNotWaitedFor) {
  in_one_of_several([&](std::string& seen) {
    const GpuTestRun killed;
    const GpuTestRun run;
    limit(killed, 700);
    limit(run, 300, true);
    OneGpu gpu;
    gpu.start(run, "launch 100", 4);
    for (int i = 0; i < 3; ++i) {
      const ProgramOutput ran =
          killed.run("timeout -s KILL 0.12 " ASSAY_GPU_PROBE " share launch " +
                         std::to_string(gpu.begin()) + " 10000 1 100 60000000",
                     gpu.settings());
      EXPECT_NE(ran.status, 0);
    }
    return note(seen, "the survivor", gpu.share_of(0, 2, 4), gpu.share_of(0, 2, 4) >= 80);
  });
}

// Work in flight may wait for the next launch: so launches wait for it, but not forever.
TEST(GpuShares, ALaunchDoesNotWaitForEverForAKernel) {
  const GpuTestRun run;
  limit(run, 300);
  OneGpu gpu;
  const ProgramOutput ran = run.probe("queued_behind_long_kernel 10", gpu.settings());
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_LT(ran.values.at("milliseconds"), 60'000);  // the kernel takes 100 s
}

TEST(GpuShares, LaunchesAreTheDriversAndMostOfThemOnlyPass) {
  const GpuTestRun run;
  limit(run, 500, true);
  for (const char* kind :
       {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel_ptsz"}) {
    OneGpu gpu;
    const ProgramOutput ran = run.probe(std::string("paced 3000 ") + kind, gpu.settings());
    ASSERT_EQ(ran.status, 0) << ran.text;
    EXPECT_EQ(ran.values.at("launches"), 3000) << kind;
    EXPECT_GT(ran.values.at("records"), 0) << kind;
    EXPECT_LT(ran.values.at("records"), 300) << kind;
  }
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls + run.total(GpuQuantity::kKernelEx).calls +
                run.total(GpuQuantity::kCooperative).calls,
            9000);
}

// A queue of 300 ms that is never empty has a mark for each millisecond. Two events for each would
// be 600; one each is about 310.
TEST(GpuShares, WhatIsSettledIsTimedNowAndThen) {
  const GpuTestRun run;
  limit(run, 500, true);
  in_one_of_several([&](std::string& seen) {
    OneGpu gpu;
    const ProgramOutput ran = run.probe("paced 300000 cuLaunchKernel", gpu.settings());
    const auto records = static_cast<double>(ran.values.at("records"));
    return note(seen, "events", records, records > 340 && records < 480);
  });
}

TEST(GpuShares, WhatIsCapturedIsLeftAlone) {
  const GpuTestRun run;
  limit(run, 300);
  OneGpu gpu;
  const ProgramOutput ran = run.probe("capture", gpu.settings());
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_EQ(run.total(GpuQuantity::kGraph), (wire::GpuTotals::Total{4, 24}));  // kernels, no events
}

TEST(GpuShares, ForkedAndThreadedProgramsCountAsBefore) {
  const GpuTestRun run;
  limit(run, 400);
  OneGpu gpu;
  EXPECT_EQ(run.probe("threads 4 2000", gpu.settings()).status, 0);
  EXPECT_EQ(run.probe("forks 2 500", gpu.settings()).status, 0);
  EXPECT_EQ(run.total(GpuQuantity::kKernel).calls, 9505);
}

// Without events, without a file of turns, with a file of another user: launches are made, and a
// cap holds approximately.
TEST(GpuShares, InDoubtLaunchesAreMade) {
  in_one_of_several([&](std::string& seen) {
    const GpuTestRun runs[3];
    std::vector<OneGpu> gpus(3);
    for (const GpuTestRun& run : runs) limit(run, 300);
    const std::string log = runs[0].file("log");
    FILE* other = std::fopen(gpus[2].turns_file().c_str(), "w");
    for (int i = 0; i < 3'000'000; ++i) std::fputc('x', other);
    std::fclose(other);
    gpus[0].start(runs[0], "launch 200", 2, "FAKECUDA_NO_EVENTS=1 ASSAY_GPU_LOG=" + log);
    gpus[1].start(runs[1], "launch 200", 2, "ASSAY_GPU_TURNS=/nowhere/turns");
    gpus[2].start(runs[2], "launch 200", 2);
    bool good = true;
    for (OneGpu& gpu : gpus) {
      EXPECT_LE(gpu.share_of(0, 0, 2), 38);
      good = note(seen, "share", gpu.share_of(0, 0, 2), gpu.share_of(0, 0, 2) >= 20) && good;
    }
    EXPECT_NE(GpuTestRun::run_as("cat " + log).text.find("by estimates alone"), std::string::npos);
    return good;
  });
}

}  // namespace
}  // namespace assay::gpu
