// Pages of plans, from the JSON that `assay plan` writes.
#include "report/plan_part.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/html.h"
#include "report/markdown.h"
#include "report/testing/html.h"

namespace assay::report {
namespace {

using base::Json;
using ::testing::HasSubstr;
using ::testing::Not;

Json scaled(double devices, double step, bool is_job, bool fits = true) {
  return {{"devices", devices},
          {"layout", "fsdp 8"},
          {"step_s", step},
          {"step_low_s", 0.8 * step},
          {"step_high_s", 1.3 * step},
          {"tokens_per_s", 1e4 * devices / step},
          {"of_ideal", 0.9},
          {"mfu", {{"current", 0.5}, {"published", 0.6}}},
          {"memory_gib", 70},
          {"fits", fits},
          {"is_job", is_job},
          {"parts",
           {{{"name", "matrix products"}, {"s", 0.8 * step}},
            {{"name", "all-to-all of experts"}, {"s", 0.2 * step}}}}};
}

Json plan() {
  Json json = Json::parse(R"({"name": "job", "summary": "9 parameters; on 8 x H100",
    "framework": "assay", "refused": "", "recompute": "full", "ranks": 8, "tokens_per_step": 4096,
    "step_s": 0.5, "step_low_s": 0.4, "step_high_s": 0.7, "step_source": "predicted",
    "tokens_per_s": 8192, "mfu": {"current": 0.41, "published": 0.45}, "extrapolations": [],
    "memory_bytes": {"total": 64424509440, "parameters": 32212254720, "activations": 32212254720,
      "device": 85899345920, "counted": true},
    "memory_gib": {"total": 60, "card": 80, "fits": true},
    "experts": {"ranks": 8, "imbalance": 1.2, "is_assumed": true, "fullest_rank": 1.2},
    "collectives": [{"op": "all_gather", "dtype": "bf16", "about": "weights", "among": "shard",
      "ranks": 8, "calls": 3, "bytes": 3e9, "mean_bytes": 1e9}],
    "comm": {"scheme": "ZeRO 3 over 8 ranks"},
    "hours": 12.5, "steps": 90000,
    "cost": [{"provider": "Vast", "offer": "8x", "market": "spot", "rented": 1, "devices": 8,
      "idle_devices": 0, "per_hour": {"low": 7, "high": 10}, "cost": {"low": 87.5, "high": 125},
      "date": "2026"}],
    "unknown": ["price: no on-demand price is known"]})");
  json["parts"] = scaled(8, 0.5, true)["parts"];
  json["scaling"] = {scaled(4, 0.4, false, false), scaled(8, 0.5, true), scaled(16, 0.6, false)};
  return json;
}

Json candidate(const std::string& provider, double hours, double cost) {
  return {{"machines", "h100-sxm-8"},
          {"nodes", 2},
          {"gpu", "NVIDIA H100"},
          {"devices_per_node", 8},
          {"devices", 16},
          {"idle_devices", 0},
          {"provider", provider},
          {"offer", "8x H100"},
          {"price_date", "2026-08"},
          {"policy", "spot"},
          {"layout_text", "fsdp 2 x ep 8"},
          {"micro_batch", 4},
          {"accumulate", 2},
          {"recompute", "cheap"},
          {"step_s", 0.25},
          {"memory_gib", 66.5},
          {"checkpoint_interval_s", 600},
          {"interruptions", 0.4},
          {"hours_p50", hours},
          {"hours_p90", 1.4 * hours},
          {"cost_p50", {{"low", cost}, {"high", cost}}},
          {"cost_p90", {{"low", 1.4 * cost}, {"high", 1.4 * cost}}},
          {"misses", nullptr}};
}

Json found() {
  const Json best = candidate("Lambda", 10, 200);
  Json late = candidate("Slow", 90, 20);
  late["misses"] = "deadline: 90 % of runs need up to 5 d";
  return {{"name", "job"},
          {"summary", "9 parameters"},
          {"considered", 123456},
          {"why", "the cheapest that keeps the deadline"},
          {"front", {candidate("Fast", 5, 400), best}},
          {"candidates", {candidate("Fast", 5, 400), best, candidate("Dear", 11, 500), late}},
          {"recommended", best},
          {"rejected", {{{"reason", "layout.tp: no"}, {"count", 7}}}},
          {"assumptions", {{{"what", "failures"}, {"value", "1"}, {"source", "a test"}}}}};
}

PagePart made(PlanDocuments documents) {
  auto part = plan_part(std::move(documents), "plan.json", false);
  EXPECT_TRUE(part.has_value());
  return *std::move(part);
}

std::string text_of(const PagePart& part) {
  const Page page{.title = part.title, .parts = {part}};
  testing::read_html(html(page));
  return markdown(page);
}

TEST(PlanPart, HasTheAnswerFirstAndEverySection) {
  const PagePart part = made({.plan = plan(), .search = found()});
  EXPECT_EQ(part.verdict.rating, Rating::kGood);
  EXPECT_EQ(part.verdict.word, "fits");
  EXPECT_EQ(part.verdict.text, "60 of 80 GiB per rank; run by assay");
  std::vector<std::string> titles;
  for (const Section& section : part.sections) titles.push_back(section.title);
  EXPECT_THAT(titles,
              ::testing::ElementsAre("Summary", "Where the time of a step goes", "Memory per rank",
                                     "More and fewer devices", "Machines and offers",
                                     "What was ruled out", "Assumptions", "Offers for this job",
                                     "Communication between ranks", "Not known"));
  const std::string text = text_of(part);
  EXPECT_THAT(text, HasSubstr("8,192"));
  EXPECT_THAT(text, HasSubstr("\\$87.50 – \\$125.00"));
  EXPECT_THAT(text, HasSubstr("1.2 times an even share, which is assumed"));
  EXPECT_THAT(text, HasSubstr("all-to-all of experts"));
  // Of other software nothing is assumed.
  Json contained = plan();
  contained["experts"]["imbalance"] = contained["experts"]["fullest_rank"] = 1;
  const std::string other = text_of(made({.plan = contained}));
  EXPECT_THAT(other, HasSubstr("imbalance is contained in the measured runs"));
  EXPECT_THAT(other, Not(HasSubstr("times an even share")));
  // Layouts that do not fit are listed in the table, but not drawn.
  EXPECT_THAT(text, HasSubstr("70 too much"));
}

TEST(PlanPart, SaysWhatTheSoftwareDoesNotHave) {
  Json json = plan();
  json["framework_why"] = "no such layout";
  json["recompute_why"] = "no such policy";
  json["schedule_why"] = "no such schedule";
  const std::string text = text_of(made({.plan = json}));
  EXPECT_THAT(text, HasSubstr("no such layout."));
  EXPECT_THAT(text, HasSubstr("no such policy."));
  EXPECT_THAT(text, HasSubstr("no such schedule."));
}

// What recomputes by another policy than the job's is other work: listed with it, not drawn.
TEST(PlanPart, PointsOfAnotherPolicyNameIt) {
  Json json = plan();
  json["scaling"] = {scaled(4, 0.4, false), scaled(8, 0.5, true), scaled(16, 0.6, false)};
  json["scaling"][0]["own_recompute"] = false;
  json["scaling"][0]["recompute"] = "full";
  EXPECT_THAT(text_of(made({.plan = json})), HasSubstr("fsdp 8, full"));
}

TEST(PlanPart, MarksWhatIsRecommendedAndLeavesOutWhatMissesLimits) {
  const PagePart part = made({.search = found()});
  EXPECT_EQ(part.verdict.word, "recommended");
  EXPECT_EQ(part.verdict.text,
            "2 machines of 8 x NVIDIA H100 (16 GPUs), from Lambda, spot: 10 h, $200.00");
  const std::string text = text_of(part);
  EXPECT_THAT(text, HasSubstr("Lambda, spot, recommended"));
  EXPECT_THAT(text, HasSubstr("Fast"));
  EXPECT_THAT(text, Not(HasSubstr("Slow")));
  const std::string page = html({.title = "t", .parts = {part}});
  EXPECT_THAT(page, HasSubstr("recommended: Lambda, 16 GPUs"));
  // All candidates are drawn; only those on the Pareto front are kept in the data.
  EXPECT_FALSE(part.data["search"].contains("candidates"));
  EXPECT_TRUE(plan_part({.search = found()}, "s", true)->data["search"].contains("candidates"));
}

TEST(PlanPart, WhatDoesNotFitSaysSoAndWhatIsMissingIsLeftOut) {
  Json large = plan();
  large["memory_gib"]["fits"] = false;
  large["memory_gib"]["total"] = 99;
  large["cost"] = Json::array();
  for (const char* key : {"hours", "scaling", "parts", "collectives"}) large[key] = nullptr;
  const PagePart part = made({.plan = large, .not_searched = "There is no search: why."});
  EXPECT_EQ(part.verdict.rating, Rating::kBad);
  EXPECT_EQ(part.verdict.word, "does not fit");
  const std::string text = text_of(part);
  EXPECT_THAT(text, HasSubstr("There is no search: why."));
  EXPECT_THAT(text, Not(HasSubstr("Offers for this job")));
  EXPECT_THAT(text, Not(HasSubstr("the whole run")));
  // Not even where the file has them.
  Json costly = plan();
  costly["memory_gib"]["fits"] = false;
  costly["memory_gib"]["total"] = 99;
  const std::string page = text_of(made({.plan = costly}));
  for (const char* told : {"80 % interval: ", "utilisation", "12.5 h", "87.50"})
    EXPECT_THAT(page, Not(HasSubstr(told)));

  const PagePart none = made({.search = {{"considered", 0},
                                         {"front", Json::array()},
                                         {"recommended", nullptr},
                                         {"why", "the job fits no machines that are for rent"}}});
  EXPECT_EQ(none.verdict.word, "nothing to recommend");
  EXPECT_THAT(text_of(none), HasSubstr("the job fits no machines that are for rent"));
}

// Predicted memory that fits, and an interval that does not.
TEST(PlanPart, WhatMayNotFitIsOpen) {
  Json open = plan();
  open["memory_gib"] = {{"total", 75},          {"card", 80},      {"fits", true},
                        {"fit", "may not fit"}, {"total_low", 60}, {"total_high", 99}};
  const PagePart part = made({.plan = open});
  EXPECT_EQ(part.verdict.rating, Rating::kOpen);
  EXPECT_EQ(part.verdict.word, "may not fit");
  EXPECT_EQ(part.verdict.text, "75 of 80 GiB per rank, interval 60 to 99; run by assay");
  EXPECT_THAT(text_of(part), HasSubstr("80 % interval: "));
}

TEST(PlanPart, CostsAreRangesOfAMarketAndSayWhatIsNotInThem) {
  Json json = plan();
  json["cost"].push_back(json["cost"][0]);
  json["cost"][1]["provider"] = "AWS";
  json["cost"][1]["cost"] = {{"low", 300}, {"high", 900}};
  const std::string text = text_of(made({.plan = json}));
  EXPECT_THAT(text, HasSubstr("\\$87.50 – \\$900"));
  EXPECT_THAT(text,
              HasSubstr("cheapest: Vast; without interruptions, storage and network traffic"));
}

TEST(PlanPart, IdleDevicesAreNamed) {
  Json search = found();
  for (Json* one : {&search["recommended"], &search["front"][1], &search["candidates"][1]}) {
    (*one)["nodes"] = 1;
    (*one)["devices"] = 1;
    (*one)["devices_per_node"] = 1;
    (*one)["idle_devices"] = 7;
  }
  const std::string text = text_of(made({.search = search}));
  EXPECT_THAT(text, HasSubstr("1 machine of 1 x NVIDIA H100 \\(1 GPU\\)"));
  EXPECT_THAT(text, HasSubstr("7 of 8 rented GPUs are paid for but idle"));
  EXPECT_THAT(text, HasSubstr("1 \\+ 7 idle"));
}

// Without any price: the fastest layouts by GPU-hours, and no money.
TEST(PlanPart, ASearchWithoutPricesHasNoBill) {
  Json search = found();
  const auto unprice = [](Json& one) {
    one["gpu_hours_p50"] = 16 * one["hours_p50"].get<double>();
    for (const char* key : {"provider", "cost_p50", "cost_p90", "price_date"}) one[key] = nullptr;
  };
  for (const char* list : {"front", "candidates"})
    for (Json& one : search[list]) unprice(one);
  unprice(search["recommended"]);
  const std::string text = text_of(made({.search = search}));
  EXPECT_THAT(text, HasSubstr("10 h, 160 GPU-hours; no price is known"));
  EXPECT_THAT(text, HasSubstr("Time versus GPU-hours"));
  EXPECT_THAT(text, Not(HasSubstr("\\$")));
}

TEST(PlanPart, NamesOfAnyLengthStayText) {
  Json long_names = plan();
  long_names["name"] = std::string(500, 'j') + "<script>";
  long_names["summary"] = std::string(2000, 's');
  long_names["cost"][0]["provider"] = std::string(300, 'p');
  Json search = found();
  search["front"][0]["provider"] = search["candidates"][0]["provider"] = std::string(300, 'q');
  search["front"][0]["machines"] = std::string(300, 'm');
  const PagePart part = made({.plan = long_names, .search = search});
  EXPECT_LE(part.title.size(), 120U);
  EXPECT_THAT(html({.title = "t", .parts = {part}}), Not(HasSubstr("j<script>")));
  text_of(part);
}

// Files may have been edited or truncated, or be of another version.
TEST(PlanPart, AnyTypeOfAnyKeyIsAPageOrALine) {
  const std::vector<Json> values = {
      nullptr, 7, -1, "text", Json::array({1, "x", nullptr}), Json::object({{"low", "x"}}), true};
  for (const bool searched : {false, true}) {
    const Json whole = searched ? found() : plan();
    for (const auto& [key, value] : whole.items()) {
      for (const Json& other : values) {
        Json changed = whole;
        changed[key] = other;
        PlanDocuments documents;
        (searched ? documents.search : documents.plan) = changed;
        const auto part = plan_part(documents, "f.json", false);
        ASSERT_TRUE(part.has_value()) << key;
        text_of(*part);
      }
    }
  }
  const auto refused = plan_part({.plan = Json::parse(R"({"suite": "s"})")}, "f.json", false);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().line(),
            "f.json: is not a plan; write one with assay plan JOB --json, or name the job");
}

}  // namespace
}  // namespace assay::report
