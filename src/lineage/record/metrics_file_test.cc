#include "lineage/record/metrics_file.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/json.h"

namespace assay::lineage {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(MetricsLine, WhatIsUnderstood) {
  Reported reported;
  EXPECT_TRUE(
      read_metrics_line(R"({"step": 3, "metrics": {"a": 1.5, "b": true, "c": null}})", reported));
  EXPECT_TRUE(
      read_metrics_line(R"({"parameters": {"lr": 0.1, "name": "x y", "on": false}})", reported));
  EXPECT_TRUE(read_metrics_line(R"({"parameters": {"lr": 1}, "metrics": {"d": -2}})", reported));
  ASSERT_EQ(reported.rows.size(), 2U);
  EXPECT_EQ(reported.rows[0].step, 3);
  EXPECT_EQ(reported.rows[0].values[0].value, 1.5);
  EXPECT_EQ(reported.rows[0].values[1].unit, store::kFlag);
  EXPECT_TRUE(std::isnan(reported.rows[0].values[2].value));
  EXPECT_EQ(reported.rows[1].step, 0);
  EXPECT_THAT(reported.parameters,
              ElementsAre(Pair("lr", "1"), Pair("name", "x y"), Pair("on", "false")));
}

TEST(MetricsLine, SecretsAmongParametersAreRedacted) {
  const std::string token = std::string("ghp") + "_16C7e42F292c6912E7710c838347Ae178B4a";
  Reported reported;
  const base::Json parameters = {{"api_key", "swordfish"}, {"data", "https://me:opensesame@host/x"},
                                 {"login", token},         {token, 1},
                                 {"max_tokens", 4096},     {"optimizer", "adamw"}};
  ASSERT_TRUE(read_metrics_line(base::Json{{"parameters", parameters}}.dump(), reported));
  EXPECT_THAT(reported.parameters,
              ElementsAre(Pair("[redacted]", "1"), Pair("api_key", "[redacted]"),
                          Pair("data", "https://me:[redacted]@host/x"), Pair("login", "[redacted]"),
                          Pair("max_tokens", "4096"), Pair("optimizer", "adamw")));
}

TEST(MetricsLine, WhatIsNot) {
  const std::string long_name(201, 'x');
  for (const std::string& line :
       {std::string(), std::string("nonsense"), std::string("[]"), std::string("{}"),
        std::string(R"({"loss": 1})"), std::string(R"({"metrics": 1})"),
        std::string(R"({"metrics": {"a": "1"}})"), std::string(R"({"metrics": {"": 1}})"),
        std::string(R"({"metrics": {"a,b": 1}})"), std::string(R"({"metrics": {"a": [1]}})"),
        std::string(R"({"step": 1.5, "metrics": {"a": 1}})"),
        std::string(R"({"step": "1", "metrics": {"a": 1}})"),
        std::string(R"({"parameters": {"a": {}}})"),
        std::string(R"({"parameters": {"a": 1}, "metrics": {"b": "c"}})"),
        std::string(R"({"step": 18446744073709551615, "metrics": {"a": 1}})"),
        R"({"metrics": {")" + long_name + R"(": 1}})"}) {
    Reported reported;
    EXPECT_FALSE(read_metrics_line(line, reported)) << line;
    EXPECT_TRUE(reported.rows.empty() && reported.parameters.empty()) << line;
  }
}

RC_GTEST_PROP(MetricsLineProperty, AnyBytesAreReadOrRefused, (const std::string& bytes)) {
  Reported reported;
  const bool understood = read_metrics_line(bytes, reported);
  RC_ASSERT(understood || (reported.rows.empty() && reported.parameters.empty()));
}

RC_GTEST_PROP(MetricsLineProperty, EveryNumberComesBack, (double value, std::int64_t step)) {
  RC_PRE(std::isfinite(value));
  Reported reported;
  const base::Json line = {{"step", step}, {"metrics", {{"m", value}}}};
  RC_ASSERT(read_metrics_line(line.dump(), reported));
  RC_ASSERT(reported.rows.at(0).step == step);
  RC_ASSERT(reported.rows.at(0).values.at(0).value == value);
}

}  // namespace
}  // namespace assay::lineage
