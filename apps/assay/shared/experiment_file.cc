#include "assay/shared/experiment_file.h"

#include <fmt/format.h>

#include "base/decimal.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "spec/table_keys.h"
#include "spec/toml.h"

namespace assay::cli {
namespace {

using compare::Arm;
using compare::Experiment;
using spec::TableKeys;
using spec::Value;
using spec::wrong_value;

constexpr base::Bytes kLargestFile(1 << 20);

template <class T>
base::Result<T> placed(const std::string& where, base::Result<T> result) {
  if (!result && result.error().where.empty()) result.error().where = where;
  return result;
}

base::Result<Arm> arm_of(const Value& value, const Arm& common) {
  if (value.get<Value::Table>() == nullptr) {
    return base::fail(wrong_value(value, "arm", "a table"));
  }
  Arm arm = common;
  TableKeys keys(value);
  ASSAY_TRY_VOID(keys.text("name", arm.name));
  ASSAY_TRY_VOID(keys.text("command", arm.command));
  ASSAY_TRY_VOID(keys.text("prepare", arm.prepare));
  ASSAY_TRY_VOID(keys.text("cleanup", arm.cleanup));
  if (const Value* environment = keys.take("environment")) {
    const auto* table = environment->get<Value::Table>();
    if (table == nullptr) return base::fail(wrong_value(*environment, "environment", "a table"));
    for (const auto& [name, setting] : *table) {
      const auto* text = setting.get<std::string>();
      if (text == nullptr) return base::fail(wrong_value(setting, name, "a string"));
      arm.environment.push_back(name + "=" + *text);
    }
  }
  ASSAY_TRY_VOID(keys.no_others());
  return arm;
}

// A number as it is written in commands.
std::string scan_value(const Value& value) {
  if (const auto* text = value.get<std::string>()) return *text;
  if (const auto* whole = value.get<std::int64_t>()) return fmt::format("{}", *whole);
  if (const auto* number = value.get<double>()) return fmt::format("{}", *number);
  return {};
}

base::Result<std::vector<compare::ScanParameter>> scan_of(const Value& value) {
  const auto* table = value.get<Value::Table>();
  if (table == nullptr) return base::fail(wrong_value(value, "scan", "a table: {N = [1, 2]}"));
  std::vector<compare::ScanParameter> parameters;
  for (const auto& [name, values] : *table) {
    const auto* list = values.get<Value::Array>();
    if (list == nullptr) return base::fail(wrong_value(values, "scan." + name, "a list"));
    compare::ScanParameter parameter{.name = name, .values = {}};
    for (const Value& each : *list) parameter.values.push_back(scan_value(each));
    if (const std::string problem = problem_of(parameter); !problem.empty()) {
      return base::fail(base::usage_error(values.origin().text(),
                                          fmt::format("scan.{} {}", name, problem),
                                          "scan = {N = [1, 2, 4]}, with {N} in the commands"));
    }
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

}  // namespace

base::Result<ExperimentFile> read_experiment(const std::string& file) {
  ASSAY_TRY(const std::string text, base::read_file(file, kLargestFile, base::Pipes::kRead));
  return experiment_in(text, file);
}

base::Result<ExperimentFile> experiment_in(const std::string& text, const std::string& source) {
  ASSAY_TRY(const Value document, spec::parse_toml(text, source));
  ExperimentFile file;
  Experiment& e = file.experiment;
  e.seed = 0;
  Arm common;
  TableKeys keys(document);
  ASSAY_TRY_VOID(keys.text("prepare", common.prepare));
  ASSAY_TRY_VOID(keys.text("cleanup", common.cleanup));
  ASSAY_TRY_VOID(keys.parsed("metric", e.metric, metric_of));
  ASSAY_TRY_VOID(keys.parsed("steps", e.steps, steps_metric_of));
  ASSAY_TRY_VOID(keys.parsed("step_unit", e.step_seconds, step_unit_of));
  ASSAY_TRY_VOID(keys.parsed("quality", e.quality, metric_of));
  file.has_margin = document.find("margin") != nullptr;
  ASSAY_TRY_VOID(keys.parsed("margin", e.judgement.margin_pct, percentage));
  ASSAY_TRY_VOID(keys.flag("more_is_better", e.judgement.more_is_better));
  ASSAY_TRY_VOID(keys.parsed("half_width", e.stop.half_width_pct, percentage));
  ASSAY_TRY_VOID(keys.parsed("max_time", e.stop.max_time, duration));
  ASSAY_TRY_VOID(keys.count("min_pairs", e.stop.min_pairs));
  ASSAY_TRY_VOID(keys.count("max_pairs", e.stop.max_pairs));
  ASSAY_TRY_VOID(keys.count("warm_up", e.warm_up));
  ASSAY_TRY_VOID(keys.parsed("timeout", e.timeout, duration));
  std::int64_t seed = 0;
  ASSAY_TRY_VOID(keys.count("seed", seed));
  e.seed = static_cast<std::uint64_t>(seed);
  ASSAY_TRY_VOID(keys.flag("second_baseline", e.second_baseline));
  if (const Value* arms = keys.take("arm")) {
    const auto* list = arms->get<Value::Array>();
    if (list == nullptr) return base::fail(wrong_value(*arms, "arm", "a list: [[arm]]"));
    for (const Value& arm : *list) {
      ASSAY_TRY(Arm read, arm_of(arm, common));
      e.arms.push_back(std::move(read));
    }
  }
  if (const Value* scan = keys.take("scan")) {
    ASSAY_TRY(file.scan, scan_of(*scan));
  }
  ASSAY_TRY_VOID(keys.no_others());
  return file;
}

base::Result<double> percentage(const std::string& where, std::string_view text) {
  std::string_view number = base::trim(text);
  if (number.ends_with('%')) number = base::trim(number.substr(0, number.size() - 1));
  const auto value = base::parse_number<double>(number);
  if (!value) {
    return base::fail(base::usage_error(where, fmt::format("'{}' is not a percentage", text),
                                        "0.5%, for example"));
  }
  return *value;
}

base::Result<double> step_unit_of(const std::string& where, std::string_view text) {
  if (text == "s") return 1;
  if (text == "ms") return 1e-3;
  if (text == "us") return 1e-6;
  return base::fail(base::usage_error(where, fmt::format("'{}' is not a unit of step times", text),
                                      "one of s, ms, us"));
}

base::Result<base::Seconds> duration(const std::string& where, std::string_view text) {
  if (!text.empty() && base::decimal_size(text) == text.size()) {
    return base::fail(base::usage_error(where, fmt::format("'{}' has no unit", text),
                                        fmt::format("for example {0}s, {0}min or {0}h", text)));
  }
  return placed(where, base::parse_seconds(text));
}

base::Result<compare::ComparedMetric> metric_of(const std::string& where, std::string_view text) {
  return placed(where, compare::parse_metric(text));
}

base::Result<compare::ComparedMetric> steps_metric_of(const std::string& where,
                                                      std::string_view text) {
  return placed(where, compare::parse_steps(text));
}

}  // namespace assay::cli
