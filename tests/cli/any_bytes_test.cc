// Paths that are not UTF-8, in the --json of every verb that shows them: two files must not look
// the same, and each must be found again.
#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "cli/recorded_project.h"
#include "store/testing/runs.h"
#include "support/process.h"

namespace assay {
namespace {

using base::Json;

// Latin-1 é and è: both are shown as U+FFFD.
const std::string kIn = "caf\xe9";
const std::string kOut = "caf\xe8";

class AnyBytesCli : public ::testing::Test {
 protected:
  AnyBytesCli() {
    store::RunRecord run = project_.describe("copy x=1 -> y=1");
    run.inputs[0].path = absolute(kIn);
    run.outputs[0].path = absolute(kOut);
    run.outputs.push_back({absolute("plain é"), store::testing::digest_of("1"), 1,
                           store::OutputStatus::kRenamed, absolute(kIn)});
    for (const std::string& name : {kIn, kOut}) std::ofstream(project_.path() / name) << "1";
    std::ofstream(project_.path() / "plain é") << "1";
    project_.record(run);
  }
  std::string absolute(const std::string& name) { return (project_.path() / name).string(); }
  Json json(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), support::program());
    arguments.emplace_back("--json");
    const auto outcome = support::run({arguments, "", project_.path()});
    EXPECT_EQ(outcome.err, "");
    return Json::parse(outcome.out);
  }
  std::string in_project(const std::string& escaped) {
    return project_.path().string() + "/" + escaped;
  }

  RecordedProject project_;
};

TEST_F(AnyBytesCli, Show) {
  const Json shown = json({"show"});
  EXPECT_EQ(shown["inputs"][0]["path"], in_project("caf\uFFFD"));
  EXPECT_EQ(shown["inputs"][0]["path_escaped"], in_project("caf%E9"));
  EXPECT_EQ(shown["outputs"][0]["path_escaped"], in_project("caf%E8"));
  const Json& renamed = shown["outputs"][1];
  EXPECT_EQ(renamed["path"], absolute("plain é"));
  EXPECT_FALSE(renamed.contains("path_escaped"));
  EXPECT_EQ(renamed["from_escaped"], in_project("caf%E9"));
}

TEST_F(AnyBytesCli, DagAndLineage) {
  std::vector<std::string> paths;
  const Json dag = json({"dag"});
  for (const Json& file : dag["files"]) paths.push_back(file.value("path_escaped", ""));
  EXPECT_EQ(std::count(paths.begin(), paths.end(), in_project("caf%E9")), 1);
  EXPECT_EQ(std::count(paths.begin(), paths.end(), in_project("caf%E8")), 1);
  EXPECT_EQ(json({"dag", "--format", "json"}), dag);
  EXPECT_EQ(json({"lineage", kOut, "--up"})["artifact"]["path_escaped"], in_project("caf%E8"));
}

TEST_F(AnyBytesCli, Status) {
  std::ofstream(project_.path() / kOut) << "2";
  const Json stage = json({"status"})["stages"][0];
  ASSERT_EQ(stage["reasons"].size(), stage["why"].size()) << stage;
  ASSERT_FALSE(stage["reasons"].empty()) << stage;
  EXPECT_EQ(stage["reasons"][0]["path_escaped"], in_project("caf%E8"));
  EXPECT_EQ(stage["reasons"][0]["stage"], nullptr);
}

TEST_F(AnyBytesCli, Diff) {
  store::RunRecord other = project_.describe("copy x=1 -> z=1");
  project_.record(other);
  std::vector<std::string> escaped;
  const Json found = json({"diff", "1", "2"});
  for (const Json& one : found["differences"]) {
    if (one.contains("what_escaped")) escaped.push_back(one["what_escaped"]);
  }
  EXPECT_EQ(escaped, (std::vector{in_project("caf%E9"), in_project("caf%E8")}));
}

TEST_F(AnyBytesCli, ThereIsNothingMoreWhereAllIsUtf8) {
  RecordedProject plain;
  plain.record("copy x=1 -> grün=1");
  const auto outcome = support::run({{support::program(), "show", "--json"}, "", plain.path()});
  EXPECT_EQ(outcome.out.find("_escaped"), std::string::npos);
}

}  // namespace
}  // namespace assay
