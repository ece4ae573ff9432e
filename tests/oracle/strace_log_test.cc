// The reader of strace's output, against lines as strace 6.1 writes them.
#include "oracle/strace_log.h"

#include <gtest/gtest.h>

namespace assay::oracle {
namespace {

TEST(StraceLog, ReadsPathsFlagsAndResults) {
  const auto calls = read_strace(
      R"(7  openat(AT_FDCWD<\x2f\x74>, "\x61\x0a\x22", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3<\x2f\x74\x2f\x61\x0a\x22>
7  openat(AT_FDCWD<\x2f\x74>, "\x62", O_RDONLY) = -1 ENOENT (No such file or directory)
7  openat2(4<\x2f\x74\x2f\x64>, "\x62", {flags=O_RDWR|O_CREAT, mode=0644, resolve=0}, 24) = 5<\x2f\x74\x2f\x64\x2f\x62>(deleted)
)");
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].thread, 7);
  EXPECT_EQ(calls[0].name, "openat");
  EXPECT_EQ(calls[0].argument(0).text, "AT_FDCWD");
  EXPECT_EQ(calls[0].argument(0).path, "/t");
  EXPECT_EQ(calls[0].argument(1).quoted, "a\n\"");
  EXPECT_TRUE(calls[0].has_flag(2, "O_CREAT"));
  EXPECT_FALSE(calls[0].has_flag(2, "O_RDWR"));
  EXPECT_EQ(calls[0].result.text, "3");
  EXPECT_EQ(calls[0].result.path, "/t/a\n\"");
  EXPECT_FALSE(calls[0].failed());
  EXPECT_TRUE(calls[1].failed());
  EXPECT_EQ(calls[2].arguments.size(), 4U);
  EXPECT_TRUE(calls[2].has_flag(2, "O_RDWR"));
  EXPECT_TRUE(calls[2].result.deleted);
}

TEST(StraceLog, JoinsTheHalvesOfInterruptedCalls) {
  const auto calls = read_strace(
      R"(7  clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD <unfinished ...>
8  rename("\x61", "\x62") = 0
7  <... clone resumed>, child_tidptr=0x7f) = 8
)");
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].name, "rename");
  EXPECT_EQ(calls[1].name, "clone");
  EXPECT_EQ(calls[1].result.text, "8");
  EXPECT_TRUE(calls[1].has_flag(1, "SIGCHLD"));
}

TEST(StraceLog, AThreadThatExecsTakesTheFirstOnesNumber) {
  const auto calls = read_strace(
      R"(7  read(3<\x2f\x61>,  <unfinished ...>
9  execve("\x2f\x62", [...], 0x1 /* 3 vars */ <unfinished ...>
7  +++ superseded by execve in pid 9 +++
7  <... execve resumed>) = 0
7  exit_group(0) = ?
7  +++ exited with 0 +++
)");
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].name, "execve");
  EXPECT_EQ(calls[0].thread, 7);
  EXPECT_EQ(calls[0].argument(0).quoted, "/b");
}

}  // namespace
}  // namespace assay::oracle
