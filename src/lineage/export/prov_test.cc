// Checks PROV documents against those PROV-CONSTRAINTS that runs could violate: by running again,
// or by reading their own outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lineage/export/export.h"
#include "lineage/testing/sample_runs.h"

namespace assay::lineage {
namespace {

using base::Json;
using testing::input;
using testing::output;
using testing::subject_of;

store::RunRecord make(store::RunId id) {
  store::RunRecord run = testing::run(id, {"make"});
  run.outputs = {output("/project/a", "same")};
  return run;
}

store::RunRecord use(store::RunId id) {
  store::RunRecord run = testing::run(id, {"use"});
  run.inputs = {input("/project/a", "same")};
  return run;
}

// Checks generation-uniqueness, typing and irreflexivity of specialization over all documents
// together, because a reader may merge them.
void expect_valid(const std::vector<Json>& documents) {
  std::map<std::string, std::string> generated_by;
  for (const Json& document : documents) {
    for (const Json& one : document.value("wasGeneratedBy", Json::object())) {
      const std::string entity = one["prov:entity"], activity = one["prov:activity"];
      EXPECT_TRUE(document["entity"].contains(entity));
      const auto [at, is_new] = generated_by.emplace(entity, activity);
      EXPECT_TRUE(is_new || at->second == activity) << entity << " is generated twice";
    }
    for (const Json& one : document.value("used", Json::object())) {
      EXPECT_TRUE(document["entity"].contains(one["prov:entity"].get<std::string>()));
    }
    for (const Json& one : document.value("specializationOf", Json::object())) {
      const std::string specific = one["prov:specificEntity"], general = one["prov:generalEntity"];
      EXPECT_TRUE(document["entity"].contains(specific) && document["entity"].contains(general));
      EXPECT_NE(specific, general);
    }
  }
}

std::string used_by(const Json& document, const store::RunRecord& run) {
  for (const Json& one : document["used"]) {
    if (one["prov:activity"] == "run:" + run.uid) return one["prov:entity"];
  }
  return "";
}

TEST(ExportProv, WhatIsMadeAgainIsAnotherEntity) {
  const Json together = export_prov(subject_of({make(1), use(2), make(3), use(4)}));
  EXPECT_EQ(together["wasGeneratedBy"].size(), 2U);
  expect_valid({together, export_prov(subject_of({make(1)})), export_prov(subject_of({make(3)})),
                export_prov(subject_of({use(4)}))});
  // Each reader has what was there when it ran, and both came from the same content at that path.
  EXPECT_NE(used_by(together, use(2)), used_by(together, use(4)));
  std::map<std::string, std::string> general;
  for (const Json& one : together["specializationOf"]) {
    general[one["prov:specificEntity"]] = one["prov:generalEntity"];
  }
  EXPECT_EQ(general[used_by(together, use(2))], general[used_by(together, use(4))]);
  // A document without the producing run refers to the content.
  EXPECT_EQ(used_by(export_prov(subject_of({use(4)})), use(4)), general.begin()->second);
}

TEST(ExportProv, WhatARunLeavesIsNotWhatItRead) {
  store::RunRecord rewrite = make(1);
  rewrite.inputs = {input("/project/a", "same"), {"/project/b", {}, 0}};
  rewrite.outputs.push_back({"/project/b", {}, 0, store::OutputStatus::kModified, ""});
  const Json document = export_prov(subject_of({rewrite}));
  expect_valid({document});
  std::set<std::string> used;
  for (const Json& one : document["used"]) used.insert(one["prov:entity"]);
  for (const Json& one : document["wasGeneratedBy"]) {
    EXPECT_FALSE(used.contains(one["prov:entity"].get<std::string>()));
  }
  EXPECT_FALSE(document.contains("wasInformedBy"));
}

}  // namespace
}  // namespace assay::lineage
