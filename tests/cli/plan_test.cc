// `assay plan` as a user meets it: tables, the same facts as JSON, and one line for mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "base/text.h"
#include "support/process.h"

namespace assay {
namespace {

using base::Json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kJob = "nanochat-d26-h100";

support::Outcome plan(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {support::program(), "plan"});
  return support::run({arguments});
}

Json plan_json(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const auto outcome = plan(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return Json::parse(outcome.out);
}

void refused(const std::vector<std::string>& arguments, const std::string& line) {
  const auto outcome = plan(arguments);
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_EQ(outcome.err, "assay: " + line + "\n");
}

TEST(PlanCli, JsonAddsUp) {
  const Json json = plan_json({kJob, "--step-time", "701.9ms"});
  EXPECT_EQ(json["steps"], 14'889);
  EXPECT_EQ(json["step_s"], 0.7019);
  EXPECT_EQ(json["step_source"], "given");
  std::int64_t bytes = 0;
  std::int64_t two_byte = 0;
  for (const Json& group : json["comm_groups"]) {
    bytes += group["bytes"]["total"].get<std::int64_t>();
    two_byte += group["two_byte_bytes"]["total"].get<std::int64_t>();
  }
  EXPECT_EQ(bytes, 11'464'134'864);
  EXPECT_EQ(bytes, json["comm"]["bytes"]["total"]);
  EXPECT_EQ(two_byte, 7'258'794'088);
  EXPECT_EQ(json["comm"]["sent_bytes_per_rank"], 10'031'118'188.0);
  std::int64_t called = 0;
  for (const Json& calls : json["collectives"]) called += calls["bytes"].get<std::int64_t>();
  EXPECT_EQ(called, bytes);
}

TEST(PlanCli, CostsAreExactDatedAndCheapestFirst) {
  const Json costs = plan_json({kJob, "--step-time", "0.7019"})["cost"];
  ASSERT_EQ(costs.size(), 9U);
  double before = 0;
  bool found = false;
  for (const Json& cost : costs) {
    EXPECT_GE(cost["cost"]["low"].get<double>(), before);
    before = cost["cost"]["low"];
    EXPECT_NE(cost["date"], "");
    if (cost["per_hour"]["low"] != 12.85) continue;
    found = true;
    EXPECT_EQ(cost["provider"], "Vast");
    EXPECT_EQ(cost["cost"]["low"], 37.302797);
  }
  EXPECT_TRUE(found);
}

TEST(PlanCli, EnergysInputsCanBeGiven) {
  const Json carbon =
      plan_json({kJob, "--set", "train.tokens_per_matmul_parameter=8.5", "--step-time", "1",
                 "--watts", "500", "--pue", "1.1", "--grid", "50"})["carbon"];
  EXPECT_DOUBLE_EQ(carbon["devices_kwh"].get<double>(), 500.0 * 8 * 14'889 / 3600 / 1000);
  EXPECT_DOUBLE_EQ(carbon["co2_kg"].get<double>(),
                   carbon["devices_kwh"].get<double>() * 1.1 * 50 / 1000);
  EXPECT_EQ(carbon["pue"]["source"], "given");
}

TEST(PlanCli, WithoutAStepTimeNothingIsMadeUp) {
  const Json json = plan_json({kJob});
  EXPECT_FALSE(json.contains("step_s"));
  EXPECT_TRUE(json["cost"].empty());
  EXPECT_TRUE(json["carbon"].is_null());
  EXPECT_THAT(plan({kJob}).out, HasSubstr("--step-time SECONDS"));
}

TEST(PlanCli, WhatIsNotKnownIsSaidBesideWhatIs) {
  base::testing::TempDir directory;
  const std::string file = directory.path() / "job.toml";
  std::ofstream(file) << "[model]\nextends = \"tiny\"\n[train]\nsteps = 10\n"
                         "[cluster]\ndevices_per_node = 1\n"
                         "[cluster.device]\nname = \"Abacus\"\nbf16 = \"1 TFLOP/s\"\n";
  const Json json = plan_json({file, "--step-time", "1"});
  ASSERT_EQ(json["unknown"].size(), 2U);
  EXPECT_EQ(json["unknown"][0],
            "price: no price is known for 'Abacus'; add a [[price]] to the job; its keys: assay "
            "presets keys price");
  EXPECT_THAT(json["unknown"][1].get<std::string>(), HasSubstr("cluster.device.power"));
  EXPECT_TRUE(json["cost"].empty());
  EXPECT_NEAR(json["hours"].get<double>(), 10.0 / 3600, 1e-12);
}

TEST(PlanCli, TablesFitAHundredColumns) {
  for (const char* job : {kJob, "llama3-70b-h200x32", "moe-9b-h200x32", "llama3-13b-h200x32"}) {
    std::istringstream lines(plan({job, "--step-time", "0.7019"}).out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(base::display_width(line), 100U) << line;
    }
  }
}

TEST(PlanCli, MistakesAreOneLine) {
  refused({"llama3-8b"},
          "llama3-8b: is a model, no job; a job has a [model] and a [batch] or [train]");
  refused({kJob, "--step-time", "0"}, "--step-time: '0' is not more than 0");
  refused({kJob, "--step-time", "1e300"},
          "--step-time: '1e300' is longer than a step can take; give the time of one optimizer "
          "step, in seconds");
  refused({kJob, "--step-time", "1", "--pue", "0.9"}, "--pue: '0.9' is not a number from 1 to 100");
  refused({kJob, "--grid", "50"},
          "plan: --watts, --pue and --grid are about a run whose time is not known; give "
          "--step-time");
  refused({kJob, "--set", "layout.fsdp=3"},
          "presets/jobs/nanochat-d26-h100.toml:16: layout: fsdp 3 = 3 ranks, but the cluster has 8 "
          "devices (1 node of 8); layout.fsdp = 8 fits");
}

TEST(PlanCli, AJobWithoutALengthCannotBePriced) {
  base::testing::TempDir directory;
  const std::string file = directory.path() / "job.toml";
  std::ofstream(file) << "[model]\nextends = \"tiny\"\n[cluster]\nextends = \"h100-sxm-8\"\n";
  EXPECT_EQ(plan({file}).exit_code, 0);
  const auto outcome = plan({file, "--step-time", "1"});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.err, HasSubstr("does not say how long it trains; set train.steps"));
}

}  // namespace
}  // namespace assay
