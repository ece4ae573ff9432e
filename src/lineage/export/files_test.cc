// Unusual files in all formats: deleted, renamed, modified in place, or with names that are not
// UTF-8.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lineage/export/common.h"
#include "lineage/export/export.h"
#include "lineage/testing/sample_runs.h"

namespace assay::lineage {
namespace {

using base::Json;
using ::testing::ElementsAre;
using testing::input;
using testing::output;
using testing::subject_of;

std::string urn(const std::string& content) {
  return "urn:blake3:" + testing::digest_of(content).hex();
}

// As a reader gets it, so that what cannot be written shows.
Json read_back(ExportFormat format, std::vector<store::RunRecord> runs) {
  const std::string text = *export_text(format, subject_of(std::move(runs)));
  return Json::parse(text.substr(0, text.rfind('\n')));
}

std::map<std::string, Json> files_of(const Json& crate) {
  std::map<std::string, Json> files;
  for (const Json& entity : crate["@graph"]) {
    if (entity["@type"] != "File") continue;
    EXPECT_TRUE(files.emplace(entity["@id"], entity).second);
  }
  return files;
}

std::vector<std::string> keys_of(const std::map<std::string, Json>& files) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : files) keys.push_back(key);
  return keys;
}

TEST(ExportFiles, RoCrateNamesNoFileThatARunTookAway) {
  store::RunRecord make = testing::run(1, {"make"});
  make.outputs = {output("/project/kept", "k"), output("/project/moved", "m"),
                  output("/project/removed", "r"), output("/project/swapped", "old")};
  store::RunRecord move = testing::run(2, {"move"});
  move.inputs = {input("/project/removed", "r")};
  move.outputs = {output("/project/there", "m", store::OutputStatus::kRenamed),
                  output("/project/aside", "old", store::OutputStatus::kRenamed),
                  output("/project/swapped", "new"),
                  {"/project/removed", {}, 0, store::OutputStatus::kDeleted, ""},
                  {"/project/unseen", {}, 0, store::OutputStatus::kDeleted, ""}};
  move.outputs[0].from = "/project/moved";
  move.outputs[1].from = "/project/swapped";
  move.inputs.push_back({"/project/unseen", {}, 0});
  auto files = files_of(read_back(ExportFormat::kRoCrate, {make, move}));
  const std::string unseen = "urn:assay:file:unknown-" + move.uid + "/project/unseen";
  std::vector<std::string> expected = {"aside", "kept",   "swapped",  "there",
                                       unseen,  urn("m"), urn("old"), urn("r")};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(keys_of(files), expected);
  EXPECT_EQ(files[urn("m")]["alternateName"], "/project/moved");
  EXPECT_EQ(files[urn("m")]["name"], "moved");
  EXPECT_EQ(files[urn("r")]["alternateName"], "/project/removed");
  EXPECT_EQ(files[unseen]["alternateName"], "/project/unseen");
  EXPECT_EQ(files["swapped"]["identifier"], urn("new"));
}

TEST(ExportFiles, RoCrateGoesByTimeAndNotByTheOrderOfProducers) {
  store::RunRecord remove = testing::run(3, {"rm", "x"});
  remove.outputs = {{"/project/x", {}, 0, store::OutputStatus::kDeleted, ""}};
  store::RunRecord make = testing::run(2, {"make", "x"});
  make.outputs = {output("/project/x", "x")};
  const auto files = files_of(read_back(ExportFormat::kRoCrate, {remove, make}));
  EXPECT_THAT(keys_of(files), ElementsAre(urn("x")));
}

TEST(ExportFiles, RoCrateListsAllPathsOfAContent) {
  store::RunRecord copy = testing::run(1, {"copy"});
  copy.inputs = {input("/project/a\xff", "x"), input("/project/ro-crate-metadata.json", "x")};
  copy.outputs = {output("/project/b\xfe", "x")};
  auto files = files_of(read_back(ExportFormat::kRoCrate, {copy}));
  EXPECT_THAT(keys_of(files), ElementsAre(urn("x")));
  EXPECT_EQ(files[urn("x")]["alternateName"], Json({"file:///project/a%FF", "file:///project/b%FE",
                                                    "/project/ro-crate-metadata.json"}));
  EXPECT_EQ(files[urn("x")]["name"], "a%FF");
}

// Three names that are the same once bad bytes are replaced, and one that is what an escaped one
// looks like.
store::RunRecord alike() {
  store::RunRecord run = testing::run(1, {"cat"});
  run.inputs = {input("/project/i\xff", "1"), input("/project/i\xfe", "2"),
                input("/project/i%FF", "3")};
  run.outputs = {output("/project/o\xff", "4"), output("/project/o\xfe", "5"),
                 output("/project/o%FF", "6"),
                 output("/project/p", "7", store::OutputStatus::kRenamed)};
  run.outputs[3].from = "/project/q\xff";
  return run;
}

std::vector<std::string> names_in(const Json& list) {
  std::vector<std::string> names;
  for (const Json& one : list) names.push_back(one["name"]);
  return names;
}

TEST(ExportFiles, OpenLineageKeepsNamesApart) {
  const std::string text = *export_text(ExportFormat::kOpenLineage, subject_of({alike()}));
  const Json event = Json::parse(text.substr(text.find('\n') + 1));
  EXPECT_THAT(names_in(event["inputs"]),
              ElementsAre("file:///project/i%FF", "file:///project/i%FE", "/project/i%FF"));
  EXPECT_THAT(
      names_in(event["outputs"]),
      ElementsAre("file:///project/o%FF", "file:///project/o%FE", "/project/o%FF", "/project/p"));
  EXPECT_EQ(event["outputs"][3]["facets"]["lifecycleStateChange"]["previousIdentifier"]["name"],
            "file:///project/q%FF");
}

TEST(ExportFiles, InTotoKeepsNamesApart) {
  const Json statement = read_back(ExportFormat::kInToto, {alike()});
  EXPECT_THAT(
      names_in(statement["subject"]),
      ElementsAre("file:///project/o%FF", "file:///project/o%FE", "/project/o%FF", "/project/p"));
  EXPECT_EQ(statement["subject"][2]["uri"], "file:///project/o%25FF");
  EXPECT_THAT(names_in(statement["predicate"]["buildDefinition"]["resolvedDependencies"]),
              ElementsAre("file:///project/i%FF", "file:///project/i%FE", "/project/i%FF"));
}

TEST(ExportFiles, WhatWasWrittenIntoWentIntoTheResult) {
  store::RunRecord append = testing::run(1, {"sh", "-c", "echo x >> a"});
  append.outputs = {output("/project/a", "after", store::OutputStatus::kModified)};
  append.outputs[0].before = testing::digest_of("before");

  const Json crate = read_back(ExportFormat::kRoCrate, {append});
  auto files = files_of(crate);
  EXPECT_EQ(crate["@graph"][3]["object"], Json::array({{{"@id", urn("before")}}}));
  EXPECT_EQ(crate["@graph"][3]["result"], Json::array({{{"@id", "a"}}}));
  EXPECT_FALSE(files[urn("before")].contains("contentSize"));

  const Json statement = read_back(ExportFormat::kInToto, {append});
  const Json& needed = statement["predicate"]["buildDefinition"]["resolvedDependencies"];
  ASSERT_EQ(needed.size(), 1U);
  EXPECT_EQ(needed[0]["digest"]["blake3"], testing::digest_of("before").hex());

  const Json event = export_openlineage(subject_of({append}))[1];
  ASSERT_EQ(event["inputs"].size(), 1U);
  EXPECT_EQ(event["inputs"][0]["name"], "/project/a");
  EXPECT_EQ(event["inputs"][0]["facets"]["version"]["datasetVersion"],
            "blake3:" + testing::digest_of("before").hex());
  EXPECT_FALSE(event["inputs"][0]["facets"].contains("assay_file"));
}

}  // namespace
}  // namespace assay::lineage
