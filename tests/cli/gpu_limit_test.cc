// GPU limits from the command line: limits reach the run's region, bad ones start nothing, running
// runs are changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/gpu_runs.h"

namespace assay {
namespace {

using base::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;

using GpuLimit = GpuShareTest;

TEST_F(GpuLimit, LimitsReachTheRegionBeforeTheCommandStarts) {
  start(
      "$ASSAY run --gpu-memory 512MiB --gpu-compute 30% --priority low --gpu-borrow"
      " --gpu 1=memory:64MiB,compute:12.5%,priority:high,borrow:no",
      "launch 1 wait go");
  check_region([&](const wire::GpuRegion& region) {
    const wire::GpuDevice* second = device(region, 1);
    ASSERT_NE(second, nullptr);  // known by its UUID, though no process has touched it
    EXPECT_EQ(wire::byte_limit(region, *second), 64 * kMi);
    EXPECT_EQ(second->total.load(), 1024 * kMi);
    const wire::GpuShare own = wire::share_of(region, *second);
    EXPECT_EQ(own.thousandths, 125U);
    EXPECT_EQ(own.priority, wire::GpuPriority::kHigh);
    EXPECT_FALSE(own.borrow);
    const wire::GpuDevice other{};
    EXPECT_EQ(wire::byte_limit(region, other), 512 * kMi);
    const wire::GpuShare rest = wire::share_of(region, other);
    EXPECT_EQ(rest.thousandths, 300U);
    EXPECT_EQ(rest.priority, wire::GpuPriority::kLow);
    EXPECT_TRUE(rest.borrow);
  });
  finish();
  EXPECT_EQ(text_of("rc"), "0\n");
  // They are kept with the run.
  const Json shares = json("show last")["gpu"]["shares"];
  ASSERT_GE(shares.size(), 2U);
  EXPECT_TRUE(shares[0]["device"].is_null());
  EXPECT_EQ(shares[0]["memory_bytes"], 512 * kMi);
  EXPECT_EQ(shares[0]["share_thousandths"], 300);
  EXPECT_EQ(shares.back()["device"], kSecondGpu);
  EXPECT_EQ(shares.back()["memory_bytes"], 64 * kMi);
  EXPECT_EQ(shares.back()["priority"], "high");
  EXPECT_THAT(shell("$ASSAY show").out,
              AllOf(HasSubstr("GPU limits"), HasSubstr("busy"), HasSubstr("12.5%")));
}

TEST_F(GpuLimit, DevicesAreCountedAsCudaDoes) {
  start(
      "CUDA_VISIBLE_DEVICES=1,0 $ASSAY run --gpu 0=memory:1MiB --gpu GPU-a0a0a0a0-a0a0-a0a0-"
      "a0a0-a0a0a0a0a000=memory:2MiB",
      "wait go");
  const auto check = [&](std::uint64_t first, std::uint64_t second) {
    check_region([&](const wire::GpuRegion& region) {
      EXPECT_EQ(wire::byte_limit(region, *device(region, 0)), first * kMi);
      EXPECT_EQ(wire::byte_limit(region, *device(region, 1)), second * kMi);
    });
  };
  check(2, 1);
  // `limit` counts as the run does, not as its own environment would.
  json("limit last --gpu 0=memory:3MiB");
  check(2, 3);
}

TEST_F(GpuLimit, BadLimitsStartNothing) {
  const std::string cases[][3] = {
      {"", "--gpu-memory 0", "run --gpu-memory: "},
      {"", "--gpu-memory=-1GiB", "is negative"},
      {"", "--gpu-memory 20apples", "unknown unit 'apples'"},
      {"", "--gpu-memory ''", "it is empty"},
      {"", "--gpu-memory 2GiB", "more than GPU 0 (Fake GPU) has, which is 1.00 GiB"},
      {"", "--gpu-compute 101%", "more than the whole GPU"},
      {"", "--gpu-compute 0%", "run --gpu-compute: "},
      {"", "--gpu-compute 30x", "does not end with %"},
      {"", "--gpu-compute 0.3", "may be a fraction or a percentage"},
      {"", "--gpu 2=memory:1MiB", "there is no GPU 2; the command will see 2, 0 to 1"},
      {"", "--gpu GPU-77=memory:1MiB", "there is no GPU 'GPU-77'"},
      {"", "--gpu GPU-a0a0=memory:1MiB", "a prefix of 2 UUIDs"},
      {"", "--gpu 0", "does not name a GPU and its limits"},
      {"", "--gpu 0=cores:3", "unknown limit 'cores'"},
      {"", "--gpu 0=memory:1MiB --gpu 0=compute:3%", "named twice"},
      {"", "--gpu-borrow", "there is no share to exceed"},
      {"", "--priority urgent", "is not a priority"},
      {"CUDA_VISIBLE_DEVICES=1", "--gpu 1=memory:1MiB", "the command will see one, 0"},
      {"CUDA_VISIBLE_DEVICES=", "--gpu-memory 1MiB", "CUDA_VISIBLE_DEVICES hides every GPU"},
      {"ASSAY_GPU=0", "--gpu-memory 1MiB", "cannot be enforced with ASSAY_GPU=0"},
      {"ASSAY_GPU=1 LD_LIBRARY_PATH=", "--gpu 0=memory:1MiB", "give its whole UUID"},
  };
  for (const auto& [environment, options, says] : cases) {
    const auto ran = shell(environment + " $ASSAY run " + options + " -- touch started");
    EXPECT_EQ(ran.exit_code, 64) << options << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(says)) << environment << " " << options;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(project_.path() / "started")) << options;
  }
  EXPECT_FALSE(std::filesystem::exists(project_.path() / ".assay"));
}

TEST_F(GpuLimit, WithoutAGpuTheExitCodeIsThree) {
  for (const std::string environment : {"LD_LIBRARY_PATH=", "FAKECUDA_DEVICES=0"}) {
    const auto ran = shell(environment + " $ASSAY run --gpu-memory 1MiB -- touch started");
    EXPECT_EQ(ran.exit_code, 3) << environment;
    EXPECT_THAT(ran.err, environment.starts_with("LD")
                             ? HasSubstr("cannot be checked: no NVIDIA driver here "
                                         "(libnvidia-ml.so.1 not found)")
                             : HasSubstr("there is no GPU to limit"));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(project_.path() / "started"));
  }
}

TEST_F(GpuLimit, IfLimitsCannotBeEnforcedNothingRuns) {
  const auto promised =
      shell("LD_LIBRARY_PATH= ASSAY_GPU=1 $ASSAY run --gpu-memory 5TiB -- touch promised");
  EXPECT_EQ(promised.exit_code, 0) << promised.err;  // ASSAY_GPU=1 asserts that there is a driver
  EXPECT_EQ(json("show last")["gpu"]["shares"][0]["memory_bytes"], 5 * kMi * kMi);
  shell("rm -rf .assay; touch .assay");
  const auto ran = shell("$ASSAY run --gpu-memory 1MiB -- touch started");
  EXPECT_EQ(ran.exit_code, 3) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("not run, because GPU limits could not be enforced"));
  EXPECT_FALSE(std::filesystem::exists(project_.path() / "started"));
  EXPECT_EQ(shell("$ASSAY run -- touch started").exit_code, 0);
}

TEST_F(GpuLimit, AStageRunAgainHasItsLimits) {
  ASSERT_EQ(shell("$ASSAY run --gpu-memory 7MiB --priority high -- cp state copy").exit_code, 1);
  ASSERT_EQ(
      shell("echo x > in; $ASSAY run --gpu-memory 7MiB --gpu-compute 5% -- cp in copy").exit_code,
      0);
  ASSERT_EQ(shell("$ASSAY run @1 --gpu-compute 6%").exit_code, 0);
  const Json share = json("show last")["gpu"]["shares"][0];
  EXPECT_EQ(share["memory_bytes"], 7 * kMi);
  EXPECT_EQ(share["share_thousandths"], 60);
}

TEST_F(GpuLimit, ARunningRunIsChanged) {
  start("$ASSAY run --name train --gpu-memory 512MiB", "launch 3 alloc 4194304 wait go");
  std::uint64_t generation = 0;
  check_region(
      [&](const wire::GpuRegion& region) { generation = region.header.generation.load(); });
  const Json limits = json("limit train");
  EXPECT_EQ(limits["launches"], 3);
  EXPECT_EQ(limits["devices"][0]["uuid"], kFirstGpu);
  EXPECT_EQ(limits["devices"][0]["memory_limit_bytes"], 512 * kMi);
  EXPECT_GE(limits["devices"][0]["memory_used_bytes"].get<std::uint64_t>(), 4 * kMi);
  EXPECT_EQ(limits["others"]["memory_limit_bytes"], 512 * kMi);

  const auto less = shell("$ASSAY limit last --gpu-memory 1MiB --gpu-compute 40% --priority high");
  EXPECT_EQ(less.exit_code, 0) << less.err;
  EXPECT_THAT(less.out, AllOf(HasSubstr("1.00 MiB"), HasSubstr("40%"), HasSubstr("high"),
                              HasSubstr("Nothing is taken away")));
  check_region([&](const wire::GpuRegion& region) {
    EXPECT_GT(region.header.generation.load(), generation);
    EXPECT_EQ(wire::byte_limit(region, *device(region, 0)), kMi);
    EXPECT_EQ(wire::share_of(region, *device(region, 0)).thousandths, 400U);
  });
  for (const char* bad : {"--gpu-memory 0", "--gpu-memory 2GiB", "--gpu 7=memory:1MiB",
                          "--gpu-compute 0%", "--gpu-borrow --gpu-no-borrow"}) {
    EXPECT_EQ(shell(std::string("$ASSAY limit 1 ") + bad).exit_code, 64) << bad;
  }
  const std::string uid = limits["uid"];
  json("limit " + uid.substr(0, 6) + " --gpu-compute none --gpu-borrow");
  json("limit train --gpu-no-borrow");
  check_region([&](const wire::GpuRegion& region) {
    EXPECT_EQ(wire::byte_limit(region, *device(region, 0)), kMi);  // as it was
    EXPECT_EQ(wire::share_of(region, *device(region, 0)).thousandths, wire::kGpuWholeShare);
    EXPECT_FALSE(wire::share_of(region, *device(region, 0)).borrow);
  });
  // From another project, by its uid; GPU indices are unknown there.
  const auto far = shell("mkdir -p far && cd far && $ASSAY init >/dev/null && $ASSAY limit " + uid +
                         " --gpu-memory 9MiB && $ASSAY limit " + uid + " --gpu 0=memory:1MiB");
  EXPECT_EQ(far.exit_code, 64) << far.err;
  EXPECT_THAT(far.err, HasSubstr("run of another project"));
  check_region([&](const wire::GpuRegion& region) {
    EXPECT_EQ(wire::byte_limit(region, *device(region, 0)), 9 * kMi);
  });
  json("limit last --none");
  check_region([&](const wire::GpuRegion& region) {
    EXPECT_EQ(wire::byte_limit(region, *device(region, 0)), 0U);
    EXPECT_FALSE(wire::share_of(region, *device(region, 0)).limited());
  });
  finish();
  const auto over = shell("$ASSAY limit train --gpu-memory 1MiB");
  EXPECT_EQ(over.exit_code, 64);
  EXPECT_THAT(over.err, HasSubstr("it is not running (done)"));
  EXPECT_EQ(shell("$ASSAY limit nobody").exit_code, 64);
}

TEST_F(GpuLimit, ARunWithoutGpusHasNothingToLimit) {
  shell(
      "mkfifo go; (ASSAY_GPU=0 $ASSAY run -- sh -c 'echo ready; read x < go' > out 2> err;"
      " echo $? > rc) > /dev/null 2>&1 &");
  ASSERT_TRUE(appears("out", "ready"));
  running_ = true;
  const auto limits = shell("$ASSAY limit last --gpu-memory 1MiB");
  EXPECT_EQ(limits.exit_code, 3);
  EXPECT_THAT(limits.err, HasSubstr("its GPU work is not counted"));
}

}  // namespace
}  // namespace assay
