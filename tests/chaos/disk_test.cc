// A project on a full or read-only disk: the command runs all the same, one line reports what could
// not be recorded, and nothing is damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "chaos/project.h"
#include "support/reachable_copy.h"

namespace assay::chaos {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// In a separate mount namespace, so that nothing stays mounted. `text` runs in the project, which
// is a small file system of so many bytes; $W is a folder elsewhere.
support::ProcessResult on_small_disk(const Project& project, const std::string& size,
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

// A limit on the size of files is said to be that, not a full disk, and ends neither Assay nor the
// command.
TEST_P(WithTracer, FileSizeLimit) {
  for (const int kib : {0, 1, 16, 60}) {
    SCOPED_TRACE(kib);
    Project project;
    const auto outcome = project.bash(
        "ulimit -f " + std::to_string(kib) + "; \"$A\" run --tracer " + GetParam() +
        " -- bash -c 'echo limit $(ulimit -f)' 2>&1 | cat; echo status ${PIPESTATUS[0]}");
    EXPECT_THAT(outcome.out, HasSubstr("limit " + std::to_string(kib) + "\n")) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\nstatus 0\n"));
    EXPECT_THAT(outcome.out, HasSubstr("the file-size limit (ulimit -f) is "));
    EXPECT_THAT(outcome.out, ::testing::Not(HasSubstr("SQLite")));
    EXPECT_EQ(lines(outcome.out).size(), 3U) << outcome.out;
    // Other verbs end with a line, not with a signal.
    if (kib > 16) continue;
    const auto label = project.bash("\"$A\" run -- true; ulimit -f " + std::to_string(kib) +
                                    "; \"$A\" label here 1 2>&1 | cat; echo ${PIPESTATUS[0]}");
    EXPECT_THAT(label.out, HasSubstr("the file-size limit (ulimit -f) is "));
    EXPECT_THAT(label.out, ::testing::EndsWith("\n3\n"));
  }
}
// The command has the limit, and the signal, that it would have without Assay.
TEST_P(WithTracer, FileSizeLimitOfTheCommand) {
  Project project;
  const auto outcome = project.bash(
      "\"$A\" run --tracer " + GetParam() +
      " -- bash -c 'trap \"\" PIPE; (ulimit -f 1; head -c 9999 /dev/zero > big); echo $?' 2>&1");
  EXPECT_THAT(outcome.out, HasSubstr("153\n"));  // 128 + SIGXFSZ
}
INSTANTIATE_TEST_SUITE_P(Chaos, WithTracer, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

TEST_P(Disk, FilledWhileItRuns) {
  Project project;
  const auto outcome = on_small_disk(
      project, "32m",
      "cat > run <<\"E\"\n"
      "cd $W && echo text > in.txt && $P/busy 60 && cd - >/dev/null\n"
      "dd if=/dev/zero of=filler bs=4096 2>/dev/null\n"
      "cd $W && $P/busy 60 && for i in $(seq 2000); do echo $i > many_$i; done; cat many_2000\n"
      "E\n"
      "\"$A\" run --tracer " +
          GetParam() +
          " -- sh run 2>\"$W/err\"\n"
          "echo status $?; echo lines $(wc -l < \"$W/err\"); cat \"$W/err\"; rm filler\n"
          "\"$A\" log >/dev/null; echo log $?\n"
          "sqlite3 .assay/assay.db \"PRAGMA integrity_check\"\n"
          "\"$A\" show last --json | grep -E \"complete|status\\\": \\\"(done|interrupted)\"\n"
          "\"$A\" run -- true; echo again $?\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("finished\nfinished\n2000\nstatus 0\n")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("log 0\nok\n"));
  EXPECT_THAT(outcome.out, HasSubstr("again 0\n"));
  // Either everything was recorded, or the run is marked incomplete.
  if (outcome.out.find("lines 0\n") == std::string::npos) {
    EXPECT_THAT(outcome.out, HasSubstr("lines 1\nassay: "));
    EXPECT_THAT(outcome.out, ::testing::Not(HasSubstr("\"complete\": true")));
  }
}

// Space for the store, but not for a log: the collector's events stay in memory.
TEST_P(Disk, TooSmallForALog) {
  Project project;
  const auto outcome = on_small_disk(
      project, "900k",
      "echo text > in; \"$A\" run --tracer " + GetParam() +
          " -- cat in 2>\"$W/err\"\n"
          "echo status $?; cat \"$W/err\"\n"
          "\"$A\" show last --json | grep -oE \"complete\\\": true|path.*/in\\\"\"\n");
  EXPECT_THAT(outcome.out, StartsWith("text\nstatus 0\n")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("complete\": true\n"));
  EXPECT_THAT(outcome.out, HasSubstr("/in\"\n"));
}

TEST_P(Disk, TooSmallForAnything) {
  Project project;
  const auto outcome = on_small_disk(project, "300k",
                                     "\"$A\" run --tracer " + GetParam() +
                                         " -- sh -c \"echo ran; exit 5\" 2>\"$W/err\"\n"
                                         "echo status $?; echo lines $(wc -l < \"$W/err\")\n");
  EXPECT_THAT(outcome.out, StartsWith("ran\nstatus 5\nlines ")) << outcome.err;
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

INSTANTIATE_TEST_SUITE_P(Chaos, Disk, ::testing::Values("preload", "ebpf", "ptrace"),
                         [](const auto& one) { return one.param; });

// Resource limits meant for the command: it runs as it would by itself, and at most one line
// reports that it was not recorded. Not as root, who may lift limits.
class Limits : public WithTracer {
 protected:
  void SetUp() override {
    WithTracer::SetUp();
    if (GetParam() == "ebpf") GTEST_SKIP() << "is for root";
  }
  void expect_unhindered(const std::string& limit) {
    SCOPED_TRACE(limit);
    Project project;
    const std::string as_nobody =
        ::geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
    const auto outcome = project.bash(
        "chmod -R a+rwX .; export A='" + support::reachable_program() + "'; " + as_nobody +
        "bash -c '" + limit + "; \"$A\" run --tracer " + GetParam() +
        " -- bash -c \"ulimit -f; ulimit -n; echo ran; exit 5\" 2>&3; echo status $?' 3>err\n"
        "cat err >&2; bash -c '" +
        limit + "; ulimit -f; ulimit -n'");
    const auto said = lines(outcome.out);
    ASSERT_EQ(said.size(), 6U) << outcome.out << outcome.err;
    EXPECT_EQ(said[0], said[4]) << "the command has another limit";
    EXPECT_EQ(said[1], said[5]);
    EXPECT_EQ(said[2], "ran");
    EXPECT_EQ(said[3], "status 5");
    EXPECT_LE(lines(outcome.err).size(), 1U) << outcome.err;
    if (!outcome.err.empty()) {
      EXPECT_THAT(outcome.err, HasSubstr("not recorded"));
    }
  }
};

TEST_P(Limits, OfFileSize) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's runtime writes a file before main()";
#endif
  for (const std::string blocks : {"0", "1", "16", "100", "500", "2048", "4000"}) {
    expect_unhindered("ulimit -f " + blocks);
    expect_unhindered("ulimit -Sf " + blocks);
  }
}

TEST_P(Limits, OfOpenFiles) {
  for (const std::string files : {"7", "8", "10", "12", "16", "24"}) {
    expect_unhindered("ulimit -n " + files);
    expect_unhindered("ulimit -Sn " + files);
  }
}

INSTANTIATE_TEST_SUITE_P(Chaos, Limits, ::testing::Values("preload", "ebpf", "ptrace"),
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
