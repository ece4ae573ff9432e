#include "lineage/filter/tool_files.h"

#include <gtest/gtest.h>

namespace assay::lineage {
namespace {

TEST(ToolFiles, FoldersAtAnyDepthAndNames) {
  const ToolFiles files("# a comment\n\n.dvc/tmp/\npip-*/\n*.swp\n.~*.ipynb\n");
  EXPECT_TRUE(files.has_folder("/p/.dvc/tmp"));
  EXPECT_TRUE(files.has_folder("/p/q/.dvc/tmp/exps/x"));
  EXPECT_TRUE(files.has_folder("/tmp/pip-install-x1/numpy"));
  EXPECT_FALSE(files.has_folder("/p/.dvc"));
  EXPECT_FALSE(files.has_folder("/p/tmp"));
  EXPECT_FALSE(files.has_folder("/p/.dvc/other/tmp"));
  EXPECT_TRUE(files.has_name(".train.py.swp"));
  EXPECT_TRUE(files.has_name(".~a.ipynb"));
  EXPECT_FALSE(files.has_name("train.py"));
  EXPECT_FALSE(files.has_name("swp"));
}

TEST(ToolFiles, WhatPeopleMakeIsNotAmongTheKnownOnes) {
  for (const char* name : {"model.bin", "poetry.lock", "package-lock.json", "dvc.lock", "a.ipynb",
                           "Makefile", "x.tmp", "pip.txt"}) {
    EXPECT_FALSE(ToolFiles::known().has_name(name)) << name;
  }
  EXPECT_FALSE(ToolFiles::known().has_folder("/home/ann/project/data/cache"));
  EXPECT_TRUE(ToolFiles::known().has_folder("/home/ann/project/.dvc/tmp/rwlock"));
  EXPECT_TRUE(ToolFiles::known().has_name("notes.txt~"));
}

}  // namespace
}  // namespace assay::lineage
