#include "compare/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace assay::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Scan, IsParsed) {
  const auto n = parse_scan("N=1, 2,4");
  ASSERT_TRUE(n) << n.error().line();
  EXPECT_EQ(n->name, "N");
  EXPECT_THAT(n->values, ElementsAre("1", "2", "4"));
  for (const char* bad : {"", "N", "=1", "N=", "N=1,,2", "N=1,1", "a b=1", "N=it's"}) {
    const auto parsed = parse_scan(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, base::ExitCode::kUsage) << bad;
  }
}

TEST(Scan, OneCommandGetsAnArmPerCombination) {
  Experiment e;
  e.arms = {{.name = "command",
             .command = "run {N} {M} {N}",
             .environment = {"K={M}"},
             .prepare = "warm {N}"}};
  const std::vector<ScanParameter> parameters = {*parse_scan("N=1,2"), *parse_scan("M=a/b,c")};
  const auto scan = with_arm_per_value(e, parameters);
  ASSERT_TRUE(scan) << scan.error().line();
  ASSERT_EQ(scan->arms.size(), 4U);
  EXPECT_THAT(scan->scanned, ElementsAre("N", "M"));
  EXPECT_EQ(scan->arms[0].name, "N=1,M=a_b");
  EXPECT_EQ(scan->arms[0].command, "run 1 a/b 1");
  EXPECT_THAT(scan->arms[0].environment, ElementsAre("K=a/b"));
  EXPECT_EQ(scan->arms[3].prepare, "warm 2");
  EXPECT_THAT(scan->arms[3].values, ElementsAre("2", "c"));
  EXPECT_TRUE(check(*scan));
  // Survives a journal.
  const auto again = experiment_from_json(to_json(*scan));
  ASSERT_TRUE(again) << again.error().line();
  EXPECT_EQ(to_json(*again), to_json(*scan));
}

TEST(Scan, SeveralArmsGetAnExperimentPerValue) {
  Experiment e;
  e.arms = {{"A", "a {N}"}, {"B", "b {N}"}};
  const std::vector<ScanParameter> parameters = {*parse_scan("N=1,2")};
  const auto points = experiment_per_value(e, parameters);
  ASSERT_TRUE(points) << points.error().line();
  ASSERT_EQ(points->size(), 2U);
  EXPECT_EQ(points->at(1).name, "N=2");
  EXPECT_EQ(points->at(1).experiment.arms[1].command, "b 2");
}

// Placeholders inside values are not replaced, and folder names never collide.
TEST(Scan, ValuesAreReplacedOnceAndNamesAreUnique) {
  Experiment e;
  e.arms = {{"A", "a {N} {M}"}, {"B", "b {N} {M}"}};
  const std::vector<ScanParameter> nested = {*parse_scan("N={M},x"), *parse_scan("M=1,{N}")};
  const auto points = experiment_per_value(e, nested);
  ASSERT_TRUE(points) << points.error().line();
  EXPECT_EQ(points->at(0).experiment.arms[0].command, "a {M} 1");
  EXPECT_EQ(points->at(1).experiment.arms[1].command, "b {M} {N}");
  EXPECT_EQ(points->at(3).experiment.arms[0].command, "a x {N}");
  EXPECT_EQ(points->at(3).experiment.arms[0].scanned_command, "a {N} {M}");
  const std::vector<ScanParameter> slashes = {
      {"N", {"a/b", "a_b", "a_b~2", std::string(400, 'x'), std::string(400, 'x') + "y"}},
      {"M", {"1"}}};
  const auto unique = experiment_per_value(e, slashes);
  ASSERT_TRUE(unique) << unique.error().line();
  std::set<std::string> names;
  for (const ScanPoint& point : *unique) {
    EXPECT_EQ(point.name.find('/'), std::string::npos);
    EXPECT_LT(point.name.size(), 250U);
    names.insert(point.name);
  }
  EXPECT_EQ(names.size(), 5U);
  e.arms.pop_back();
  const auto arms = with_arm_per_value(e, slashes);
  ASSERT_TRUE(arms);
  EXPECT_TRUE(check(*arms));
}

TEST(Scan, AParameterMustBeUsedOnce) {
  Experiment e;
  e.arms = {{"A", "a {N}"}};
  const std::vector<ScanParameter> other = {*parse_scan("M=1,2")};
  EXPECT_THAT(with_arm_per_value(e, other).error().line(), HasSubstr("no command contains '{M}'"));
  const std::vector<ScanParameter> twice = {*parse_scan("N=1,2"), *parse_scan("N=3")};
  EXPECT_THAT(with_arm_per_value(e, twice).error().line(), HasSubstr("'N' is given twice"));
}

}  // namespace
}  // namespace assay::compare
