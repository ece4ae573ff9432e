#include "lineage/graph/result_variables.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace assay::lineage {
namespace {

TEST(ResultVariables, ByNameOrByItsBeginning) {
  for (const char* name :
       {"PYTHONHASHSEED", "CUBLAS_WORKSPACE_CONFIG", "OMP_NUM_THREADS", "LC_ALL"}) {
    EXPECT_TRUE(changes_results(name)) << name;
  }
  for (const char* name : {"PATH", "HOME", "PYTHONHASHSEEDS", "TF_CLI_CONFIG_FILE", "LC", ""}) {
    EXPECT_FALSE(changes_results(name)) << name;
  }
}

TEST(ResultVariables, DifferencesWithoutSecrets) {
  const auto found = result_variable_differences(
      {{"TZ", "UTC"}, {"HF_TOKEN", "[redacted]"}, {"LANG", "C"}, {"HOME", "/a"}},
      {{"TZ", "CET"}, {"HF_TOKEN", "x"}, {"LANG", "C"}, {"OMP_NUM_THREADS", "2"}});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name + found[0].recorded + found[0].here, "OMP_NUM_THREADS2");
  EXPECT_EQ(found[1].name + found[1].recorded + found[1].here, "TZUTCCET");
  EXPECT_TRUE(result_variable_differences({}, {{"TZ", "CET"}}).empty()) << "nothing was recorded";
}

}  // namespace
}  // namespace assay::lineage
