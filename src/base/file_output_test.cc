// What -o FILE may name, and what it does to that: new files, others' files, links, pipes, mounts.
#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>

#include "base/testing/temp_dir.h"

namespace assay::base {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(WriteOutput, CreatesAndReplacesFiles) {
  const testing::TempDir dir;
  const fs::path path = dir.path() / "out.txt";
  ASSERT_TRUE(write_output(path, "one, which is longer"));
  EXPECT_EQ(content(path), "one, which is longer");
  std::ifstream reader(path);  // keeps the old file
  ASSERT_TRUE(write_output(path, "two"));
  EXPECT_EQ(content(path), "two");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "one, which is longer");
  EXPECT_EQ(entries(dir.path()), 1U);
}

TEST(WriteOutput, KeepsTheModeOfAFile) {
  const testing::TempDir dir;
  const fs::path path = dir.path() / "out.txt";
  std::ofstream(path) << "old";
  const mode_t before = ::umask(022);  // which would take a bit of the second mode
  for (const mode_t mode : {0600U, 0664U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_TRUE(write_output(path, "new"));
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, mode);
  }
  ::umask(before);
}

TEST(WriteOutput, KeepsTheOtherNamesOfAFile) {
  const testing::TempDir dir;
  std::ofstream(dir.path() / "one") << "old";
  fs::create_hard_link(dir.path() / "one", dir.path() / "other");
  ASSERT_TRUE(write_output(dir.path() / "one", "new"));
  EXPECT_EQ(content(dir.path() / "other"), "new");
}

// What stands in the way of a draft belongs to somebody.
TEST(WriteOutput, LeavesFilesThatAreCalledLikeItsDraft) {
  const testing::TempDir dir;
  const fs::path path = dir.path() / "out.txt";
  const fs::path same = path.string() + "." + std::to_string(::getpid());
  std::ofstream(same) << "mine";
  ASSERT_TRUE(write_output(path, "text"));
  EXPECT_EQ(content(path), "text");
  EXPECT_EQ(content(same), "mine");
  EXPECT_EQ(entries(dir.path()), 2U);
}

TEST(WriteOutput, RefusesWhatIsWriteProtected) {
  if (::geteuid() == 0) GTEST_SKIP() << "nothing is protected from root";
  const testing::TempDir dir;
  const fs::path path = dir.path() / "protected";
  std::ofstream(path) << "old";
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  EXPECT_FALSE(write_output(path, "new"));
  EXPECT_EQ(content(path), "old");
}

TEST(WriteOutput, WritesThroughLinksAndIntoPipes) {
  const testing::TempDir dir;
  std::ofstream(dir.path() / "target") << "old";
  fs::create_symlink("target", dir.path() / "link");
  ASSERT_TRUE(write_output(dir.path() / "link", "new"));
  EXPECT_TRUE(fs::is_symlink(dir.path() / "link"));
  EXPECT_EQ(content(dir.path() / "target"), "new");

  const fs::path pipe = dir.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(write_output(pipe, "text"));
  std::array<char, 8> text{};
  EXPECT_EQ(::read(reader, text.data(), text.size()), 4);
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(write_output("/dev/null", "text"));
}

// Nothing can be renamed over a file that another file system is mounted on, as containers do with
// single files: it is written in place.
TEST(WriteOutput, WritesIntoAMountedFile) {
  const testing::TempDir dir;
  std::ofstream(dir.path() / "inner") << "old, which is longer";
  std::ofstream(dir.path() / "out") << "covered";
  constexpr int kNotAllowed = 77;
  const auto in_namespace = [&] {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount((dir.path() / "inner").c_str(), (dir.path() / "out").c_str(), nullptr, MS_BIND,
                nullptr) != 0) {
      return kNotAllowed;
    }
    return write_output(dir.path() / "out", "new") ? 0 : 1;
  };
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(in_namespace());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(content(dir.path() / "inner"), "new");
  EXPECT_EQ(content(dir.path() / "out"), "covered");
  EXPECT_EQ(entries(dir.path()), 2U);
}

TEST(CheckOutput, FindsWhatCannotBeWrittenAndWritesNothing) {
  const testing::TempDir dir;
  EXPECT_TRUE(check_output(dir.path() / "new.txt", "new.txt"));
  EXPECT_TRUE(check_output("/dev/null", "/dev/null"));
  std::ofstream(dir.path() / "old.txt") << "old";
  EXPECT_TRUE(check_output(dir.path() / "old.txt", "old.txt"));
  EXPECT_EQ(content(dir.path() / "old.txt"), "old");
  EXPECT_EQ(entries(dir.path()), 1U);
  EXPECT_EQ(check_output(dir.path(), "here").error().line(), "here: is a folder; name a file");
  for (const fs::path& path : {dir.path() / "no" / "where", dir.path() / "old.txt" / "inside"}) {
    const auto checked = check_output(path, "there");
    ASSERT_FALSE(checked) << path;
    EXPECT_THAT(checked.error().line(), ::testing::StartsWith("there: cannot be written"));
  }
}

TEST(WriteOutput, NamesThePathInErrors) {
  const testing::TempDir dir;
  for (const fs::path& path : {dir.path() / "none" / "out.txt", dir.path()}) {
    const auto written = write_output(path, "text");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().where, path.string());
    EXPECT_THAT(written.error().line(), ::testing::HasSubstr("cannot write"));
  }
  EXPECT_EQ(entries(dir.path()), 0U);
}

}  // namespace
}  // namespace assay::base
