// Comments and pages refer to files that exist, every library has a README, and ARCHITECTURE.md is
// short enough to be read.
#include "structure/references.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/testing/temp_dir.h"
#include "structure/source_tree.h"

namespace assay::structure {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(References, WhatTheRepositoryRefersToExists) {
  EXPECT_THAT(dangling_references(kRepository), IsEmpty());
}

TEST(References, MissingFilesAndBrokenLinksAreFound) {
  base::testing::TempDir directory;
  write(directory.path() / "src/base/here.h",
        "// See here.h, base/here.h, gone.h and old/here.h.\nvoid do_it();\n");
  write(directory.path() / "README.md",
        "[a](src/base/here.h) [b](docs/none.md#x) `lost.cc`\n"
        "| src/base/here, src/base, src/base/gone.cc | `src/old/` | src/<module>/x |\n"
        "`do_it()`, `base::do_it()`, `undo_it()`\n");
  EXPECT_THAT(dangling_references(directory.path()),
              ElementsAre("README.md:1: links to docs/none.md, which does not exist",
                          "README.md:1: names lost.cc, which does not exist",
                          "README.md:2: names src/base/gone.cc, which does not exist",
                          "README.md:2: names src/old, which does not exist",
                          "README.md:3: names undo_it(), which does not exist",
                          "src/base/here.h:1: names gone.h, which does not exist",
                          "src/base/here.h:1: names old/here.h, which does not exist"));
}

TEST(References, TheArchitectureIsShort) {
  std::ifstream stream(kRepository / "ARCHITECTURE.md");
  const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  EXPECT_GT(words.size(), 500U);
  EXPECT_LE(words.size(), 2'500U);
}

TEST(References, EveryTopLevelModuleHasAReadme) {
  for (const auto& entry : fs::directory_iterator(kRepository / "src")) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(fs::exists(entry.path() / "README.md")) << entry.path();
  }
}

}  // namespace
}  // namespace assay::structure
