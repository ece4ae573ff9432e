// assay plan: what a job will exchange and cost, before anything is rented.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "base/decimal.h"
#include "base/text.h"
#include "print_plan.h"
#include "print_spec.h"
#include "spec/presets.h"
#include "spec_words.h"
#include "verbs.h"

namespace assay::cli {
namespace {

constexpr double kLongestStep = 1e6;  // seconds: what is longer was meant otherwise

struct PlanWords {
  std::string job;
  std::vector<std::string> sets;
  std::string step_time, watts, pue, grid;
};

// A number without a unit is of `unit`.
std::string with_unit(const std::string& text, const char* unit) {
  return base::decimal_size(text) == text.size() ? text + unit : text;
}

// The value of an option by one of base's parsers, whose errors do not know where the text stood.
template <class T>
base::Result<std::optional<T>> parsed(const std::string& option, const std::string& text,
                                      const char* unit,
                                      base::Result<T> (*parse)(std::string_view)) {
  if (text.empty()) return std::nullopt;
  auto value = parse(with_unit(text, unit));
  if (!value) {
    value.error().where = option;
    return base::fail(std::move(value).error());
  }
  if (value->count() <= 0) {
    return base::fail(base::usage_error(option, fmt::format("'{}' is not more than 0", text)));
  }
  return *value;
}

base::Result<std::optional<double>> parse_factor(const std::string& option, const std::string& text,
                                                 double least, double most) {
  if (text.empty()) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(value >= least && value <= most)) {
    return base::fail(base::usage_error(
        option, fmt::format("'{}' is not a number from {} to {}", text, least, most)));
  }
  return value;
}

base::Result<void> add_run(Plan& plan, base::Seconds step, const plan::EnergyChoices& choices) {
  const spec::JobSpec& job = plan.job();
  const auto steps = spec::training_steps(job);
  if (!steps) {
    return base::fail(
        base::usage_error(plan.loaded.name, "does not say how long it trains",
                          "set train.steps, train.tokens or train.tokens_per_matmul_parameter"));
  }
  plan.run = plan::RunTime{.step = step, .steps = *steps};
  const base::Seconds time = plan.run->total();
  ASSAY_TRY(const spec::PriceList prices, spec::preset_prices());
  // What is not known is said beside what is.
  auto costs = plan::costs_of(offers_for(plan.loaded, prices), job.cluster, time);
  if (costs) {
    plan.costs = *std::move(costs);
  } else {
    plan.unknown.push_back(costs.error().line());
  }
  auto energy = plan::energy_of(job.cluster, time, choices);
  if (energy) {
    plan.energy = *std::move(energy);
  } else {
    plan.unknown.push_back(energy.error().line());
  }
  return {};
}

base::Result<plan::EnergyChoices> parse_choices(const PlanWords& words) {
  plan::EnergyChoices choices;
  ASSAY_TRY(choices.watts_per_device, parsed("--watts", words.watts, " W", base::parse_watts));
  ASSAY_TRY(choices.pue, parse_factor("--pue", words.pue, 1, 100));
  ASSAY_TRY(choices.grid_g_per_kwh, parse_factor("--grid", words.grid, 0, 10'000));
  const bool any = !(words.watts + words.pue + words.grid).empty();
  if (any && words.step_time.empty()) {
    return base::fail(base::usage_error(
        "plan", "--watts, --pue and --grid are about a run whose time is not known",
        "give --step-time"));
  }
  return choices;
}

base::Result<base::ExitCode> make_plan(const Session& session, const PlanWords& words) {
  ASSAY_TRY(const auto step, parsed("--step-time", words.step_time, " s", base::parse_seconds));
  if (step && step->count() > kLongestStep) {
    return base::fail(base::usage_error(
        "--step-time", fmt::format("'{}' is longer than a step can take", words.step_time),
        "give the time of one optimizer step, in seconds"));
  }
  ASSAY_TRY(const plan::EnergyChoices choices, parse_choices(words));
  ASSAY_TRY(spec::Loaded loaded, spec::load(words.job, {.overrides = words.sets}));
  const auto* job = std::get_if<spec::JobSpec>(&loaded.spec);
  if (job == nullptr) {
    return base::fail(
        base::usage_error(words.job, fmt::format("is a {}, no job", spec::to_text(loaded.kind())),
                          "a job has a [model] and a [batch] or [train]"));
  }
  ASSAY_TRY(plan::Communication communication, plan::communication_of(*job));
  Plan plan{.loaded = std::move(loaded), .communication = std::move(communication)};
  if (step) ASSAY_TRY_VOID(add_run(plan, *step, choices));
  session.print_json(plan_json(plan));
  print_plan(session, plan);
  session.next(step ? "assay presets list prices, for where each price comes from"
                    : fmt::format("assay plan {} --step-time SECONDS, for hours, money and carbon",
                                  base::shell_quoted(base::printable(words.job))));
  return base::ExitCode::kYes;
}

}  // namespace

Verb plan_verb(const Session& session) {
  const auto words = std::make_shared<PlanWords>();
  return {
      .name = "plan",
      .description = "what a job will exchange and cost, before it runs",
      .examples = {"assay plan nanochat-d26-h100",
                   "assay plan nanochat-d26-h100 --step-time 0.7019",
                   "assay plan job.toml --set layout.fsdp=8 --json"},
      .arguments = {{"JOB", "a preset or a job file", &words->job, true, job_presets, true}},
      .options =
          {{"--set", "written over the job; repeatable", &words->sets, override_keys},
           {"--step-time", "of one optimizer step: 0.7, 701.9ms", &words->step_time, {}, "SECONDS"},
           {"--watts", "a device draws; default: its power limit", &words->watts, {}, "WATTS"},
           {"--pue",
            "the building's power over the machines'; default: 1.56",
            &words->pue,
            {},
            "N"},
           {"--grid", "grams of CO2 per kWh; default: 473", &words->grid, {}, "GRAMS"}},
      .action = [&session, words] { return make_plan(session, *words); }};
}

}  // namespace assay::cli
