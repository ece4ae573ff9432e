#include "base/scratch_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>

#include "base/testing/temp_dir.h"

namespace assay::base {
namespace {

namespace fs = std::filesystem;

TEST(UniqueFolder, IsNewAndPrivate) {
  const testing::TempDir parent;
  const auto one = make_unique_folder(parent.path(), "part-");
  const auto other = make_unique_folder(parent.path(), "part-");
  ASSERT_TRUE(one && other);
  EXPECT_NE(*one, *other);
  EXPECT_EQ(one->parent_path(), parent.path());
  EXPECT_EQ(one->filename().string().substr(0, 5), "part-");
  struct stat status {};
  ASSERT_EQ(::stat(one->c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

TEST(UniqueFolder, NamesTheParentThatDoesNotExist) {
  const testing::TempDir parent;
  const auto made = make_unique_folder(parent.path() / "none", "part-");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().where, (parent.path() / "none").string());
}

TEST(ScratchFolder, IsRemovedWithItsContents) {
  auto first = ScratchFolder::make("assay-scratch-test-");
  ASSERT_TRUE(first);
  const fs::path path = first->path();
  {
    const ScratchFolder moved(*std::move(first));
    fs::create_directory(path / "folder");
    std::ofstream(path / "folder" / "file") << "text";
    EXPECT_TRUE(fs::exists(path / "folder" / "file"));
  }
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace assay::base
