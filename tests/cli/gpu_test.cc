// GPU work from the command line: counted by `assay run`, kept in the store, shown by `assay show`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

using base::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class GpuCli : public ::testing::Test {
 protected:
  support::ProcessResult shell(const std::string& script) {
    return support::run({{"sh", "-c",
                          "ASSAY='" + support::program() +
                              "'; PROBE='" ASSAY_GPU_PROBE "'; export "
                              "LD_LIBRARY_PATH=" ASSAY_FAKECUDA "; " +
                              script},
                         "",
                         project_.path()});
  }
  Json run() { return Json::parse(shell("$ASSAY show last --json 2>/dev/null").out); }
  static Json use(const Json& run, const std::string& quantity) {
    for (const Json& row : run["gpu"]["use"]) {
      if (row["quantity"] == quantity) return {row["calls"], row["amount"]};
    }
    return nullptr;
  }

  base::testing::TempDir project_;
};

TEST_F(GpuCli, LaunchesOfAllProcessesAreInTheStore) {
  const auto ran =
      shell("$ASSAY run -- sh -c \"$PROBE threads 3 1000; $PROBE forks 2 50; $PROBE graphs 4\"");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Json recorded = run();
  EXPECT_EQ(use(recorded, "kernels"), (Json{3000 + 5 + 3 * 50, 0}));
  EXPECT_EQ(use(recorded, "graphs"), (Json{4, 24}));
  EXPECT_EQ(use(recorded, "graph_kernels"), (Json{20, 0}));
  EXPECT_TRUE(recorded["run"]["complete"].get<bool>()) << recorded["missed"];
  EXPECT_THAT(shell("$ASSAY show").out, AllOf(HasSubstr("kernels"), HasSubstr("24 nodes")));
}

// What we ourselves bring along is no input of the run, and nothing of it is gone afterwards.
TEST_F(GpuCli, OurOwnFilesAreNotInTheLineage) {
  for (const char* limits : {"", "--gpu-compute 50% --gpu-memory 100MiB"}) {
    const auto ran = shell(std::string("$ASSAY run ") + limits + " -- $PROBE threads 2 1000");
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const Json recorded = run();
    EXPECT_THAT(recorded["inputs"].dump(), Not(HasSubstr("assay-gpu"))) << limits;
    EXPECT_THAT(recorded["outputs"].dump(), Not(HasSubstr("assay-gpu"))) << limits;
    EXPECT_EQ(shell("$ASSAY status").exit_code, 0) << shell("$ASSAY status").out;
  }
}

TEST_F(GpuCli, MatmulsAndTheirFlopsAreInTheStore) {
  const auto ran = shell(
      "$ASSAY run -- sh -c \"$PROBE matmuls 12,13 50 1; $PROBE matmuls 13 41 2"
      " capture\"");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::int64_t asked[2] = {};  // as printed by the two programs
  std::istringstream lines(ran.out);
  std::string name;
  std::int64_t number = 0;
  for (int program = 0; lines >> name >> number;) {
    if (name == "mflops") asked[program++] = number;
  }
  EXPECT_GT(asked[0], 0);
  const Json recorded = run();
  EXPECT_EQ(use(recorded, "matmuls"), (Json{100 + 41, asked[0]}));
  EXPECT_EQ(use(recorded, "captured_matmuls"), (Json{41, asked[1]}));
  EXPECT_THAT(shell("$ASSAY show").out, AllOf(HasSubstr("captured matmuls"), HasSubstr("GFLOP")));
}

TEST_F(GpuCli, CollectivesAndMemoryAreInTheStore) {
  const auto ran = shell("$ASSAY run -- sh -c \"$PROBE nccl; $PROBE many_blocks 2\"");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Json recorded = run();
  std::int64_t bytes = 0;
  for (const Json& row : recorded["gpu"]["collectives"]) {
    if (row["operation"] == "all-reduce" && row["type"] == "float32") {
      EXPECT_EQ(row["ranks"], 8);
      bytes += row["bytes"].get<std::int64_t>();
    }
  }
  EXPECT_EQ(bytes, 20000);
  EXPECT_EQ(recorded["gpu"]["memory"][0]["device"], "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a000");
  EXPECT_THAT(shell("$ASSAY show").out, AllOf(HasSubstr("all-reduce"), HasSubstr("float32")));
}

TEST_F(GpuCli, WhatAKilledProcessCountedIsInTheStore) {
  shell("$ASSAY run -- $PROBE until_killed 77");
  EXPECT_EQ(use(run(), "kernels"), (Json{77, 0}));
}

// The next command finds the region and finishes the run.
TEST_F(GpuCli, WhatWasCountedWhenTheCollectorWasKilledIsInTheStore) {
  const auto ran = shell("$ASSAY run -- sh -c \"$PROBE threads 1 55; kill -9 \\$PPID; sleep 0.3\"");
  const Json recorded = run();
  EXPECT_EQ(recorded["run"]["status"], "interrupted") << ran.err;
  EXPECT_EQ(use(recorded, "kernels"), (Json{55, 0}));
}

TEST_F(GpuCli, EveryTracerCounts) {
  const auto ran = shell("$ASSAY run --tracer ptrace -- $PROBE threads 1 9");
  if (ran.exit_code != 0) GTEST_SKIP() << ran.err;
  EXPECT_EQ(use(run(), "kernels"), (Json{9, 0}));
}

TEST_F(GpuCli, WithoutGpusNothingIsLoadedOrShown) {
  const auto off = shell("ASSAY_GPU=0 $ASSAY run -- sh -c 'echo $LD_PRELOAD'");
  EXPECT_THAT(off.out, Not(HasSubstr("libassay-gpu")));
  EXPECT_EQ(run()["gpu"]["use"].size(), 0U);
  EXPECT_THAT(shell("$ASSAY show").out, Not(HasSubstr("GPU work")));
  const auto on =
      shell("ASSAY_GPU=1 $ASSAY run -- sh -c 'echo $LD_PRELOAD; echo $ASSAY_GPU_REGION'");
  EXPECT_THAT(on.out, AllOf(HasSubstr("libassay-gpu"), HasSubstr("assay-gpu-")));
}

TEST_F(GpuCli, NoRegionIsLeftBehind) {
  const auto ran = shell("$ASSAY run -- sh -c 'echo $ASSAY_GPU_REGION'");
  const std::string region = ran.out.substr(0, ran.out.find('\n'));
  EXPECT_FALSE(region.empty());
  EXPECT_FALSE(std::filesystem::exists(region)) << region;
}

}  // namespace
}  // namespace assay
