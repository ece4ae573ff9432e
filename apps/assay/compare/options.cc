#include "assay/compare/options.h"

#include <fmt/format.h>

#include <random>

#include "assay/project.h"
#include "assay/shared/experiment_file.h"
#include "base/text.h"
#include "cli/number_option.h"

namespace assay::cli {
namespace {

using compare::Arm;
using compare::Experiment;

constexpr std::string_view kVariableLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

base::Result<std::int64_t> whole_option(const std::string& option, const std::string& text,
                                        std::int64_t least) {
  return number_option<std::int64_t>("compare " + option, text, least);
}

// A single argument is a command line already, as in --a.
std::string command_line(const std::vector<std::string>& arguments, bool single_is_line) {
  if (single_is_line && arguments.size() == 1) return arguments.front();
  std::string command;
  for (const std::string& argument : arguments) {
    command += (command.empty() ? "" : " ") + base::shell_quoted(argument);
  }
  return command;
}

// "LD_PRELOAD=x.so K=v nice -n 5": leading settings go into the arm's environment, which is padded
// to the size of the bare arm's; the rest is put before the command.
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

base::Result<std::vector<Arm>> arms_of(const CompareOptions& options) {
  std::vector<Arm> arms;
  if (!options.under.empty()) {
    if (options.command.empty() || !options.a.empty() || !options.b.empty()) {
      return base::fail(base::usage_error("--under", "wraps one command",
                                          "assay compare --under 'WRAPPER' -- COMMAND"));
    }
    const std::string command = command_line(options.command, false);
    arms = {{"bare", command}, wrapped_arm(options.under, command)};
  } else if (!options.command.empty() && !options.scans.empty()) {
    arms = {{"command", command_line(options.command, true)}};
  } else if (!options.command.empty()) {
    return base::fail(base::usage_error("compare",
                                        fmt::format("unexpected '{}'", options.command.front()),
                                        "quote commands: --a 'COMMAND' --b 'COMMAND'; or --under "
                                        "'WRAPPER' -- COMMAND; or --scan N=1,2 -- COMMAND"));
  }
  if (!options.a.empty()) arms.push_back({"A", options.a});
  if (!options.b.empty()) arms.push_back({"B", options.b});
  for (const std::string& given : options.arms) {
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos) {
      return base::fail(
          base::usage_error("--arm", fmt::format("'{}' has no name", given), "--arm NAME=COMMAND"));
    }
    arms.push_back({given.substr(0, equals), given.substr(equals + 1)});
  }
  return arms;
}

// What --resume may change: when to stop, and how to judge.
base::Result<void> apply_rules(const CompareOptions& options, Experiment& e) {
  if (!options.margin.empty()) {
    ASSAY_TRY(e.judgement.margin_pct, percentage("--margin", options.margin));
    e.judgement.judged = true;
  }
  if (options.more_is_better) e.judgement.more_is_better = true;
  if (!options.half_width.empty()) {
    ASSAY_TRY(e.stop.half_width_pct, percentage("--half-width", options.half_width));
  }
  if (!options.max_time.empty()) {
    ASSAY_TRY(e.stop.max_time, duration("--max-time", options.max_time));
  }
  if (!options.min_pairs.empty()) {
    ASSAY_TRY(e.stop.min_pairs, whole_option("--min-pairs", options.min_pairs, 2));
  }
  if (!options.max_pairs.empty()) {
    ASSAY_TRY(e.stop.max_pairs, whole_option("--max-pairs", options.max_pairs, 1));
  }
  return {};
}

base::Result<void> apply_measuring(const CompareOptions& options, Experiment& e) {
  if (!options.metric.empty()) {
    ASSAY_TRY(e.metric, metric_of("--metric", options.metric));
  }
  if (!options.steps.empty()) {
    ASSAY_TRY(e.steps, steps_metric_of("--steps", options.steps));
  }
  if (!options.step_unit.empty()) {
    ASSAY_TRY(e.step_seconds, step_unit_of("--step-unit", options.step_unit));
  }
  if (!options.quality.empty()) {
    ASSAY_TRY(e.quality, metric_of("--quality", options.quality));
  }
  if (!options.warm_up.empty()) {
    ASSAY_TRY(e.warm_up, whole_option("--warm-up", options.warm_up, 0));
  }
  if (!options.timeout.empty()) {
    ASSAY_TRY(e.timeout, duration("--timeout", options.timeout));
  }
  if (!options.seed.empty()) {
    ASSAY_TRY(const std::int64_t seed, whole_option("--seed", options.seed, 0));
    e.seed = static_cast<std::uint64_t>(seed);
  }
  if (options.no_second_baseline) e.second_baseline = false;
  if (e.steps && e.metric.kind != compare::MetricKind::kWall) {
    return base::fail(base::usage_error("--metric", "cannot be combined with --steps",
                                        "leave it out: the steps are the metric"));
  }
  return {};
}

// Why there is only one arm, where the options show it.
base::Result<void> check_arms(const CompareOptions& options, const Experiment& e) {
  if (e.arms.size() != 1) return {};
  if (!e.scanned.empty()) {
    return base::fail(base::usage_error(
        "--scan",
        fmt::format("{} has one value: there is nothing to compare it with", e.scanned.front()),
        "give more values, or two commands with --a and --b"));
  }
  if (options.a.empty() == options.b.empty()) return {};
  return base::fail(base::usage_error(
      "compare", fmt::format("{} is missing or empty", options.a.empty() ? "--a" : "--b"),
      "give --a and --b, or --under WRAPPER -- COMMAND"));
}

std::uint64_t random_seed() {
  // 53 bits, which every JSON parser keeps.
  return std::random_device{}() | (std::uint64_t{std::random_device{}() >> 11U} << 32U);
}

}  // namespace

bool CompareOptions::changes_rules() const {
  return more_is_better || !(margin + half_width + max_time + min_pairs + max_pairs).empty();
}

base::Result<RequestedExperiments> requested_experiments(const CompareOptions& options) {
  Experiment e;
  e.seed = random_seed();
  bool has_margin = !options.margin.empty();
  std::vector<compare::ScanParameter> parameters;
  if (!options.file.empty()) {
    ASSAY_TRY(ExperimentFile file, read_experiment(options.file));
    e = std::move(file.experiment);
    if (e.seed == 0) e.seed = random_seed();
    has_margin = has_margin || file.has_margin;
    // As for other keys, the command line's scan replaces the file's.
    if (options.scans.empty()) parameters = std::move(file.scan);
  }
  ASSAY_TRY(std::vector<Arm> arms, arms_of(options));
  for (Arm& arm : arms) e.arms.push_back(std::move(arm));
  for (Arm& arm : e.arms) {
    if (!options.prepare.empty()) arm.prepare = options.prepare;
    if (!options.cleanup.empty()) arm.cleanup = options.cleanup;
  }
  ASSAY_TRY_VOID(apply_rules(options, e));
  ASSAY_TRY_VOID(apply_measuring(options, e));
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  e.directory = directory;
  for (const std::string& scan : options.scans) {
    ASSAY_TRY(compare::ScanParameter parameter, compare::parse_scan(scan));
    parameters.push_back(std::move(parameter));
  }
  RequestedExperiments requested;
  if (!parameters.empty() && e.arms.size() > 1) {
    for (const compare::ScanParameter& each : parameters) requested.parameters.push_back(each.name);
    ASSAY_TRY(requested.points, compare::experiment_per_value(e, parameters));
  } else if (!parameters.empty() && e.arms.size() == 1) {
    // A scan of one command shows how the value matters; without a margin there is nothing to
    // judge.
    e.judgement.judged = has_margin;
    ASSAY_TRY(e, compare::with_arm_per_value(e, parameters));
    requested.points.push_back({.name = {}, .values = {}, .experiment = std::move(e)});
  } else {
    // Of three or more the question is their order, not whether each is within a margin of the
    // first.
    if (e.arms.size() > 2) e.judgement.judged = has_margin;
    requested.points.push_back({.name = {}, .values = {}, .experiment = std::move(e)});
  }
  for (const compare::ScanPoint& point : requested.points) {
    ASSAY_TRY_VOID(check_arms(options, point.experiment));
    ASSAY_TRY_VOID(check(point.experiment));
  }
  return requested;
}

base::Result<void> change_experiment(const CompareOptions& o, Experiment& e) {
  const std::string fixed = o.a + o.b + o.under + o.file + o.output + o.metric + o.steps +
                            o.step_unit + o.quality + o.warm_up + o.timeout + o.prepare +
                            o.cleanup + o.seed;
  if (!fixed.empty() || !o.arms.empty() || !o.command.empty() || !o.scans.empty() ||
      o.no_second_baseline) {
    return base::fail(base::usage_error(
        "--resume", "a resumed experiment keeps its options",
        "only --half-width, --min-pairs, --max-pairs, --max-time and --margin can be changed"));
  }
  ASSAY_TRY_VOID(apply_rules(o, e));
  return check(e);
}

}  // namespace assay::cli
