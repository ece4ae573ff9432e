// An experiment file: what the options say, and for each arm its own environment and hooks.
#include <fmt/format.h>

#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "compare_words.h"
#include "spec/toml.h"

namespace assay::cli {
namespace {

using compare::Arm;
using compare::Experiment;
using spec::Value;

constexpr base::Bytes kLargestExperiment(1 << 20);

base::Error wrong(const Value& value, std::string_view key, const char* expected) {
  return base::usage_error(value.origin().text(),
                           fmt::format("{} is {}, not {}", key, value.shown(), expected));
}

// A table whose keys are taken one by one; what is left at the end is unknown.
class Keys {
 public:
  explicit Keys(const Value& table) : table_(table) {}

  const Value* take(std::string key) {
    const Value* found = table_.find(key);
    known_.push_back(std::move(key));
    return found;
  }
  base::Result<void> text(const char* key, std::string& target) {
    const Value* value = take(key);
    if (value == nullptr) return {};
    const auto* string = value->get<std::string>();
    if (string == nullptr) return base::fail(wrong(*value, key, "a string"));
    target = *string;
    return {};
  }
  // A whole number of 0 or more.
  template <class T>
  base::Result<void> count(const char* key, T& target) {
    const Value* value = take(key);
    if (value == nullptr) return {};
    const auto* number = value->get<std::int64_t>();
    if (number == nullptr || *number < 0) return base::fail(wrong(*value, key, "a count"));
    target = *number;
    return {};
  }
  base::Result<void> flag(const char* key, bool& target) {
    const Value* value = take(key);
    if (value == nullptr) return {};
    if (value->get<bool>() == nullptr) return base::fail(wrong(*value, key, "true or false"));
    target = *value->get<bool>();
    return {};
  }
  // A string that `parse(where, text)` makes something of.
  template <class T, class Parse>
  base::Result<void> parsed(const char* key, T& target, const Parse& parse) {
    std::string given;
    ASSAY_TRY_VOID(text(key, given));
    if (given.empty()) return {};
    ASSAY_TRY(target, parse(fmt::format("{}: {}", table_.find(key)->origin().text(), key), given));
    return {};
  }
  base::Result<void> no_others() const {
    const auto* table = table_.get<Value::Table>();
    if (table == nullptr) return base::fail(wrong(table_, "arm", "a table"));
    for (const auto& [key, value] : *table) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      return base::fail(base::usage_error(value.origin().text(),
                                          fmt::format("unknown key '{}'", key),
                                          base::suggestion(key, known_)));
    }
    return {};
  }

 private:
  const Value& table_;
  std::vector<std::string> known_;
};

base::Result<Arm> arm_of(const Value& value, const Arm& common) {
  Arm arm = common;
  Keys keys(value);
  ASSAY_TRY_VOID(keys.text("name", arm.name));
  ASSAY_TRY_VOID(keys.text("command", arm.command));
  ASSAY_TRY_VOID(keys.text("prepare", arm.prepare));
  ASSAY_TRY_VOID(keys.text("cleanup", arm.cleanup));
  if (const Value* environment = keys.take("environment")) {
    const auto* table = environment->get<Value::Table>();
    if (table == nullptr) return base::fail(wrong(*environment, "environment", "a table"));
    for (const auto& [name, setting] : *table) {
      const auto* text = setting.get<std::string>();
      if (text == nullptr) return base::fail(wrong(setting, name, "a string"));
      arm.environment.push_back(name + "=" + *text);
    }
  }
  ASSAY_TRY_VOID(keys.no_others());
  return arm;
}

}  // namespace

base::Result<Experiment> read_experiment(const std::string& file) {
  ASSAY_TRY(const std::string text, base::read_file(file, kLargestExperiment, base::Pipes::kRead));
  ASSAY_TRY(const Value document, spec::parse_toml(text, file));
  Experiment e;
  e.seed = 0;
  Arm common;
  Keys keys(document);
  ASSAY_TRY_VOID(keys.text("prepare", common.prepare));
  ASSAY_TRY_VOID(keys.text("cleanup", common.cleanup));
  ASSAY_TRY_VOID(keys.parsed("metric", e.metric, metric_of));
  ASSAY_TRY_VOID(keys.parsed("steps", e.steps, steps_metric_of));
  ASSAY_TRY_VOID(keys.parsed("step_unit", e.step_seconds, step_unit_of));
  ASSAY_TRY_VOID(keys.parsed("quality", e.quality, metric_of));
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
    if (list == nullptr) return base::fail(wrong(*arms, "arm", "a list: [[arm]]"));
    for (const Value& arm : *list) {
      ASSAY_TRY(Arm read, arm_of(arm, common));
      e.arms.push_back(std::move(read));
    }
  }
  ASSAY_TRY_VOID(keys.no_others());
  return e;
}

}  // namespace assay::cli
