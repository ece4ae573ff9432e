// Recorded, asked and made again with the program itself: run, reproduce and export together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::HasSubstr;

class ReproduceCli : public ::testing::Test {
 protected:
  void SetUp() override {
    shell(
        "git init -q . && printf 'b\\na\\nc\\n' > raw.txt && echo 'sort raw.txt' > s.sh && git add "
        ". &&"
        " git -c user.name=a -c user.email=a@b commit -qm x && echo 'sort -r raw.txt' > s.sh");
    shell("$ASSAY run -- sh s.sh > sorted.txt");
    shell("$ASSAY run --name upper -- tr a-z A-Z < sorted.txt > upper.txt");
  }
  support::ProcessResult shell(const std::string& script) {
    auto outcome = support::run(
        {{"sh", "-c", "ASSAY='" + support::program() + "'; " + script}, "", project_.path()});
    EXPECT_TRUE(outcome.exit_code < 3 || outcome.exit_code == 64) << script << ": " << outcome.err;
    return outcome;
  }
  static Json only_stage(const Json& document, std::size_t i) {
    return document["reproduction"]["stages"][i]["outputs"];
  }

  base::testing::TempDir project_;
};

TEST_F(ReproduceCli, PlanChangesNothing) {
  const auto outcome = shell("$ASSAY reproduce upper.txt --json; ls");
  const Json plan = Json::parse(outcome.out.substr(0, outcome.out.rfind('}') + 1));
  ASSERT_EQ(plan["stages"].size(), 2U);
  EXPECT_EQ(plan["stages"][0]["command"], Json({"sh", "s.sh"}));
  EXPECT_TRUE(plan["stages"][0]["source"]["dirty"]);
  EXPECT_EQ(plan["obstacles"].size(), 0U);
  EXPECT_THAT(outcome.out, HasSubstr("raw.txt\ns.sh\nsorted.txt\nupper.txt\n"));
}

// Of what is the same, the project has it already.
TEST_F(ReproduceCli, TheTemporaryFolderIsKeptWhereItHasSomethingNew) {
  const auto copies = [&](const std::string& arguments) {
    const auto outcome = shell("mkdir -p tmp; TMPDIR=$PWD/tmp $ASSAY reproduce " + arguments +
                               " --run --json 2>/dev/null | sed -n 's/^    \"directory\": //p';"
                               " ls tmp | wc -l; rm -rf tmp");
    return outcome.out;
  };
  EXPECT_EQ(copies("upper.txt"), "null,\n0\n");
  EXPECT_THAT(shell("$ASSAY reproduce upper.txt --run").out,
              HasSubstr("the copy was removed; --directory DIR keeps it"));
  const auto kept = shell("$ASSAY reproduce upper.txt --run --directory kept; ls kept; rm -r kept");
  EXPECT_THAT(kept.out, HasSubstr("/kept\n"));
  EXPECT_THAT(kept.out, HasSubstr("upper.txt\n"));
  shell("mv upper.txt away");
  EXPECT_THAT(copies("upper.txt"), HasSubstr("/tmp/assay-reproduce-")) << "the only place";
  shell("$ASSAY run -- sh -c 'cp sorted.txt same; date +%N > new'");
  EXPECT_THAT(copies("same"), HasSubstr("/tmp/assay-reproduce-")) << "another output differs";
}

TEST_F(ReproduceCli, MadeAgainAfterTheSourceMovedOn) {
  shell(
      "echo false > s.sh; echo other > raw.txt; git -c user.name=a -c user.email=a@b commit -qam "
      "y");
  const auto outcome = shell(
      "$ASSAY reproduce upper.txt --run --json --directory ../$$-copy 2>/dev/null;"
      " rm -rf ../$$-copy");
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document["verdict"], "identical") << outcome.out;
  EXPECT_EQ(only_stage(document, 0)[0]["verdict"], "identical");
  EXPECT_EQ(only_stage(document, 1)[0]["verdict"], "identical");
}

TEST_F(ReproduceCli, WhatIsRandomIsDifferent) {
  shell("$ASSAY run -- sh -c 'date +%s%N > now.txt'");
  const auto outcome = shell("$ASSAY reproduce now.txt --run --directory copy");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("not reproduced"));
}

TEST_F(ReproduceCli, OneLineForWhatIsWrong) {
  EXPECT_EQ(shell("$ASSAY reproduce nothing").exit_code, 64);
  EXPECT_THAT(shell("$ASSAY reproduce raw.txt").err,
              HasSubstr("no recorded run made this content"));
  EXPECT_THAT(shell("$ASSAY reproduce upper.txt --run --directory .").err, HasSubstr("not empty"));
  EXPECT_THAT(shell("$ASSAY export").err, HasSubstr("--format is missing"));
  EXPECT_THAT(shell("$ASSAY export --format provenance").err, HasSubstr("unknown format"));
}

TEST_F(ReproduceCli, ExportsOfARecordedFile) {
  for (const char* format : {"prov", "ro-crate", "in-toto"}) {
    const auto outcome = shell(std::string("$ASSAY export upper.txt --format ") + format);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_TRUE(Json::parse(outcome.out).is_object()) << format;
    EXPECT_EQ(shell(std::string("$ASSAY export upper.txt --format ") + format).out, outcome.out);
  }
  std::istringstream lines(shell("$ASSAY export upper.txt --format openlineage").out);
  int events = 0;
  for (std::string line; std::getline(lines, line); ++events) EXPECT_TRUE(Json::accept(line));
  EXPECT_EQ(events, 4);
  EXPECT_EQ(shell("$ASSAY export last --format prov -o out.json").exit_code, 0);
  EXPECT_TRUE(fs::exists(project_.path() / "out.json"));
  EXPECT_EQ(shell("$ASSAY export upper.txt --format prov -o o").out, "o: prov of 2 runs\n");
  EXPECT_EQ(shell("$ASSAY export upper.txt --format in-toto -o o").out,
            "o: in-toto of 1 run, the last of 2\n");
  EXPECT_EQ(Json::parse(shell("$ASSAY export upper.txt --format in-toto -o o --json").out)["runs"],
            1);
}

TEST_F(ReproduceCli, NoExportHasThePasswordOfTheRemote) {
  shell("git remote add origin https://ann:hunter2@example.org/p.git");
  shell("$ASSAY run -- sh -c 'sort raw.txt > z'");
  for (const char* format : {"prov", "ro-crate", "in-toto", "openlineage"}) {
    EXPECT_THAT(shell(std::string("$ASSAY export z --format ") + format).out,
                ::testing::Not(HasSubstr("hunter2")));
  }
  EXPECT_THAT(shell("$ASSAY export z --format in-toto").out,
              HasSubstr("\"git+https://example.org/p.git\""));
}

// A stage that makes an environment leaves thousands of files that never come out alike.
TEST_F(ReproduceCli, OtherOutputsAreALinePerFolderAndTheVerdictIsLast) {
  shell(
      "$ASSAY run -- bash -c 'mkdir -p env few; for i in {1..40}; do mkdir env/$i; "
      "echo $RANDOM$RANDOM$i > env/$i/f; done; date +%N > few/one; echo same > same'");
  const auto outcome = shell("$ASSAY reproduce same --run --directory copy 2>/dev/null");
  EXPECT_THAT(outcome.out, HasSubstr("40 files in "));
  EXPECT_THAT(outcome.out, HasSubstr("/env/\n"));
  EXPECT_THAT(outcome.out, HasSubstr("/few/one\n"));
  EXPECT_EQ(outcome.out.find("/env/1/f"), std::string::npos);
  const std::string::size_type last = outcome.out.rfind('\n', outcome.out.size() - 2);
  EXPECT_THAT(outcome.out.substr(last + 1), ::testing::StartsWith("reproduced: ")) << outcome.out;
}

}  // namespace
}  // namespace assay
