#include "lineage/archive/archive.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/testing/temp_dir.h"
#include "hash/blake3.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ArchiveTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(project() / ".assay"); }
  [[nodiscard]] fs::path project() const { return directory_.path(); }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(project() / name) << text;
    return project() / name;
  }
  static std::string read(const fs::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static hash::Digest digest(const std::string& text) {
    return hash::blake3(std::as_bytes(std::span(text)));
  }
  // The file of a content, by the documented layout.
  [[nodiscard]] fs::path object(const std::string& text) const {
    const std::string hex = digest(text).hex();
    return project() / ".assay/archive" / hex.substr(0, 2) / hex.substr(2);
  }
  [[nodiscard]] Archive archive() const { return Archive(store::location_in(project())); }
  // Files that are not objects.
  [[nodiscard]] int leftovers() const {
    int found = 0;
    for (const auto& entry : fs::directory_iterator(project() / ".assay/archive")) {
      found += entry.is_regular_file() ? 1 : 0;
    }
    return found;
  }

  base::testing::TempDir directory_;
};

TEST_F(ArchiveTest, KeepsAndRestores) {
  const fs::path file = write("a", "hello");
  fs::permissions(file, fs::perms(0750));
  ASSERT_TRUE(archive().add(file, digest("hello")));
  EXPECT_EQ(read(object("hello")), "hello");
  EXPECT_EQ(fs::status(object("hello")).permissions(), fs::perms(0550));
  EXPECT_EQ(*archive().add(file, digest("hello")), std::nullopt) << "it already exists";
  fs::remove(file);
  const auto made = archive().restore(digest("hello"), file, Archive::Existing::kKeep);
  ASSERT_TRUE(made) << made.error().line();
  EXPECT_EQ(*made, Archive::Restored::kMade);
  EXPECT_EQ(read(file), "hello");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0770 & ~mask));
  EXPECT_EQ(*archive().restore(digest("hello"), file, Archive::Existing::kKeep),
            Archive::Restored::kAlreadyThere);
  EXPECT_EQ(leftovers(), 0);
}

TEST_F(ArchiveTest, ChangingTheFileDoesNotChangeWhatIsKept) {
  const fs::path file = write("a", "before");
  ASSERT_TRUE(archive().add(file, digest("before")));
  std::ofstream(file, std::ios::in | std::ios::out) << "AFTER!";
  EXPECT_EQ(read(object("before")), "before");
  ASSERT_TRUE(archive().restore(digest("before"), project() / "b", Archive::Existing::kKeep));
  std::ofstream(project() / "b", std::ios::in | std::ios::out) << "AFTER!";
  EXPECT_EQ(read(object("before")), "before") << "the restored file is a separate file";
}

TEST_F(ArchiveTest, OtherContentIsNotKept) {
  const auto added = archive().add(write("a", "new"), digest("old"));
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().line(), HasSubstr("differs from what was recorded"));
  EXPECT_FALSE(archive().contains(digest("old")));
  EXPECT_EQ(leftovers(), 0);
}

TEST_F(ArchiveTest, NothingIsOverwrittenUnasked) {
  ASSERT_TRUE(archive().add(write("a", "kept"), digest("kept")));
  const fs::path file = write("a", "mine");
  const auto refused = archive().restore(digest("kept"), file, Archive::Existing::kKeep);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().line(), HasSubstr("has different content and is not overwritten"));
  EXPECT_EQ(read(file), "mine");
  EXPECT_EQ(*archive().restore(digest("kept"), file, Archive::Existing::kReplace),
            Archive::Restored::kReplaced);
  EXPECT_EQ(read(file), "kept");
  fs::create_directory(project() / "folder");
  EXPECT_FALSE(
      archive().restore(digest("kept"), project() / "folder", Archive::Existing::kReplace));
  // A link counts as something else, and its target is not touched.
  write("target", "target");
  fs::create_symlink("target", project() / "link");
  EXPECT_FALSE(archive().restore(digest("kept"), project() / "link", Archive::Existing::kKeep));
  EXPECT_TRUE(archive().restore(digest("kept"), project() / "link", Archive::Existing::kReplace));
  EXPECT_EQ(read(project() / "target"), "target");
}

TEST_F(ArchiveTest, ADamagedObjectIsNotRestored) {
  ASSERT_TRUE(archive().add(write("a", "good"), digest("good")));
  fs::permissions(object("good"), fs::perms(0600));
  std::ofstream(object("good")) << "evil";
  const auto restored =
      archive().restore(digest("good"), project() / "b", Archive::Existing::kKeep);
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().line(), HasSubstr("is damaged"));
  EXPECT_FALSE(fs::exists(project() / "b"));
  for (const auto& entry : fs::directory_iterator(project())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".assay-restore-"));
  }
}

TEST_F(ArchiveTest, WhatIsNotThereIsAnError) {
  const auto restored = archive().restore(digest("x"), project() / "b", Archive::Existing::kKeep);
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().line(), HasSubstr("is not archived"));
}

TEST_F(ArchiveTest, UseLimitAndRemoval) {
  EXPECT_EQ(archive().use()->contents, 0) << "there is no folder yet";
  EXPECT_EQ(*archive().limit(), std::nullopt);
  ASSERT_TRUE(archive().add(write("a", "12345"), digest("12345")));
  ASSERT_TRUE(archive().add(write("b", "123"), digest("123")));
  ASSERT_TRUE(archive().set_limit(1000));
  EXPECT_EQ(*archive().limit(), 1000);
  EXPECT_EQ(archive().use()->contents, 2);
  EXPECT_EQ(archive().use()->bytes, 8);
  ASSERT_TRUE(archive().remove(digest("123")));
  EXPECT_EQ(archive().use()->bytes, 5);
  ASSERT_TRUE(archive().set_limit(std::nullopt));
  EXPECT_EQ(*archive().limit(), std::nullopt);
  write(".assay/archive/limit", "lots");
  EXPECT_FALSE(archive().limit());
}

TEST_F(ArchiveTest, OldLeftoversAreRemoved) {
  ASSERT_TRUE(archive().add(write("a", "1"), digest("1")));
  write(".assay/archive/new-abcdef", "half");
  archive().remove_leftovers();
  EXPECT_EQ(leftovers(), 1) << "another process may still write to it";
}

// Its owner can make it writable again.
TEST_F(ArchiveTest, AReadOnlyFileIsNotLinked) {
  const fs::path file = write("a", "const");
  fs::permissions(file, fs::perms(0444));
  ASSERT_TRUE(archive().add(file, digest("const")));
  EXPECT_EQ(fs::hard_link_count(file), 1U);
  fs::permissions(file, fs::perms(0644));
  std::ofstream(file, std::ios::in | std::ios::out) << "OTHER";
  EXPECT_EQ(read(object("const")), "const");
}

// As above, as an ordinary user: root ignores permissions.
TEST_F(ArchiveTest, AReadOnlyFileOfAUserIsNotLinked) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become a user";
  const fs::path file = write("a", "const");
  fs::permissions(file, fs::perms(0444));
  constexpr uid_t kUser = 12345;
  for (const fs::path& path : {project(), file, project() / ".assay"}) {
    ASSERT_EQ(::chown(path.c_str(), kUser, kUser), 0);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(kUser) != 0 || ::setuid(kUser) != 0) ::_exit(9);
    const auto added = archive().add(file, digest("const"));
    ::_exit(added && *added ? 0 : 8);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(fs::hard_link_count(file), 1U);
  EXPECT_EQ(read(object("const")), "const");
}

TEST_F(ArchiveTest, ADamagedObjectIsReplacedWhenItIsArchivedAgain) {
  const fs::path file = write("a", "good");
  ASSERT_TRUE(archive().add(file, digest("good")));
  fs::permissions(object("good"), fs::perms(0600));
  std::ofstream(object("good")) << "evil";
  EXPECT_TRUE(archive().contains(digest("good")));
  EXPECT_FALSE(archive().has_undamaged(digest("good")));
  const auto again = archive().add(file, digest("good"));
  ASSERT_TRUE(again) << again.error().line();
  EXPECT_TRUE(*again);
  EXPECT_EQ(read(object("good")), "good");
  EXPECT_EQ(leftovers(), 0);
}

}  // namespace
}  // namespace assay::lineage
