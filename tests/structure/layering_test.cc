// The include graph keeps to src/LAYERS, and the check notices when it does not.
#include "structure/layering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <set>

#include "base/testing/temp_dir.h"
#include "structure/source_tree.h"

namespace assay::structure {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A copy of this repository's sources, to break. Copying takes most of the time, so there is one
// for all cases; what a case breaks is as in the repository again after it.
class CopiedTree : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<base::testing::TempDir>();
    fs::copy(kRepository / "src", root() / "src", fs::copy_options::recursive);
    fs::copy(kRepository / "apps", root() / "apps", fs::copy_options::recursive);
  }
  static void TearDownTestSuite() {
    EXPECT_THAT(problems(root()), IsEmpty()) << "a case left something broken";
    directory_.reset();
  }
  void TearDown() override {
    for (const fs::path& file : broken_) {
      const fs::path original = kRepository / file;
      if (fs::exists(original)) {
        fs::copy_file(original, root() / file, fs::copy_options::overwrite_existing);
      } else {
        fs::remove(root() / file);
      }
    }
  }
  static fs::path root() { return directory_->path(); }
  void append(const std::string& file, const std::string& line) {
    broken_.insert(file);
    fs::create_directories((root() / file).parent_path());
    std::ofstream(root() / file, std::ios::app) << line << "\n";
  }

 private:
  static inline std::unique_ptr<base::testing::TempDir> directory_;
  std::set<fs::path> broken_;
};

TEST(Layering, TheRepositoryKeepsToItsLayers) {
  EXPECT_THAT(problems(kRepository), IsEmpty());
}

TEST_F(CopiedTree, IsCleanBeforeItIsBroken) {
  EXPECT_THAT(problems(root()), IsEmpty());
}

TEST_F(CopiedTree, AnIncludeUpwardIsFound) {
  append("src/base/error.cc", "#include \"spec/load.h\"");
  EXPECT_THAT(problems(root()), ElementsAre(::testing::AllOf(
                                    StartsWith("src/base/error.cc:"),
                                    ::testing::HasSubstr("must not include \"spec/load.h\""))));
}

TEST_F(CopiedTree, AnIncludeSidewaysIsFound) {
  append("src/store/store.h", "  #  include \"spec/load.h\"");
  EXPECT_THAT(problems(root()), ElementsAre(StartsWith("src/store/store.h:")));
}

TEST_F(CopiedTree, SqlOutsideTheStoreIsFound) {
  append("src/spec/load.cc", "#include <sqlite3.h>");
  append("apps/assay/main.cc", "#include <sqlite3.h>");
  EXPECT_THAT(problems(root()),
              ElementsAre(StartsWith("apps/assay/main.cc:"), StartsWith("src/spec/load.cc:")));
}

TEST_F(CopiedTree, AHeaderOwnedByOneFileIsFoundInItsNeighbour) {
  append("src/spec/load.cc", "#include <toml++/toml.h>");
  append("src/spec/toml.cc", "#include <toml++/toml.h>");
  EXPECT_THAT(problems(root()), ElementsAre(StartsWith("src/spec/load.cc:")));
}

TEST_F(CopiedTree, IncludingTheProgramIsFound) {
  append("src/spec/load.cc", "#include \"apps/assay/verb.h\"");
  EXPECT_THAT(problems(root()), ElementsAre(::testing::HasSubstr("knows neither apps nor tests")));
}

TEST_F(CopiedTree, AVerbThatIncludesAnotherIsFound) {
  append("apps/assay/gc/gc.cc", "#include \"assay/show/print_run.h\"");
  append("apps/assay/report/report.cc", "#include \"assay/plan/job.h\"");  // may
  append("apps/assay/shared/run_text.h", "#include \"assay/show/print_run.h\"");
  append("apps/assay/project.h", "#include \"assay/show/print_run.h\"");
  EXPECT_THAT(problems(root()),
              ElementsAre(StartsWith("apps/assay/gc/gc.cc:"), StartsWith("apps/assay/project.h:"),
                          StartsWith("apps/assay/shared/run_text.h:")));
}

TEST_F(CopiedTree, ClimbingOutIsFound) {
  append("src/spec/load.cc", "#include \"../store/store.h\"");
  EXPECT_THAT(problems(root()), ElementsAre(::testing::HasSubstr("climbs out")));
}

TEST_F(CopiedTree, AHeaderWithoutItsModuleIsFound) {
  append("src/spec/load.cc", "#include \"value.h\"");
  EXPECT_THAT(problems(root()), ElementsAre(::testing::HasSubstr("in no module")));
}

TEST_F(CopiedTree, AModuleThatIsNotListedIsFound) {
  append("src/shed/shed.cc", "#include <vector>");
  EXPECT_THAT(problems(root()), ElementsAre("src/shed/shed.cc: in no module of src/LAYERS"));
}

TEST_F(CopiedTree, AnIncludeUpwardInsideALibraryIsFound) {
  append("src/lineage/redact/command.cc", "#include \"lineage/record/recorder.h\"");
  EXPECT_THAT(problems(root()), ElementsAre(StartsWith("src/lineage/redact/command.cc:")));
}

TEST_F(CopiedTree, ATestMayIncludeItsWholeLibraryAndNothingAboveIt) {
  append("src/lineage/redact/command_test.cc", "#include \"lineage/record/recorder.h\"");
  append("src/lineage/redact/command_test.cc", "#include \"report/page.h\"");
  EXPECT_THAT(problems(root()), ElementsAre(::testing::HasSubstr("\"report/page.h\"")));
}

TEST(Layering, AModuleMayOnlyUseModulesListedAboveIt) {
  base::testing::TempDir directory;
  write(directory.path() / "src/LAYERS", "low | high | x\nhigh | | y\n");
  EXPECT_THAT(problems(directory.path()),
              ElementsAre("src/LAYERS:1: low uses high, which is not listed above it"));
}

TEST(Layering, WhatAModuleMayUseIsUsed) {
  base::testing::TempDir directory;
  write(directory.path() / "src/LAYERS",
        "low | | x\nmiddle | low | y\nhigh | low middle | z\nreserved | low | not written\n");
  write(directory.path() / "src/middle/a_test.cc", "#include \"low/a.h\"\n");
  write(directory.path() / "src/high/a.cc", "#include \"middle/a.h\"\n");
  EXPECT_THAT(problems(directory.path()),
              ElementsAre("src/LAYERS:3: high may use low, but does not"));
  write(directory.path() / "src/high/a.cc", "#include \"middle/a.h\"\n#include \"low/a.h\"\n");
  EXPECT_THAT(problems(directory.path()), IsEmpty());
}

TEST(Layering, WhatAVerbMayUseIsUsed) {
  base::testing::TempDir directory;
  write(directory.path() / "src/LAYERS", "@report | plan | x\n");
  EXPECT_THAT(problems(directory.path()),
              ElementsAre("src/LAYERS:1: @report may use plan, but does not"));
  write(directory.path() / "apps/assay/report/a.cc", "#include \"assay/plan/a.h\"\n");
  EXPECT_THAT(problems(directory.path()), IsEmpty());
}

TEST(Layering, AMissingFileIsAProblemNotASuccess) {
  base::testing::TempDir directory;
  EXPECT_THAT(problems(directory.path()), ElementsAre(::testing::HasSubstr("cannot be read")));
}

}  // namespace
}  // namespace assay::structure
