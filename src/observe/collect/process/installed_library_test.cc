#include "observe/collect/process/installed_library.h"

#include <gtest/gtest.h>

#include "base/process/program.h"

namespace assay::collect {
namespace {

TEST(InstalledLibrary, IsAFileBesideTheProgram) {
  const std::filesystem::path own = base::own_program();  // any readable file will do
  const bool can_be_listed = own.native().find_first_of(" :") == std::string::npos;
  EXPECT_EQ(installed_library(own.filename().native()), can_be_listed ? own : "");
}

TEST(InstalledLibrary, IsNoneIfThereIsNoSuchFile) {
  EXPECT_EQ(installed_library("libassay-none.so"), "");
  EXPECT_EQ(why_not_installed("libassay-none.so"), "libassay-none.so is not beside the program");
}

}  // namespace
}  // namespace assay::collect
