#include "lineage/reproduce/choose_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "store/run_writer.h"
#include "store/testing/runs.h"

namespace assay::lineage {
namespace {

using store::testing::digest_of;
using store::testing::record;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Pair;

class ChooseRunsTest : public ::testing::Test {
 protected:
  ChosenRuns chosen(const std::string& name) {
    const auto artifact = resolve_artifact(store_, name, "/project");
    EXPECT_TRUE(artifact) << artifact.error().line();
    auto runs = choose_runs(store_, *artifact);
    EXPECT_TRUE(runs) << runs.error().line();
    return runs ? *std::move(runs) : ChosenRuns{};
  }
  static std::vector<store::RunId> ids(const ChosenRuns& chosen) {
    std::vector<store::RunId> found;
    for (const store::RunRecord& run : chosen.runs) found.push_back(run.id);
    return found;
  }

  base::testing::MemoryDir directory_;
  store::Store store_ = *store::Store::create(store::location_in(directory_.path()), {});
};

TEST_F(ChooseRunsTest, ProducersAndTheBuildsBefore) {
  store::RunRecord build = store::testing::run_of("make src=0 -> tool=9");
  build.build = true;
  ASSERT_TRUE(store::record_run(store_, build));
  record(store_, "prepare raw=1 -> clean=2");
  record(store_, "unrelated raw=1 -> other=3");
  record(store_, "train clean=2 -> model=4");
  record(store_, "evaluate model=4 -> score=5");
  EXPECT_THAT(ids(chosen("model")), ElementsAre(1, 2, 4));
  EXPECT_THAT(ids(chosen("clean")), ElementsAre(1, 2));
}

TEST_F(ChooseRunsTest, WhereContentsOfInputsWereSeen) {
  record(store_, "make -> a=1");
  record(store_, "use elsewhere=1 -> b=2");
  const ChosenRuns found = chosen("b");
  EXPECT_THAT(ids(found), ElementsAre(2));  // equal content at another path is no dependency
  EXPECT_THAT(found.places.at(digest_of("1")), IsSupersetOf({"/project/a", "/project/elsewhere"}));
  EXPECT_THAT(found.same_contents, ElementsAre(Pair(Pair(2, "/project/elsewhere"),
                                                    SameContent{.run = 1, .path = "/project/a"})));
  EXPECT_THAT(chosen("a").same_contents, IsEmpty());
}

TEST_F(ChooseRunsTest, WhatNoRunMadeCannotBeMadeAgain) {
  record(store_, "use raw=1 -> b=2");
  const auto refused = choose_runs(store_, *resolve_artifact(store_, "raw", "/project"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ExitCode::kUsage);
  EXPECT_THAT(refused.error().line(), HasSubstr("raw"));
}

}  // namespace
}  // namespace assay::lineage
