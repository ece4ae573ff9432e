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
  written.seen.ranges[2] = {.parameters = some,
                            .ranks = some,
                            .sequence = some,
                            .card_flops = some,
                            .local_experts = some};
  written.seen.software[4] = seen_case(true, Generation::kBlackwell, SeenPrecision::kFp4);
  written.seen.most_mfu[2][1] = 0.75;
  const std::string text = to_json(written);
  const auto read = calibration_from_json(text, "mine.json");
  ASSERT_TRUE(read) << read.error().line();
  EXPECT_EQ(read->constants.gemm_eff, written.constants.gemm_eff);
  EXPECT_EQ(read->memory.work, written.memory.work);
  EXPECT_EQ(read->intervals.by_class[3].rows, 12);
  EXPECT_EQ(read->intervals.by_class[3].projects, 3);
  EXPECT_EQ(read->seen.projects[1][2][0], 77);
  EXPECT_EQ(read->seen.ranges[2].ranks.high, 3072);
  EXPECT_EQ(read->seen.software[4], written.seen.software[4]);
  EXPECT_EQ(read->seen.most_mfu[2][1], 0.75);
  EXPECT_EQ(to_json(*read), text);
}

TEST(CalibrationJson, SaysWhatItWasFittedTo) {
  Calibration written = shipped_calibration();
  written.fitted_to =
      FittedTo{.projects = {"me", "you"}, .rows = 12, .dense = {.projects = 2, .mean = 0.125}};
  const auto read = calibration_from_json(to_json(written), "mine.json");
  ASSERT_TRUE(read) << read.error().line();
  EXPECT_EQ(described(read->fitted_to, "mine.json", false),
            "constants of mine.json, fitted to 12 rows of 2 projects: 12.5 % mean error on dense "
            "models, each project (2) left out of the fit");
  EXPECT_THAT(described(read->fitted_to, "mine.json", true),
              HasSubstr("none of them with mixtures: errors on mixtures are not known"));
  written.fitted_to = FittedTo{.rows = 3, .own_error = 0.01};
  const auto own = calibration_from_json(to_json(written), "mine.json");
  EXPECT_THAT(described(own->fitted_to, "mine.json", false),
              HasSubstr("adjusted to 3 of your runs: 1.0 % mean error on these"));
  // Files from before it was recorded are read, and nothing is said that is not known.
  Json old = shipped_json();
  old.erase("fitted_to");
  const auto silent = calibration_from_json(old.dump(), "mine.json");
  ASSERT_TRUE(silent) << silent.error().line();
  EXPECT_THAT(described(silent->fitted_to, "mine.json", false), HasSubstr("not known"));
  Json wrong = shipped_json();
  wrong["fitted_to"]["projects"] = 7;
  EXPECT_THAT(refusal(wrong.dump()), HasSubstr("mine.json: fitted_to.projects"));
}

TEST(CalibrationJson, KnowsWhoseIntervalsOfMemoryItHas) {
  Calibration written = shipped_calibration();
  written.memory_intervals.needed = {.low = 0.5, .high = 1.25, .rows = 7, .projects = 3};
  written.memory_intervals.shown_of_others = true;
  const auto read = calibration_from_json(to_json(written), "mine.json");
  ASSERT_TRUE(read) << read.error().line();
  EXPECT_EQ(read->memory_intervals.needed.high, 1.25);
  EXPECT_EQ(read->memory_intervals.needed.projects, 3);
  EXPECT_FALSE(read->memory_intervals.needed_of_others);
  EXPECT_TRUE(read->memory_intervals.shown_of_others);
  EXPECT_EQ(read->memory_intervals.shown.high, shown_memory_interval().high);
  // Files from before they were recorded have neither.
  Json old = shipped_json();
  old.erase("memory_intervals");
  const auto without = calibration_from_json(old.dump(), "mine.json");
  ASSERT_TRUE(without) << without.error().line();
  EXPECT_TRUE(without->memory_intervals.needed_of_others);
  EXPECT_TRUE(without->memory_intervals.shown_of_others);
  EXPECT_EQ(without->memory_intervals.needed.high, needed_memory_interval().high);
  Json wrong = shipped_json();
  wrong["memory_intervals"]["needed"]["high"] = 0.1;
  EXPECT_THAT(refusal(wrong.dump()), HasSubstr("mine.json: memory_intervals.needed.high: 0.1"));
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
