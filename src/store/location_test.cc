#include "store/location.h"

#include "store/testing/child.h"
#include "store/testing/fixture.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::line_of;

class LocationTest : public testing::StoreTest {};

TEST_F(LocationTest, FindsTheNearestStoreUpward) {
  const fs::path project = directory("project");
  fs::create_directories(project / ".assay");
  fs::create_directories(project / "a/b/c");
  for (const char* from : {"", "a", "a/b/c"}) {
    const auto found = find(project / from);
    ASSERT_TRUE(found) << line_of(found);
    ASSERT_TRUE(*found) << from;
    EXPECT_EQ((*found)->project, project);
    EXPECT_EQ((*found)->directory, project / ".assay");
    EXPECT_EQ((*found)->database, project / ".assay/assay.db");
  }
  fs::create_directories(project / "a/.assay");
  EXPECT_EQ((*find(project / "a/b/c"))->project, project / "a");
}

TEST_F(LocationTest, FindsNothingUpToTheRoot) {
  const auto found = find(directory("project"));
  ASSERT_TRUE(found) << line_of(found);
  EXPECT_FALSE(*found);
  EXPECT_TRUE(find("/"));
}

TEST_F(LocationTest, SearchesAboveTheDirectoryItselfNotAboveALinkToIt) {
  const fs::path project = directory("project");
  fs::create_directories(project / ".assay");
  fs::create_directories(project / "inside");
  fs::create_directory_symlink(project / "inside", scratch() / "link");
  EXPECT_EQ((*find(scratch() / "link"))->project, project);
}

TEST_F(LocationTest, FollowsALinkedStoreDirectory) {
  const fs::path project = directory("project");
  fs::create_directory_symlink(directory("elsewhere"), project / ".assay");
  EXPECT_EQ((*find(project))->directory, project / ".assay");
}

TEST_F(LocationTest, RefusesWhatIsNotADirectory) {
  const fs::path with_file = directory("with_file");
  testing::write(with_file / ".assay", "");
  EXPECT_EQ(line_of(find(with_file)), (with_file / ".assay").string() +
                                          ": is not a directory; move it away and run: assay init");
  const fs::path with_broken_link = directory("with_broken_link");
  fs::create_symlink("nowhere", with_broken_link / ".assay");
  EXPECT_THAT(line_of(find(with_broken_link)), HasSubstr("is not a directory"));
}

TEST_F(LocationTest, ReportsAStartThatIsGoneOrUnreadable) {
  EXPECT_THAT(line_of(find(scratch() / "gone")), HasSubstr("No such file or directory"));
  const fs::path closed = directory("closed");
  fs::create_directories(closed / "inner");
  fs::permissions(closed, fs::perms::none);
  const auto outcome = testing::in_child([&](const testing::Child::Report& report) {
    testing::become_nobody();
    report(line_of(find(closed / "inner")));
  });
  fs::permissions(closed, fs::perms::owner_all);
  EXPECT_THAT(outcome.reported, HasSubstr("Permission denied"));
}

TEST_F(LocationTest, IsMadeBesideGitOrWhereOneStands) {
  const fs::path project = directory("project");
  fs::create_directories(project / "a/b");
  EXPECT_EQ(default_location(project / "a/b")->project, project / "a/b");
  fs::create_directories(project / ".git");
  EXPECT_EQ(default_location(project / "a/b")->project, project);
  testing::write(project / "a/.git", "gitdir: /elsewhere");  // a worktree or submodule
  EXPECT_EQ(default_location(project / "a/b")->project, project / "a");
}

}  // namespace
}  // namespace assay::store
