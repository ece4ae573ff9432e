// Shares of programs with different kinds of work, in simulated time (testing/simulation.h): every
// second within three points of the share, and at most four percent lost in total.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "observe/shim/gpu/testing/simulation.h"

namespace assay::gpu {
namespace {

using testing::Body;
using testing::Program;
using testing::Simulated;
using testing::SimulatedCosts;

constexpr int kWindows = 2;
constexpr double kErrorBar = 3.0;
constexpr double kLostBar = 4.0;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Part {
  Body body;
  double share;  // percent
};

void expect_shares(const std::vector<Part>& parts, const SimulatedCosts& costs = {}) {
  std::vector<Simulated> programs;
  for (const Part& part : parts) {
    programs.push_back({part.body, static_cast<std::uint32_t>(part.share * 10)});
  }
  const auto done = testing::simulate(programs, kWindows, costs);
  double sum = 0;
  double promised = 0;
  std::string seen;
  double worst = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double alone = mean(testing::simulate({{parts[i].body}}, 1, costs)[0]);
    for (const double work : done[i]) {
      const double share = 100 * work / alone;
      char text[32];
      std::snprintf(text, sizeof text, " %.1f", share);
      seen += text;
      if (std::abs(share - parts[i].share) > std::abs(worst)) worst = share - parts[i].share;
      sum += share / kWindows;
    }
    seen += " of " + std::to_string(static_cast<int>(parts[i].share)) + ";";
    promised += parts[i].share;
  }
  const double lost = 100 * (1 - sum / promised);
  if (std::getenv("ASSAY_SHOW_SHARES") != nullptr) {
    std::printf("%s worst %.1f lost %.1f %%\n", seen.c_str(), worst, lost);
  }
  EXPECT_LE(std::abs(worst), kErrorBar) << seen;
  EXPECT_LE(lost, kLostBar) << seen;
}

constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20U;

Body kernels(std::uint64_t ns) {
  return [=](Program& program) { program.kernel(1, ns); };
}
Body copies(CopyKind kind, std::uint64_t bytes) {
  return [=](Program& program) { program.copy(kind, bytes); };
}
// The host needs longer for a launch than the device for the kernel.
Body host_bound(std::uint64_t ns, std::uint64_t host_ns) {
  return [=](Program& program) {
    program.kernel(1, ns);
    program.compute(host_ns);
  };
}
// Bursts of small kernels, each synchronized, as in a program with a small model.
Body bursts(int number, std::uint64_t ns, std::uint64_t host_ns) {
  return [=](Program& program) {
    for (int i = 0; i < number; ++i) {
      program.kernel(static_cast<std::uint64_t>(i % 7), ns);
      program.compute(host_ns);
    }
    program.synchronize();
  };
}

TEST(GpuMixtures, AloneAtThirty) {
  expect_shares({{kernels(100 * kUs), 30}});
  expect_shares({{kernels(5 * kUs), 30}});
  expect_shares({{copies(CopyKind::kOnDevice, 64 * kMebibyte), 30}});
  expect_shares({{copies(CopyKind::kSet, 64 * kMebibyte), 30}});
  expect_shares({{copies(CopyKind::kToDevice, 4 * kMebibyte), 30}});
}
TEST(GpuMixtures, CopiesOnTheDeviceBesideKernels) {
  expect_shares({{copies(CopyKind::kOnDevice, 64 * kMebibyte), 50}, {kernels(1400 * kUs), 50}});
  expect_shares({{copies(CopyKind::kOnDevice, 1024 * kMebibyte), 70}, {kernels(200 * kUs), 30}});
  expect_shares({{copies(CopyKind::kSet, kMebibyte), 30}, {kernels(200 * kUs), 70}});
}
TEST(GpuMixtures, CopiesOverTheBusBesideKernels) {
  expect_shares({{copies(CopyKind::kToDevice, 4 * kMebibyte), 50}, {kernels(200 * kUs), 50}});
  expect_shares({{copies(CopyKind::kToHost, 16 * kMebibyte), 30},
                 {copies(CopyKind::kOnDevice, 64 * kMebibyte), 70}});
}
TEST(GpuMixtures, KernelsCopiesAndMemsetsInTurnBesideGraphs) {
  const Body mixed = [](Program& program) {
    program.kernel(1, 64 * kUs);
    program.copy(CopyKind::kOnDevice, 64 * kMebibyte);
    program.copy(CopyKind::kSet, 64 * kMebibyte);
  };
  const Body graphs = [](Program& program) { program.graph(3, 800 * kUs); };
  const Body small_graphs = [](Program& program) { program.graph(3, 12 * kUs); };
  expect_shares({{mixed, 40}, {graphs, 60}});
  expect_shares({{mixed, 60}, {small_graphs, 40}});
}
TEST(GpuMixtures, ManySmallKernelsBesideLargeOnes) {
  expect_shares({{kernels(5 * kUs), 70}, {kernels(1400 * kUs), 30}});
  expect_shares({{kernels(2500), 70}, {kernels(2 * kMs), 30}});
  expect_shares({{kernels(5 * kUs), 70}, {kernels(13 * kMs), 30}});
  expect_shares({{kernels(5 * kUs), 30}, {kernels(5 * kUs), 70}});
}
TEST(GpuMixtures, HostBoundSmallKernelsBesideLargeOnes) {
  expect_shares({{host_bound(3 * kUs, 5 * kUs), 70}, {kernels(1400 * kUs), 30}});
  expect_shares({{host_bound(2 * kUs, 15 * kUs), 70}, {kernels(1400 * kUs), 30}});
  expect_shares({{host_bound(2 * kUs, 15 * kUs), 30}, {kernels(1400 * kUs), 70}});
  expect_shares({{host_bound(3 * kUs, 5 * kUs), 70}, {kernels(13 * kMs), 30}});
}
// Launches as from an interpreter: different functions, with varying and sometimes long gaps.
Body interpreted() {
  auto state = std::make_shared<std::uint64_t>(1);
  return [state](Program& program) {
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t random = *state >> 33U;
    program.kernel(random % 11, (2 + random % 5) * kUs);
    program.compute((4 + random / 16 % 20) * kUs);
    if (random % 997 == 0) program.compute(300 * kUs);
    if (random % 20011 == 0) program.compute(4 * kMs);
  };
}
TEST(GpuMixtures, AnInterpreterBesideLargeKernels) {
  expect_shares({{interpreted(), 70}, {kernels(1400 * kUs), 30}});
  expect_shares({{interpreted(), 50}, {copies(CopyKind::kOnDevice, 64 * kMebibyte), 50}});
  expect_shares({{interpreted(), 30}, {kernels(5 * kUs), 70}});
  expect_shares({{interpreted(), 50}, {interpreted(), 50}});
}
TEST(GpuMixtures, BurstsOfSmallKernelsBesideLargeOnes) {
  expect_shares({{bursts(100, 3 * kUs, 5 * kUs), 70}, {kernels(1400 * kUs), 30}});
  expect_shares({{bursts(400, 5 * kUs, 0), 70}, {kernels(1400 * kUs), 30}});
}

// Programs that never call a function that waits: they ask for an event, again and again. Their
// work takes longer at first, when the GPU's clocks are low.
Body polled(int number, std::uint64_t ns) {
  auto launched = std::make_shared<std::uint64_t>(0);
  return [=](Program& program) {
    for (int i = 0; i < number; ++i) {
      constexpr std::uint64_t kSlow = 12;
      program.kernel(1, ++*launched < kSlow ? ns * 3 / 2 : ns, false);
    }
    program.poll();
  };
}
TEST(GpuMixtures, PolledAloneAndBesideKernels) {
  for (const int number : {1, 2, 4, 10}) {
    expect_shares({{polled(number, 254 * kUs), 30}});
    expect_shares({{polled(number, 254 * kUs), 30}, {kernels(1400 * kUs), 70}});
    expect_shares({{polled(5 * number, 50 * kUs), 30}});
    expect_shares({{polled(number, 20 * kUs), 30}, {kernels(1400 * kUs), 70}});
  }
}

// A machine that is slow to wake threads and to query events.
TEST(GpuMixtures, OnASlowHost) {
  const SimulatedCosts slow = {
      .record_ns = 3'000, .query_ns = 1'000, .late_ns = 150'000, .wake_ns = 120'000};
  expect_shares({{host_bound(2 * kUs, 15 * kUs), 70}, {kernels(1400 * kUs), 30}}, slow);
  expect_shares({{kernels(2500), 70}, {kernels(2 * kMs), 30}}, slow);
  expect_shares({{kernels(5 * kUs), 30}, {kernels(5 * kUs), 70}}, slow);
  expect_shares({{interpreted(), 30}, {copies(CopyKind::kOnDevice, 64 * kMebibyte), 70}}, slow);
}

}  // namespace
}  // namespace assay::gpu
