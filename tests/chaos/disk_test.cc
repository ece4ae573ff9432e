// A project on a disk that is full, or cannot be written: the command runs all the same, one line
// says what could not be recorded, and nothing is broken afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "chaos/project.h"

namespace assay::chaos {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// In a mount namespace of its own, so that nothing stays mounted. `text` runs in the project, which
// is a small file system of so many bytes; $W is a folder elsewhere.
support::Outcome on_small_disk(const Project& project, const std::string& size,
                               const std::string& text) {
  return project.bash(
      "export A P W=$(mktemp -d); unshare -m bash -c 'mount -t tmpfs -o size=" + size +
      " none \"$PWD\" || exit 77; cd \"$PWD\"; \"$A\" init >/dev/null || exit 76\n" + text +
      "'; status=$?; rm -rf \"$W\"; exit $status");
}

bool can_mount() {
  static const bool can =
      ::geteuid() == 0 &&
      support::run({{"unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"}}).exit_code == 0;
  return can;
}

class Disk : public WithTracer {
 protected:
  void SetUp() override {
    WithTracer::SetUp();
    if (!can_mount()) GTEST_SKIP() << "mounting is not allowed here";
  }
};

TEST_P(Disk, FullBeforeItBegins) {
  Project project;
  const auto outcome = on_small_disk(
      project, "8m",
      "dd if=/dev/zero of=filler bs=4096 2>/dev/null\n"
      "\"$A\" run --tracer " +
          GetParam() +
          " -- sh -c \"echo text > $W/out; cat $W/out\" 2>\"$W/err\"\n"
          "echo status $?; echo lines $(wc -l < \"$W/err\"); cat \"$W/err\"; rm filler\n"
          "sqlite3 .assay/assay.db \"PRAGMA integrity_check\"\n"
          "\"$A\" run -- true; echo again $?\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("text\nstatus 0\nlines 1\nassay: ")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nok\nagain 0\n"));
}

TEST_P(Disk, FilledWhileItRuns) {
  Project project;
  const auto outcome = on_small_disk(
      project, "32m",
      "cat > job <<\"E\"\n"
      "cd $W && echo text > in.txt && $P/busy 60 && cd - >/dev/null\n"
      "dd if=/dev/zero of=filler bs=4096 2>/dev/null\n"
      "cd $W && $P/busy 60 && for i in $(seq 2000); do echo $i > many_$i; done; cat many_2000\n"
      "E\n"
      "\"$A\" run --tracer " +
          GetParam() +
          " -- sh job 2>\"$W/err\"\n"
          "echo status $?; echo lines $(wc -l < \"$W/err\"); cat \"$W/err\"; rm filler\n"
          "\"$A\" log >/dev/null; echo log $?\n"
          "sqlite3 .assay/assay.db \"PRAGMA integrity_check\"\n"
          "\"$A\" show last --json | grep -E \"complete|status\\\": \\\"(done|interrupted)\"\n"
          "\"$A\" run -- true; echo again $?\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("finished\nfinished\n2000\nstatus 0\n")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("log 0\nok\n"));
  EXPECT_THAT(outcome.out, HasSubstr("again 0\n"));
  // Either all was recorded after all, or the job says that it was not.
  if (outcome.out.find("lines 0\n") == std::string::npos) {
    EXPECT_THAT(outcome.out, HasSubstr("lines 1\nassay: "));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("\"complete\": true")));
  }
}

TEST_P(Disk, ReadOnlyProject) {
  Project project;
  const auto outcome = project.bash(
      "export A W=$(mktemp -d); unshare -m bash -c 'mount --bind \"$PWD\" \"$PWD\" && mount -o "
      "remount,ro,bind \"$PWD\" && cd \"$PWD\" && \"$A\" run --tracer " +
      GetParam() +
      " -- sh -c \"cat in.txt; exit 5\" 2>\"$W/err\"; echo status $?; cat \"$W/err\"'; rm -rf "
      "\"$W\"");
  const auto said = lines(outcome.out);
  ASSERT_EQ(said.size(), 3U) << outcome.out << outcome.err;
  EXPECT_EQ(said[0], "some input");
  EXPECT_EQ(said[1], "status 5");
  EXPECT_THAT(said[2], StartsWith("assay: "));
  EXPECT_THAT(said[2], HasSubstr("not recorded"));
}

INSTANTIATE_TEST_SUITE_P(Chaos, Disk, testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

TEST(ReadOnly, FolderThatMayNotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  Project project;
  ASSERT_EQ(project.bash("chmod -R a-w .assay").exit_code, 0);
  const auto outcome = project.assay({"run", "--", "cat", "in.txt"});
  ASSERT_EQ(project.bash("chmod -R u+w .assay").exit_code, 0);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "some input\n");
  EXPECT_THAT(outcome.err, HasSubstr("not recorded"));
}

}  // namespace
}  // namespace assay::chaos
