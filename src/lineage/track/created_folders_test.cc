#include "lineage/track/created_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/testing/temp_dir.h"
#include "lineage/track/hash_task.h"

namespace assay::lineage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CreatedFolders, OnlyThoseThatAreNewer) {
  const base::testing::TempDir folder;
  const std::string root = folder.path().string();
  std::filesystem::create_directories(root + "/old/too");
  // The clock of files has ticks of up to ten milliseconds.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::int64_t since = file_clock_ns();
  std::filesystem::create_directories(root + "/old/new/deep");
  if (!created_at_or_after(root + "/old/new", since)) {
    GTEST_SKIP() << "this file system does not keep when folders were made";
  }
  CreatedFolders made;
  made.add_output(root + "/old/too/a");
  made.add_output(root + "/old/new/deep/b");
  made.add_output(root + "/old/new/deep/c");
  made.add_output("/nowhere/at/all");
  EXPECT_THAT(made.created_since(since), ElementsAre(root + "/old/new", root + "/old/new/deep"));
  EXPECT_THAT(made.created_since(0), IsEmpty());
}

}  // namespace
}  // namespace assay::lineage
