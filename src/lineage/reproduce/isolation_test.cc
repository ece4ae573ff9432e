#include "lineage/reproduce/isolation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/testing/temp_dir.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool can_write(const fs::path& path) {
  return static_cast<bool>(std::ofstream(path) << "changed" << std::flush);
}

class Isolation : public ::testing::Test {
 protected:
  void SetUp() override {
    write(folder_.path() / "project/file", "kept");
    write(folder_.path() / "project/.venv/installed", "kept");
    fs::create_directories(folder_.path() / "copy");
    fs::create_directories(folder_.path() / "project/copy");
  }
  // 0, or the number of what was not as it should be.
  int attempt(const std::string& copy) {
    const std::string project = folder_.path() / "project";
    const StageIsolation isolation(project, folder_.path() / copy, {project + "/.venv"}, true);
    if (!isolation.protects()) return 100;
    const auto result = isolation.run([&] {
      if (can_write(project + "/file")) return 1;
      if (can_write(project + "/new")) return 2;
      if (!can_write(folder_.path() / copy / "new")) return 3;
      if (can_write(project + "/.venv/installed") != isolation.layers()) return 4;
      if (isolation.layers() && read(project + "/.venv/installed") != "changed") return 5;
      return 0;
    });
    if (!result) return 101;
    // The next stage finds what this one wrote into the environment.
    const auto next = isolation.run([&] {
      return isolation.layers() && read(project + "/.venv/installed") != "changed" ? 6 : 0;
    });
    return *result != 0 ? *result : next.value_or(102);
  }
  void expect_unchanged() {
    EXPECT_EQ(read(folder_.path() / "project/file"), "kept");
    EXPECT_EQ(read(folder_.path() / "project/.venv/installed"), "kept");
    EXPECT_FALSE(fs::exists(folder_.path() / "project/new"));
  }
  base::testing::TempDir folder_;
};

TEST_F(Isolation, TheProjectIsReadOnlyAndTheCopyIsNot) {
  const int outcome = attempt("copy");
  if (outcome == 100) GTEST_SKIP() << "this machine allows no mounts";
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(read(folder_.path() / "copy/new"), "changed");
  expect_unchanged();
}

TEST_F(Isolation, ACopyInsideTheProject) {
  const int outcome = attempt("project/copy");
  if (outcome == 100) GTEST_SKIP() << "this machine allows no mounts";
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(read(folder_.path() / "project/copy/new"), "changed");
  expect_unchanged();
}

// In a user namespace, where the user has no more rights than before.
TEST_F(Isolation, WithoutPrivileges) {
  if (::geteuid() != 0) GTEST_SKIP() << "the tests above did that";
  constexpr uid_t kNobody = 65534;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    ASSERT_EQ(::lchown(entry.path().c_str(), kNobody, kNobody), 0);
  }
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(103);
    ::prctl(PR_SET_DUMPABLE, 1);  // as after exec: /proc/self is this user's
    ::_exit(::access(folder_.path().c_str(), X_OK) != 0 ? 104 : attempt("copy"));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "users have no namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_unchanged();
}

TEST_F(Isolation, ExitCodesArePassedOn) {
  const StageIsolation isolation(folder_.path() / "project", folder_.path() / "copy", {}, true);
  EXPECT_EQ(isolation.run([] { return 137; }).value_or(-1), 137);
  if (!isolation.protects()) return;
  EXPECT_FALSE(isolation.run([]() -> int { ::_exit(0); })) << "it did not come to its end";
}

// What is done where nothing can be protected.
TEST_F(Isolation, AnEnvironmentIsCopiedAndItsScriptsFindTheCopy) {
  const fs::path project = folder_.path() / "project";
  const fs::path copy = folder_.path() / "copy";
  write(project / ".venv/bin/tool", "#!" + (project / ".venv/bin/python").string() + "\nprint()\n");
  ASSERT_EQ(::chmod((project / ".venv/bin/tool").c_str(), 0755), 0);
  fs::create_symlink("/usr/bin/env", project / ".venv/bin/python");
  fs::create_symlink(project / ".venv/installed", project / ".venv/link");
  const StageIsolation isolation(project, copy, {}, false);
  EXPECT_FALSE(isolation.protects());
  ASSERT_TRUE(copy_environment(project / ".venv", base::PathMap(project, copy)));
  EXPECT_EQ(read(copy / ".venv/bin/tool"),
            "#!" + (copy / ".venv/bin/python").string() + "\nprint()\n");
  EXPECT_EQ(::access((copy / ".venv/bin/tool").c_str(), X_OK), 0);
  EXPECT_EQ(fs::read_symlink(copy / ".venv/bin/python"), "/usr/bin/env");
  EXPECT_EQ(fs::read_symlink(copy / ".venv/link"), copy / ".venv/installed");
  ASSERT_TRUE(can_write(copy / ".venv/link"));
  expect_unchanged();
}

// Ctrl-C ends a reproduction at once; the next one cleans up.
TEST_F(Isolation, WhatAKilledProcessLeftIsRemoved) {
  const fs::path temporary = folder_.path() / "temporary";
  fs::create_directories(temporary);
  const char* before = std::getenv("TMPDIR");
  const std::string was = before == nullptr ? "" : before;
  ::setenv("TMPDIR", temporary.c_str(), 1);
  const std::string project = folder_.path() / "project";
  const auto make = [&] {
    return StageIsolation(project, folder_.path() / "copy", {project + "/.venv"}, true);
  };
  const pid_t killed = ::fork();
  if (killed == 0) {
    const StageIsolation isolation = make();
    ::raise(SIGKILL);
  }
  ::waitpid(killed, nullptr, 0);
  ASSERT_FALSE(fs::is_empty(temporary));
  const fs::path left = fs::directory_iterator(temporary)->path();
  const StageIsolation first = make();
  EXPECT_TRUE(fs::exists(left)) << "it may just have been made";
  const timespec long_ago[2] = {{1'000'000, 0}, {1'000'000, 0}};
  for (const auto& entry : fs::directory_iterator(temporary)) {
    ASSERT_EQ(::utimensat(AT_FDCWD, entry.path().c_str(), long_ago, 0), 0);
  }
  const StageIsolation second = make();
  EXPECT_FALSE(fs::exists(left));
  const auto count = std::distance(fs::directory_iterator(temporary), {});
  EXPECT_EQ(count, 2) << "those that are in use";
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", was.c_str(), 1);
}

}  // namespace
}  // namespace assay::lineage
