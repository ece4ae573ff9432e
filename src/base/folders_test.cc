#include "base/folders.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <cstdlib>
#include <optional>

#include "base/testing/temp_dir.h"
#include "base/unique_fd.h"

namespace assay::base {
namespace {

// Sets a variable of the environment, or removes it, for as long as the object lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) {
    if (value != nullptr) {
      ::setenv(name_, value, 1);
    } else {
      ::unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

std::string cache_folder(const char* cache, const char* home) {
  const Variable one("XDG_CACHE_HOME", cache);
  const Variable other("HOME", home);
  return user_cache_folder();
}

TEST(UserCacheFolder, IsInTheCachesOfTheUserElseInTheHome) {
  EXPECT_EQ(cache_folder("/caches", "/home/ana"), "/caches/assay");
  EXPECT_EQ(cache_folder("/caches/", nullptr), "/caches/assay");
  EXPECT_EQ(cache_folder(nullptr, "/home/ana"), "/home/ana/.cache/assay");
}

TEST(UserCacheFolder, PathsThatAreNotAbsoluteAreIgnored) {
  EXPECT_EQ(cache_folder("caches", "/home/ana"), "/home/ana/.cache/assay");
  EXPECT_EQ(cache_folder("", "/home/ana"), "/home/ana/.cache/assay");
  EXPECT_EQ(cache_folder("caches", "home"), "");
  EXPECT_EQ(cache_folder(nullptr, ""), "");
  EXPECT_EQ(cache_folder(nullptr, nullptr), "");
}

TEST(FreeSpace, IsThatOfTheDisk) {
  const testing::TempDir directory;
  struct statvfs before {};
  ASSERT_EQ(::statvfs(directory.path().c_str(), &before), 0);
  const auto by_path = free_space(directory.path());
  const UniqueFd folder(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto by_file = free_space(folder.get(), "folder");
  ASSERT_TRUE(by_path && by_file);
  EXPECT_GT(by_path->count(), 0);
  // Other programs write meanwhile, but not the whole disk.
  const auto size = static_cast<std::int64_t>(before.f_blocks * before.f_frsize);
  EXPECT_LE(by_path->count(), size);
  EXPECT_LE(by_file->count(), size);
  EXPECT_GT(by_file->count(), 0);
}

TEST(FreeSpace, NamesWhatCannotBeInspected) {
  const auto by_path = free_space("/no such folder");
  ASSERT_FALSE(by_path);
  EXPECT_EQ(by_path.error().line(),
            "/no such folder: cannot be inspected: No such file or directory");
  const auto by_file = free_space(-1, "model.pt");
  ASSERT_FALSE(by_file);
  EXPECT_EQ(by_file.error().line(), "model.pt: cannot be inspected: Bad file descriptor");
}

TEST(CheckFreeSpace, FailsOnlyIfItIsKnownNotToFit) {
  EXPECT_TRUE(check_free_space(Bytes(10), Bytes(10), "x"));
  EXPECT_TRUE(check_free_space(free_space("/no such folder"), Bytes(10), "x"));
  const auto checked = check_free_space(Bytes(10), Bytes(11), "model.pt");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ExitCode::kUnfit);
  EXPECT_EQ(checked.error().line(),
            "model.pt: needs 11 B, but the disk has 10 B free; free some space");
}

}  // namespace
}  // namespace assay::base
