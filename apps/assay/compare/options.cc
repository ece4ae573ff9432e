#include "assay/compare/options.h"

#include <fmt/format.h>

#include <charconv>
#include <random>

#include "assay/project.h"
#include "base/text.h"

namespace assay::cli {
namespace {

using compare::Arm;
using compare::Experiment;

constexpr std::string_view kVariableLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

base::Result<std::int64_t> whole_option(const char* option, const std::string& text) {
  return count_option("compare", option, text);
}

template <class T>
base::Result<T> placed(const std::string& where, base::Result<T> result) {
  if (!result && result.error().where.empty()) result.error().where = where;
  return result;
}

std::string joined_words(const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words) {
    command += (command.empty() ? "" : " ") + base::shell_quoted(word);
  }
  return command;
}

// "LD_PRELOAD=x.so K=v nice -n 5": settings in front become the arm's own, so that its environment
// is as large as the bare one's; the rest stands before the command.
Arm wrapped_arm(std::string_view wrapper, const std::string& command) {
  Arm arm{.name = "under"};
  while (true) {
    wrapper = base::trim(wrapper);
    const std::string_view word = wrapper.substr(0, wrapper.find_first_of(" \t"));
    const std::size_t name = word.find_first_not_of(kVariableLetters);
    const bool is_setting = name != std::string_view::npos && name > 0 && word[name] == '=' &&
                            word.find_first_of("'\"\\$`;|&<>()*?[]~") == std::string_view::npos;
    if (!is_setting) break;
    arm.environment.emplace_back(word);
    wrapper.remove_prefix(word.size());
  }
  arm.command = wrapper.empty() ? command : fmt::format("{} {}", wrapper, command);
  return arm;
}

base::Result<std::vector<Arm>> arms_of(const CompareWords& words) {
  std::vector<Arm> arms;
  if (!words.under.empty()) {
    if (words.command.empty() || !words.a.empty() || !words.b.empty()) {
      return base::fail(base::usage_error("--under", "wraps one command",
                                          "assay compare --under 'WRAPPER' -- COMMAND"));
    }
    const std::string command = joined_words(words.command);
    arms = {{"bare", command}, wrapped_arm(words.under, command)};
  } else if (!words.command.empty()) {
    return base::fail(base::usage_error("compare",
                                        fmt::format("what is '{}'?", words.command.front()),
                                        "commands are given in quotes: --a 'COMMAND' --b "
                                        "'COMMAND'; or --under 'WRAPPER' -- COMMAND"));
  }
  if (!words.a.empty()) arms.push_back({"A", words.a});
  if (!words.b.empty()) arms.push_back({"B", words.b});
  for (const std::string& given : words.arms) {
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos) {
      return base::fail(
          base::usage_error("--arm", fmt::format("'{}' has no name", given), "--arm NAME=COMMAND"));
    }
    arms.push_back({given.substr(0, equals), given.substr(equals + 1)});
  }
  return arms;
}

// What may change while an experiment goes on: when it ends, and how it is judged.
base::Result<void> apply_rules(const CompareWords& words, Experiment& e) {
  if (!words.margin.empty()) {
    ASSAY_TRY(e.judgement.margin_pct, percentage("--margin", words.margin));
  }
  if (words.more_is_better) e.judgement.more_is_better = true;
  if (!words.half_width.empty()) {
    ASSAY_TRY(e.stop.half_width_pct, percentage("--half-width", words.half_width));
  }
  if (!words.max_time.empty()) {
    ASSAY_TRY(e.stop.max_time, duration("--max-time", words.max_time));
  }
  if (!words.min_pairs.empty()) {
    ASSAY_TRY(e.stop.min_pairs, whole_option("--min-pairs", words.min_pairs));
  }
  if (!words.max_pairs.empty()) {
    ASSAY_TRY(e.stop.max_pairs, whole_option("--max-pairs", words.max_pairs));
  }
  return {};
}

base::Result<void> apply_measuring(const CompareWords& words, Experiment& e) {
  if (!words.metric.empty()) {
    ASSAY_TRY(e.metric, metric_of("--metric", words.metric));
  }
  if (!words.steps.empty()) {
    ASSAY_TRY(e.steps, steps_metric_of("--steps", words.steps));
  }
  if (!words.step_unit.empty()) {
    ASSAY_TRY(e.step_seconds, step_unit_of("--step-unit", words.step_unit));
  }
  if (!words.quality.empty()) {
    ASSAY_TRY(e.quality, metric_of("--quality", words.quality));
  }
  if (!words.warm_up.empty()) {
    ASSAY_TRY(e.warm_up, whole_option("--warm-up", words.warm_up));
  }
  if (!words.timeout.empty()) {
    ASSAY_TRY(e.timeout, duration("--timeout", words.timeout));
  }
  if (!words.seed.empty()) {
    ASSAY_TRY(const std::int64_t seed, whole_option("--seed", words.seed));
    e.seed = static_cast<std::uint64_t>(seed);
  }
  if (words.no_second_baseline) e.second_baseline = false;
  if (e.steps && e.metric.kind != compare::MetricKind::kWall) {
    return base::fail(base::usage_error("--metric", "says nothing beside --steps",
                                        "leave it out: steps are the metric"));
  }
  return {};
}

std::uint64_t any_seed() {
  // 53 bits: what every reader of JSON keeps.
  return std::random_device{}() | (std::uint64_t{std::random_device{}() >> 11U} << 32U);
}

}  // namespace

base::Result<double> percentage(const std::string& where, std::string_view text) {
  std::string_view number = base::trim(text);
  if (number.ends_with('%')) number = base::trim(number.substr(0, number.size() - 1));
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) {
    return base::fail(base::usage_error(where, fmt::format("'{}' is not a percentage", text),
                                        "0.5%, for example"));
  }
  return value;
}

base::Result<double> step_unit_of(const std::string& where, std::string_view text) {
  if (text == "s") return 1;
  if (text == "ms") return 1e-3;
  if (text == "us") return 1e-6;
  return base::fail(
      base::usage_error(where, fmt::format("'{}' is no unit of steps", text), "one of s, ms, us"));
}

base::Result<base::Seconds> duration(const std::string& where, std::string_view text) {
  return placed(where, base::parse_seconds(text));
}

base::Result<compare::Metric> metric_of(const std::string& where, std::string_view text) {
  return placed(where, compare::parse_metric(text));
}

base::Result<compare::Metric> steps_metric_of(const std::string& where, std::string_view text) {
  return placed(where, compare::parse_steps(text));
}

base::Result<Experiment> experiment_of(const CompareWords& words) {
  Experiment e;
  e.seed = any_seed();
  if (!words.file.empty()) {
    ASSAY_TRY(e, read_experiment(words.file));
    if (e.seed == 0) e.seed = any_seed();
  }
  ASSAY_TRY(std::vector<Arm> arms, arms_of(words));
  for (Arm& arm : arms) e.arms.push_back(std::move(arm));
  for (Arm& arm : e.arms) {
    if (!words.prepare.empty()) arm.prepare = words.prepare;
    if (!words.cleanup.empty()) arm.cleanup = words.cleanup;
  }
  ASSAY_TRY_VOID(apply_rules(words, e));
  ASSAY_TRY_VOID(apply_measuring(words, e));
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  e.directory = directory;
  ASSAY_TRY_VOID(check(e));
  return e;
}

base::Result<void> change_experiment(const CompareWords& w, Experiment& e) {
  const std::string asked = w.a + w.b + w.under + w.file + w.output + w.metric + w.steps +
                            w.step_unit + w.quality + w.warm_up + w.timeout + w.prepare +
                            w.cleanup + w.seed;
  if (!asked.empty() || !w.arms.empty() || !w.command.empty() || w.no_second_baseline) {
    return base::fail(base::usage_error(
        "--resume", "an experiment goes on as it began",
        "only --half-width, --min-pairs, --max-pairs, --max-time and --margin can be changed"));
  }
  ASSAY_TRY_VOID(apply_rules(w, e));
  return check(e);
}

}  // namespace assay::cli
