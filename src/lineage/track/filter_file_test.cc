#include "lineage/track/filter_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"

namespace assay::lineage {
namespace {

TEST(FilterFile, ALineIsAPatternAndAMarkTurnsItRound) {
  const base::testing::TempDir dir;
  std::ofstream(dir.path() / kFilterFile) << "# scratch\n*.log\n\n!important.log  \r\n\\#odd\n!\n";
  const auto choices = read_filter_file(dir.path());
  ASSERT_TRUE(choices) << choices.error().line();
  ASSERT_EQ(choices->size(), 3U);
  EXPECT_EQ((*choices)[0].pattern, "*.log");
  EXPECT_FALSE((*choices)[0].keep);
  EXPECT_EQ((*choices)[1].pattern, "important.log");
  EXPECT_TRUE((*choices)[1].keep);
}

TEST(FilterFile, NoFileIsNoRules) {
  const base::testing::TempDir dir;
  const auto choices = read_filter_file(dir.path());
  ASSERT_TRUE(choices);
  EXPECT_TRUE(choices->empty());
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
  auto choices = read_filter_file(dir.path());
  ASSERT_TRUE(choices);
  Filter filter({.root = dir.path(), .choices = *choices});
  const auto kept = [&](const char* name) {
    return filter.rule(filter.judge((dir.path() / name).string())).keep;
  };
  EXPECT_FALSE(kept("a.log"));
  EXPECT_TRUE(kept("keep.log"));
  EXPECT_TRUE(kept("data.csv"));
}

}  // namespace
}  // namespace assay::lineage
