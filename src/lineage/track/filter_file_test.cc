#include "lineage/track/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"

namespace assay::lineage {
namespace {

TEST(FilterFile, ALineIsAPatternAndAMarkTurnsItRound) {
  const base::testing::TempDir dir;
  std::ofstream(dir.path() / kFilterFile) << "# scratch\n*.log\n\n!important.log  \r\n\\#odd\n!\n";
  const auto user_rules = read_filter_file(dir.path());
  ASSERT_TRUE(user_rules) << user_rules.error().line();
  ASSERT_EQ(user_rules->size(), 3U);
  EXPECT_EQ((*user_rules)[0].pattern, "*.log");
  EXPECT_FALSE((*user_rules)[0].keep);
  EXPECT_EQ((*user_rules)[1].pattern, "important.log");
  EXPECT_TRUE((*user_rules)[1].keep);
}

TEST(FilterFile, NoFileIsNoRules) {
  const base::testing::TempDir dir;
  const auto user_rules = read_filter_file(dir.path());
  ASSERT_TRUE(user_rules);
  EXPECT_TRUE(user_rules->empty());
}

TEST(FilterFile, WhatCannotBeReadIsSaid) {
  const base::testing::TempDir dir;
  std::filesystem::create_directory(dir.path() / kFilterFile);
  EXPECT_FALSE(read_filter_file(dir.path()));
}

// The later rule wins, so the command line goes after the file.
TEST(FilterFile, WorksInTheFilter) {
  const base::testing::TempDir dir;
  std::ofstream(dir.path() / kFilterFile) << "*.log\n!keep.log\n";
  auto user_rules = read_filter_file(dir.path());
  ASSERT_TRUE(user_rules);
  Filter filter({.root = dir.path(), .user_rules = *user_rules});
  const auto kept = [&](const char* name) {
    return filter.rule(filter.rule_for((dir.path() / name).string())).keep;
  };
  EXPECT_FALSE(kept("a.log"));
  EXPECT_TRUE(kept("keep.log"));
  EXPECT_TRUE(kept("data.csv"));
}

}  // namespace
}  // namespace assay::lineage
