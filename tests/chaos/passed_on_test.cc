// Inherited descriptors besides the standard streams: some are meant for the command, some were
// left open by an editor, a CI runner, a script. How the files behind them are recorded, and that
// runs are not marked incomplete without need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "chaos/project.h"

namespace assay::chaos {
namespace {

using base::Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PassedOn : public WithTracer {
 protected:
  PassedOn() { std::ofstream(project_.path() / "ci.log") << "begun\n"; }

  // The outputs of `run` in a script, as "NAME status", when the run is over.
  std::vector<std::string> outputs(const std::string& script) {
    const auto outcome =
        project_.bash("run() { \"$A\" run --tracer " + GetParam() + " -- \"$@\"; }\n" + script);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    run_ = project_.finished_run();
    EXPECT_EQ(run_["run"]["complete"], true) << run_["missed"];
    EXPECT_THAT(run_["missed"], IsEmpty());
    std::vector<std::string> found;
    for (const Json& output : run_["outputs"]) {
      const std::filesystem::path path = output["path"].get<std::string>();
      found.push_back(path.filename().string() + " " + output["status"].get<std::string>());
    }
    return found;
  }
  // The rule that left the log out.
  std::string log_left_out() {
    for (const Json& rule : run_["rules"]) {
      for (const Json& path : rule["paths"]) {
        if (path == (project_.path() / "ci.log").string()) return rule["name"];
      }
    }
    return "";
  }

  Project project_;
  Json run_;
};

TEST_P(PassedOn, ALogThatIsNotWrittenToIsNoOutput) {
  EXPECT_THAT(outputs("exec 9>>ci.log; run cp in.txt out.txt"), ElementsAre("out.txt created"));
  EXPECT_EQ(log_left_out(), "unchanged");
}

TEST_P(PassedOn, ALogThatItsOwnerGoesOnWritingIsNotTheRuns) {
  EXPECT_THAT(outputs("exec 9>>ci.log\n"
                      "(while sleep 0.01; do echo tick >&9; done) & writer=$!\n"
                      "run sh -c 'size=$(stat -c %s ci.log); cp in.txt out.txt;"
                      "  while test $(stat -c %s ci.log) = $size; do sleep 0.01; done'\n"
                      "code=$?; kill $writer; exit $code"),
              ElementsAre("out.txt created"));
  EXPECT_EQ(log_left_out(), "shared");
}

TEST_P(PassedOn, WhatTheCommandWritesIsItsOutputThoughTheShellHasItOpen) {
  EXPECT_THAT(outputs("exec 9>>ci.log; echo started >&9; run sh -c 'cat in.txt >&9'"),
              ElementsAre("ci.log modified"));
  EXPECT_THAT(outputs("run sh -c 'cat in.txt >&9' 9>new.txt"), ElementsAre("new.txt created"));
}

TEST_P(PassedOn, WhatTheShellWroteJustBeforeIsNotTheRuns) {
  EXPECT_THAT(outputs("exec 9>>ci.log; echo started >&9; run cp in.txt out.txt"),
              ElementsAre("out.txt created"));
}

INSTANTIATE_TEST_SUITE_P(Chaos, PassedOn, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace assay::chaos
