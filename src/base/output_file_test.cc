#include "base/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
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
  const fs::path path = dir.path() / "private";
  std::ofstream(path) << "old";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(write_output(path, "new"));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
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
