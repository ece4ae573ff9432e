#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "plan/calibrate/calibration.h"

namespace assay::plan {
namespace {

using base::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Json shipped_json() {
  return Json::parse(to_json(shipped_calibration()));
}

// What is said about a file with this in it, as one line.
std::string refusal(const std::string& text) {
  const auto read = calibration_from_json(text, "mine.json");
  return read ? "accepted" : read.error().line();
}

TEST(CalibrationJson, IsReadAsItWasWritten) {
  Calibration written = shipped_calibration();
  written.constants.gemm_eff = 0.8765432109876543;
  written.memory.work = 0.1 + 0.2;
  written.intervals.by_class[3] = {.low = 0.5, .high = 1.75, .rows = 12, .projects = 3};
  written.seen.projects[1][2][0] = 77;
  const SeenRange some{.low = 8, .high = 3072};
  written.seen.ranges[2] = {
      .parameters = some, .ranks = some, .sequence = some, .card_flops = some};
  const std::string text = to_json(written);
  const auto read = calibration_from_json(text, "mine.json");
  ASSERT_TRUE(read) << read.error().line();
  EXPECT_EQ(read->constants.gemm_eff, written.constants.gemm_eff);
  EXPECT_EQ(read->memory.work, written.memory.work);
  EXPECT_EQ(read->intervals.by_class[3].rows, 12);
  EXPECT_EQ(read->intervals.by_class[3].projects, 3);
  EXPECT_EQ(read->seen.projects[1][2][0], 77);
  EXPECT_EQ(read->seen.ranges[2].ranks.high, 3072);
  EXPECT_EQ(to_json(*read), text);
}

TEST(CalibrationJson, NamesFileKeyAndWhatIsExpected) {
  Json json = shipped_json();
  json["constants"]["gemm_eff"] = 1.5;
  EXPECT_EQ(refusal(json.dump()),
            "mine.json: constants.gemm_eff: 1.5; expected a number from 0.75 to 1");
  json["constants"].erase("gemm_eff");
  EXPECT_EQ(refusal(json.dump()),
            "mine.json: constants.gemm_eff: missing; expected a number from 0.75 to 1");
}

TEST(CalibrationJson, RefusesUnknownKeys) {
  Json json = shipped_json();
  json["constants"]["gem_eff"] = 0.9;
  EXPECT_THAT(refusal(json.dump()),
              AllOf(HasSubstr("unknown key 'gem_eff'"), HasSubstr("did you mean 'gemm_eff'?")));
  json = shipped_json();
  json["fast"] = true;
  EXPECT_THAT(refusal(json.dump()), HasSubstr("unknown key 'fast'"));
  json = shipped_json();
  json["intervals"]["tpu"] = Json::object();
  EXPECT_THAT(refusal(json.dump()), HasSubstr("mine.json: intervals: unknown key 'tpu'"));
}

TEST(CalibrationJson, RefusesWhatIsNotANumberWithinBounds) {
  for (const Json& bad : {Json("0.9"), Json(nullptr), Json(true), Json::array({1}), Json(-1e308),
                          Json(std::string(100'000, 'x'))}) {
    Json json = shipped_json();
    json["memory"]["base_gib"] = bad;
    EXPECT_THAT(refusal(json.dump()),
                AllOf(HasSubstr("memory.base_gib"), HasSubstr("expected a number from 1.5 to 10")));
  }
}

TEST(CalibrationJson, RefusesIntervalsTheWrongWayRound) {
  Json json = shipped_json();
  json["intervals"]["moe"]["low"] = 1.5;
  json["intervals"]["moe"]["high"] = 0.5;
  EXPECT_EQ(refusal(json.dump()),
            "mine.json: intervals.moe.high: 0.5; expected a number from 1.5 to 1000000000");
}

TEST(CalibrationJson, RefusesOtherFiles) {
  for (const std::string text : {"", "{", "[]", "3", "null", "\"constants\"", "{}", "\xff\xfe",
                                 "{\"constants\": []}", "{\"constants\": {}}", "{} {}"}) {
    EXPECT_THAT(refusal(text), ::testing::StartsWith("mine.json")) << text;
  }
  EXPECT_THAT(refusal(std::string(200'000, '[')), HasSubstr("not JSON"));
}

}  // namespace
}  // namespace assay::plan
