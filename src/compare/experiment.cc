#include "compare/experiment.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "base/utf8.h"

namespace assay::compare {
namespace {

using base::Json;

constexpr std::size_t kMostArms = 26;
constexpr std::array<std::pair<StopReason, std::string_view>, 5> kStopTexts = {{
    {StopReason::kNo, "it was interrupted"},
    {StopReason::kNarrow, "the interval is narrow enough"},
    {StopReason::kTime, "the time limit was reached"},
    {StopReason::kPairs, "the maximum number of pairs was reached"},
    {StopReason::kFailed, "an arm failed"},
}};
// In journals of earlier versions.
constexpr std::string_view kOldTimeText = "the time was over";
constexpr std::string_view kOldPairsText = "all pairs were made";

base::Result<void> need(bool good, const char* where, std::string what, const char* hint = "") {
  if (good) return {};
  return base::fail(base::usage_error(where, std::move(what), hint));
}

Json arm_json(const Arm& arm) {
  Json json = {{"name", arm.name},
               {"command", arm.command},
               {"environment", arm.environment},
               {"prepare", arm.prepare},
               {"cleanup", arm.cleanup}};
  if (!arm.values.empty()) json["values"] = arm.values;
  if (!arm.scanned_command.empty()) json["scanned_command"] = arm.scanned_command;
  return json;
}

Arm arm_from_json(const Json& json) {
  return {.name = json.at("name"),
          .command = json.at("command"),
          .environment = json.at("environment"),
          .prepare = json.at("prepare"),
          .cleanup = json.at("cleanup"),
          .values = json.value("values", std::vector<std::string>()),
          .scanned_command = json.value("scanned_command", "")};
}

Json metric_or_null(const std::optional<ComparedMetric>& metric) {
  return metric ? Json(metric->text()) : Json(nullptr);
}

}  // namespace

std::string_view to_text(StopReason stop) {
  for (const auto& [named, text] : kStopTexts) {
    if (named == stop) return text;
  }
  return "";
}

StopReason stop_reason_from_text(std::string_view text) {
  if (text == kOldTimeText) return StopReason::kTime;
  if (text == kOldPairsText) return StopReason::kPairs;
  for (const auto& [stop, named] : kStopTexts) {
    if (named == text) return stop;
  }
  return StopReason::kNo;
}

std::string Experiment::name_of(std::size_t index) const {
  return index < arms.size() ? arms[index].name : arms.front().name + "'";
}

double Experiment::alpha() const {
  return kTotalAlpha / static_cast<double>(arms.size() - 1);
}

bool Experiment::is_time() const {
  return steps || metric.kind == MetricKind::kWall || metric.kind == MetricKind::kCpu;
}

std::string ratio_text(const Experiment& experiment, double difference) {
  const bool more_is_better = experiment.judgement.more_is_better;
  const double ratio = std::exp(difference);
  if (!more_is_better && !experiment.is_time()) return ratio_text(ratio, "as much", "less");
  return more_is_better ? ratio_text(ratio, "faster", "slower")
                        : ratio_text(ratio, "slower", "faster");
}

base::Result<void> check(const Experiment& e) {
  ASSAY_TRY_VOID(need(e.arms.size() >= 2, "compare", "there is nothing to compare with",
                      "give --a and --b, or --under WRAPPER -- COMMAND"));
  ASSAY_TRY_VOID(
      need(e.arms.size() <= kMostArms, "compare",
           fmt::format("{} arms, but at most {} are allowed", e.arms.size(), kMostArms)));
  std::set<std::string> names;
  for (const Arm& arm : e.arms) {
    ASSAY_TRY_VOID(
        need(!arm.command.empty(), "compare", fmt::format("arm '{}' has no command", arm.name)));
    std::string texts = arm.command + arm.prepare + arm.cleanup;
    for (const std::string& setting : arm.environment) texts += setting;
    ASSAY_TRY_VOID(need(base::is_utf8(texts), "compare",
                        fmt::format("the command of arm '{}' is not UTF-8", arm.name),
                        "put it into a script"));
    const bool plain = !arm.name.empty() && arm.name.find_first_of("/'\n") == std::string::npos;
    ASSAY_TRY_VOID(need(plain && names.insert(arm.name).second, "compare",
                        fmt::format("'{}' cannot name an arm", arm.name),
                        "names must be distinct, not empty, and without slash or quote"));
  }
  ASSAY_TRY_VOID(need(std::isfinite(e.stop.half_width_pct) && e.stop.half_width_pct > 0,
                      "--half-width", "must be more than 0 %"));
  for (const Arm& arm : e.arms) {
    ASSAY_TRY_VOID(
        need(arm.values.size() == e.scanned.size(), "compare",
             fmt::format("arm '{}' does not have a value per scanned parameter", arm.name)));
  }
  ASSAY_TRY_VOID(need(e.stop.min_pairs >= 2, "--min-pairs", "must be 2 or more"));
  ASSAY_TRY_VOID(need(e.stop.max_pairs >= 1, "--max-pairs", "must be 1 or more"));
  ASSAY_TRY_VOID(need(e.stop.max_time.count() > 0, "--max-time", "must be more than 0"));
  ASSAY_TRY_VOID(need(std::isfinite(e.judgement.margin_pct) && e.judgement.margin_pct > -100,
                      "--margin", "must be a percentage above -100 %"));
  ASSAY_TRY_VOID(need(!e.timeout || e.timeout->count() > 0, "--timeout", "must be more than 0"));
  ASSAY_TRY_VOID(need(!e.warm_up || *e.warm_up >= 0, "--warm-up", "must be 0 or more"));
  return {};
}

Json to_json(const Experiment& e) {
  Json arms = Json::array();
  for (const Arm& arm : e.arms) arms.push_back(arm_json(arm));
  Json json = {{"arms", arms},
               {"second_baseline", e.second_baseline},
               {"metric", e.metric.text()},
               {"steps", metric_or_null(e.steps)},
               {"step_seconds", e.step_seconds},
               {"quality", metric_or_null(e.quality)},
               {"half_width_pct", e.stop.half_width_pct},
               {"min_pairs", e.stop.min_pairs},
               {"max_pairs", e.stop.max_pairs},
               {"max_time_s", e.stop.max_time.count()},
               {"margin_pct", e.judgement.margin_pct},
               {"more_is_better", e.judgement.more_is_better},
               {"warm_up", base::or_null(e.warm_up)},
               {"timeout_s", base::or_null(e.timeout)},
               {"seed", e.seed},
               {"directory", e.directory}};
  if (!e.scanned.empty()) json["scanned"] = e.scanned;
  if (!e.judgement.judged) json["judged"] = false;
  return json;
}

base::Result<Experiment> experiment_from_json(const Json& json) {
  Experiment e;
  try {
    for (const Json& arm : json.at("arms")) e.arms.push_back(arm_from_json(arm));
    e.second_baseline = json.at("second_baseline");
    ASSAY_TRY(e.metric, parse_metric(json.at("metric").get<std::string>()));
    if (!json.at("steps").is_null()) {
      ASSAY_TRY(e.steps, parse_steps(json["steps"].get<std::string>()));
    }
    e.step_seconds = json.at("step_seconds");
    if (!json.at("quality").is_null()) {
      ASSAY_TRY(e.quality, parse_metric(json["quality"].get<std::string>()));
    }
    e.stop = {.half_width_pct = json.at("half_width_pct"),
              .min_pairs = json.at("min_pairs"),
              .max_pairs = json.at("max_pairs"),
              .max_time = base::Seconds(json.at("max_time_s").get<double>())};
    e.judgement = {json.at("margin_pct"), json.at("more_is_better"), json.value("judged", true)};
    e.scanned = json.value("scanned", std::vector<std::string>());
    if (!json.at("warm_up").is_null()) e.warm_up = json["warm_up"].get<std::int64_t>();
    if (!json.at("timeout_s").is_null()) e.timeout = base::Seconds(json["timeout_s"].get<double>());
    e.seed = json.at("seed");
    e.directory = json.at("directory");
  } catch (const Json::exception& error) {
    return base::fail(base::unfit_error("", "does not describe an experiment"));
  }
  ASSAY_TRY_VOID(check(e));
  return e;
}

}  // namespace assay::compare
