// A program does the same with the shim and without: results, errno, descriptors, flags, files.
#include <sys/wait.h>

#include <algorithm>

#include "observe/shim/testing/workspace.h"

namespace assay::shim::testing {
namespace {

constexpr uid_t kNobody = 65534;

struct Setting {
  std::string scenario;
  uid_t user;
};

class Same : public ::testing::TestWithParam<Setting> {
 protected:
  ShimWorkspace workspace_;
};

TEST_P(Same, WithTheShimAndWithout) {
  const auto& [scenario, user] = GetParam();
  if (user != 0 && geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Command bare = workspace_.probe({scenario});
  bare.user = user;
  const ShimRunResult expected = run(bare);
  ASSERT_EQ(expected.wait_status, 0) << expected.output;
  ASSERT_FALSE(expected.output.empty());

  const auto log = workspace_.new_log();
  Command traced = workspace_.traced_probe(*log, {scenario});
  traced.user = user;
  const ShimRunResult under_shim = run(traced);
  EXPECT_EQ(under_shim.wait_status, 0);
  EXPECT_EQ(under_shim.output, expected.output);
  EXPECT_EQ(log->header().shims, 1U) << "the shim was not at work";
  EXPECT_EQ(log->header().dropped, 0U);
  const auto records = log->records();
  // What it asks about afterwards is not there.
  const bool opened = std::any_of(records.begin(), records.end(), [](const auto& record) {
    return record.op != wire::RecordOp::kAbsent;
  });
  EXPECT_EQ(opened, scenario != "cancelled");

  // Without space in the log all is left to the gate, which changes nothing either.
  const auto full = workspace_.new_log(0);
  Command crowded = workspace_.traced_probe(*full, {scenario});
  crowded.user = user;
  EXPECT_EQ(run(crowded).output, expected.output);
  EXPECT_TRUE(full->records().empty());
}

INSTANTIATE_TEST_SUITE_P(All, Same,
                         ::testing::Values(Setting{"open", 0}, Setting{"open", kNobody},
                                           Setting{"fopen", 0}, Setting{"fopen", kNobody},
                                           Setting{"cancelled", 0}, Setting{"descriptors", 0}),
                         [](const auto& setting) {
                           return setting.param.scenario +
                                  (setting.param.user == 0 ? "" : "AsNobody");
                         });

TEST(Shim, WithoutAUsableLogItDoesNothing) {
  ShimWorkspace workspace;
  const ShimRunResult expected = run(workspace.probe({"fopen"}));
  const std::string garbage = workspace.path("../garbage");
  std::ofstream(garbage) << std::string(8192, 'x');
  for (const std::string& log : {std::string("relative"), workspace.path("missing log"), garbage,
                                 workspace.path("folder"), std::string()}) {
    Command command = workspace.probe({"fopen"});
    command.environment = {"LD_PRELOAD=" + workspace.shim(),
                           std::string(wire::kLogVariable) + "=" + log};
    EXPECT_EQ(run(command).output, expected.output) << log;
  }
}

TEST(Shim, AWrongLogVersionIsLeftAlone) {
  ShimWorkspace workspace;
  const auto log = workspace.new_log();
  log->header().version = 2;
  const ShimRunResult outcome = run(workspace.traced_probe(*log, {"repeated", "3"}));
  EXPECT_EQ(outcome.wait_status, 0);
  EXPECT_EQ(log->header().shims, 0U);
  EXPECT_TRUE(log->records().empty());
}

TEST(Shim, WhereTheRootIsAnotherItDoesNothing) {
  ShimWorkspace workspace;
  const auto log = workspace.new_log();
  log->header().root_inode = 1;
  log->header().root_mount = 1;
  EXPECT_EQ(run(workspace.traced_probe(*log, {"repeated", "3"})).wait_status, 0);
  EXPECT_EQ(log->header().shims, 0U);
}

// Without a collector at the gate the kernel returns ENOSYS. The program must not notice.
TEST(Shim, AProgramOutlivesTheCollector) {
  ShimWorkspace workspace;
  const ShimRunResult expected = run(workspace.probe({"deserted"}));
  const auto log = workspace.new_log();
  Command command = workspace.traced_probe(*log, {"deserted"});
  command.before = [](const StoppedCall& stop) { return stop.path != "folder/file"; };
  const ShimRunResult outcome = run(command);
  EXPECT_EQ(outcome.output, expected.output);
  EXPECT_EQ(log->header().dropped, 3U) << "three opens that could not be recorded";
  std::vector<std::string> seen;
  for (const LoggedEvent& record : log->records()) seen.push_back(record.path);
  EXPECT_EQ(seen, (std::vector{workspace.path("made"), workspace.path("file")}));
}

}  // namespace
}  // namespace assay::shim::testing
