// Comments and pages refer to files that exist, walks to functions where they are, every library
// has a README, and ARCHITECTURE.md is short enough to be read.
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

TEST(References, CommentsOfScriptsAreRead) {
  base::testing::TempDir directory;
  write(directory.path() / "src/LAYERS", "# lost.cc\nbase | | x\n<sqlite3 | base/gone.cc\n");
  write(directory.path() / "src/CMakeLists.txt", "add(lost.cc)  # lost.h\n");
  write(directory.path() / "cmake/here.cmake", "# here.cmake and lost.cmake\n");
  write(directory.path() / "scripts/run", "#!/bin/sh\n# See lost.py.\necho lost.h\n");
  write(directory.path() / "python/tool.py", "x = 'lost.md'  # as in lost.md\n");
  EXPECT_THAT(dangling_references(directory.path()),
              ElementsAre("cmake/here.cmake:1: names lost.cmake, which does not exist",
                          "python/tool.py:1: names lost.md, which does not exist",
                          "scripts/run:2: names lost.py, which does not exist",
                          "src/CMakeLists.txt:1: names lost.h, which does not exist",
                          "src/LAYERS:1: names lost.cc, which does not exist",
                          "src/LAYERS:3: names base/gone.cc, which does not exist"));
}

TEST(References, WalksNameWhatIsThere) {
  base::testing::TempDir directory;
  write(directory.path() / "src/base/a.cc", "void first() { second(); }  // third()\n");
  write(directory.path() / "src/base/b.cc", "void second();\nvoid third();\n");
  write(directory.path() / "src/base/c.cc", "void third();\n");
  const auto walk = [&](const std::string& files, const std::string& items) {
    write(directory.path() / "ARCHITECTURE.md",
          "**`assay run`** (" + files + " files)\n\n" + items);
    return dangling_references(directory.path());
  };
  EXPECT_THAT(walk("2",
                   "1. `src/base/a.cc`: `first()` calls `second()`, of `b.cc` (`c.cc`).\n"
                   "2. Here `third()`, of `b.cc` or `c.cc`, ends it.\n"),
              IsEmpty());
  EXPECT_THAT(walk("2", "1. `src/base/a.cc`: `third()`.\n2. `d.cc`\n\n## 1. `a.cc`\n"),
              ElementsAre("ARCHITECTURE.md:4: names d.cc, which does not exist",
                          "ARCHITECTURE.md:3: third() is not in src/base/a.cc",
                          "ARCHITECTURE.md:4: d.cc is not one file of the repository",
                          "ARCHITECTURE.md:1: says 2 files, its walk has 1"));
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
