// Other libraries between a program and the C library: they must have the same effect as without
// Assay, and the calls that they finally make are recorded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chaos/project.h"

namespace assay::chaos {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;

class Neighbours : public WithTracer {
 protected:
  void SetUp() override {
    WithTracer::SetUp();
    ASSERT_EQ(project_
                  .bash("echo false > a; echo real > a.real; echo false > conf; "
                        "echo right > conf.real")
                  .exit_code,
              0);
  }
  // `text` with $RUN as `assay run` and as nothing: the same must come out.
  void expect_the_same(const std::string& text) {
    const auto bare = project_.bash("RUN=\n" + text);
    EXPECT_EQ(bare.exit_code, 0) << bare.err;
    EXPECT_EQ(bare.out, "real\nreal\nright\n") << "the library does not work";
    // A sanitized build requires its runtime to be loaded first.
    const auto watched =
        project_.bash("export ASAN_OPTIONS=verify_asan_link_order=0 RUN=\"$A run --tracer " +
                      GetParam() + " --\"\n" + text);
    EXPECT_EQ(watched.exit_code, bare.exit_code);
    EXPECT_EQ(watched.out, bare.out);
    EXPECT_EQ(watched.err, bare.err);
    const base::Json shown = project_.finished_run();
    EXPECT_TRUE(shown["run"]["complete"].get<bool>());
    std::vector<std::string> inputs;
    for (const base::Json& input : shown["inputs"]) {
      inputs.push_back(std::filesystem::path(input["path"].get<std::string>()).filename());
    }
    EXPECT_THAT(inputs, IsSupersetOf({"a.real", "conf.real"}));
    EXPECT_THAT(inputs, Not(Contains("a")));
    EXPECT_THAT(inputs, Not(Contains("conf")));
  }
  Project project_;
};

TEST_P(Neighbours, PreloadedByTheUser) {
  expect_the_same("LD_PRELOAD=$P/libredirecting.so $RUN $P/redirected");
}

TEST_P(Neighbours, PreloadedByTheCommandBeforeUs) {
  expect_the_same(
      "$RUN sh -c 'LD_PRELOAD=\"'$P'/libredirecting.so $LD_PRELOAD\" exec '$P'/redirected'");
}

TEST_P(Neighbours, PreloadedByTheCommandAfterUs) {
  expect_the_same(
      "$RUN sh -c 'LD_PRELOAD=\"$LD_PRELOAD:'$P'/libredirecting.so\" exec '$P'/redirected'");
}

TEST_P(Neighbours, PreloadedInsteadOfUs) {
  expect_the_same("$RUN env LD_PRELOAD=$P/libredirecting.so $P/redirected");
}

TEST_P(Neighbours, LinkedByTheProgram) {
  expect_the_same("$RUN $P/redirected_linked");
}

TEST_P(Neighbours, PreloadedForTheWholeSystem) {
  // In a separate mount namespace with a changed copy of /etc, so that nothing stays.
  const std::string changed_etc =
      "W=$(mktemp -d); mkdir $W/up $W/work; export A P W RUN\n"
      "unshare -m bash -c 'mount -t tmpfs none $W && mkdir $W/up $W/work && mount -t overlay none "
      "-o lowerdir=/etc,upperdir=$W/up,workdir=$W/work /etc || exit 77\n";
  const std::string end = "' 2>/dev/null; status=$?; rm -r $W; exit $status";
  if (project_.bash(changed_etc + end).exit_code != 0) {
    GTEST_SKIP() << "mounting is not allowed here";
  }
  expect_the_same(changed_etc +
                  "echo $P/libredirecting.so > /etc/ld.so.preload; $RUN $P/redirected" + end);
}

INSTANTIATE_TEST_SUITE_P(Chaos, Neighbours, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace assay::chaos
