// Programs that restrict themselves with seccomp and are killed for any other call: the shim must
// not make such a call in their processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chaos/project.h"

namespace assay::chaos {
namespace {

using ::testing::Contains;

class Sandbox : public WithTracer {
 protected:
  void expect_unharmed(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {CHAOS_PROGRAMS "/sandboxed"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    Project project;
    const auto bare = support::run({command, "", project.path()});
    ASSERT_EQ(bare.out, "finished\n") << "even by itself: " << bare.exit_code << bare.err;
    ASSERT_EQ(project.bash("rm *.moved").exit_code, 0);
    command.insert(command.begin(), {support::program(), "run", "--tracer", GetParam(), "--"});
    const auto watched = support::run({command, "", project.path()});
    EXPECT_EQ(watched.exit_code, 0);
    EXPECT_EQ(watched.out, bare.out);
    EXPECT_EQ(watched.err, bare.err);
    // And everything was recorded.
    const base::Json shown = project.finished_run();
    ASSERT_TRUE(shown.is_object());
    EXPECT_TRUE(shown["run"]["complete"].get<bool>()) << shown["missed"];
    std::vector<std::string> outputs;
    for (const base::Json& output : shown["outputs"]) {
      outputs.push_back(std::filesystem::path(output["path"].get<std::string>()).filename());
    }
    EXPECT_THAT(outputs, Contains("self.moved"));
    EXPECT_THAT(outputs, Contains(arguments.size() > 1 ? "inner.moved" : "child.moved"));
  }
};

TEST_P(Sandbox, OnlyWhatTheProgramDoesIsDone) {
  for (const std::string how : {"prctl", "seccomp", "raw", "thread"}) {
    SCOPED_TRACE(how);
    expect_unharmed({how});
  }
}

TEST_P(Sandbox, AProgramStartedInsideIsInItToo) {
  expect_unharmed({"prctl", "exec"});
}

INSTANTIATE_TEST_SUITE_P(Chaos, Sandbox, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace assay::chaos
