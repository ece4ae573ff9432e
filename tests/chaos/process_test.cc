// The processes of a run: every one, with its parent and its end, whether it touched a file or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <sstream>

#include "chaos/project.h"

namespace assay::chaos {
namespace {

using ::testing::IsSupersetOf;

class Processes : public WithTracer {};

// Linux 6.15: pidfd's PIDFD_INFO_EXIT.
bool kernel_reports_exit_of_orphans() {
  utsname name{};
  int major = 0;
  int minor = 0;
  char dot = 0;
  ::uname(&name);
  std::istringstream(name.release) >> major >> dot >> minor;
  return major > 6 || (major == 6 && minor >= 15);
}

TEST_P(Processes, MatchTheProgramsOwnReport) {
  Project project;
  const auto outcome =
      project.assay({"run", "--tracer", GetParam(), "--", CHAOS_PROGRAMS "/family"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_TRUE(project.finished_run().is_object());
  const auto stored = support::run(
      {{"sqlite3", "-separator", " ", (project.path() / ".assay" / "assay.db").string(),
        "SELECT pid, parent, wait_status FROM process WHERE ended_ns >= started_ns"}});
  auto expected = lines(outcome.out);
  EXPECT_EQ(expected.size(), 6U);
  EXPECT_EQ(lines(stored.out).size(), expected.size() + 1);  // the command itself
  if (GetParam() == "preload" && !kernel_reports_exit_of_orphans()) {
    std::erase_if(expected, [](const std::string& line) { return line.ends_with(" 9"); });
  }
  EXPECT_THAT(lines(stored.out), IsSupersetOf(expected));
}

INSTANTIATE_TEST_SUITE_P(Chaos, Processes, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace assay::chaos
