// assay plan JOB: communication, step time, memory and cost of one job.
#include "assay/plan/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "assay/plan/modes.h"
#include "assay/plan/pictures.h"
#include "assay/plan/print.h"
#include "assay/shared/spec_summary.h"
#include "base/decimal.h"
#include "base/text.h"
#include "plan/rank_footprints.h"
#include "plan/search/layouts.h"
#include "plan/software_layouts.h"
#include "spec/enum_names.h"
#include "spec/presets.h"

namespace assay::cli {
namespace {

constexpr double kLongestStep = 1e6;  // seconds: what is longer was meant otherwise

base::Result<std::optional<base::Watts>> watts_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const bool bare = base::decimal_size(text) == text.size();
  auto value = base::parse_watts(bare ? text + " W" : text);
  if (!value) {
    value.error().where = "--watts";
    return base::fail(std::move(value).error());
  }
  if (value->count() <= 0) {
    return base::fail(
        base::usage_error("--watts", fmt::format("must be greater than 0, got '{}'", text)));
  }
  return *value;
}

base::Result<plan::EnergyChoices> energy_choices(const PlanOptions& options) {
  plan::EnergyChoices choices;
  ASSAY_TRY(choices.watts_per_device, watts_of(options.watts));
  ASSAY_TRY(choices.pue, factor_of("--pue", options.pue, 1, 100));
  ASSAY_TRY(choices.grid_g_per_kwh, factor_of("--grid", options.grid, 0, 10'000));
  return choices;
}

// What is not known is listed beside what is.
template <class T, class Known>
void take(base::Result<T> result, JobPlan& plan, Known known) {
  if (result) {
    known(*std::move(result));
  } else {
    plan.plan.unknown.push_back(result.error().line());
  }
}

void add_scaling(JobPlan& plan, const plan::PlanInputs& inputs) {
  if (!plan.plan.step) return;
  plan.interval = plan.plan.step->interval;
  take(plan::scaling_of(plan.job(), plan.plan, inputs), plan,
       [&](std::vector<plan::ScalePoint> points) { plan.scaling = std::move(points); });
}

base::Result<void> add_run(JobPlan& plan, std::optional<base::Seconds> given,
                           const plan::EnergyChoices& choices) {
  const spec::JobSpec& job = plan.job();
  if (plan.fit() == Fit::kNo) {
    plan.plan.unknown.push_back(fmt::format(
        "time and cost: the job does not fit into device memory; use --search{}, or change "
        "layout.tp, layout.fsdp, train.recompute or batch.micro_batch",
        spec::training_steps(job) ? "" : " with train.tokens"));
    return {};
  }
  if (!given && !plan.plan.step) return {};
  const auto steps = spec::training_steps(job);
  if (!steps) {
    const auto error =
        base::usage_error(plan.loaded.name, "has no training length",
                          "set train.steps, train.tokens or train.tokens_per_matmul_parameter");
    if (given) return base::fail(error);
    plan.plan.unknown.push_back(error.line());
    return {};
  }
  plan.step_given = given.has_value();
  plan.run = plan::RunTime{.step = given ? *given : plan.plan.step->time.total, .steps = *steps};
  const base::Seconds time = plan.run->total();
  ASSAY_TRY(const spec::PriceList prices, spec::preset_prices());
  take(plan::costs_of(offers_for(plan.loaded, prices), job.cluster, time), plan,
       [&](std::vector<plan::OfferCost> costs) { plan.costs = std::move(costs); });
  for (const spec::Market market : {spec::Market::kOnDemand, spec::Market::kSpot}) {
    const bool priced = std::any_of(plan.costs.begin(), plan.costs.end(),
                                    [&](const auto& cost) { return cost.offer.market == market; });
    if (!plan.costs.empty() && !priced) {
      plan.plan.unknown.push_back(fmt::format("price: no {} price is known for '{}'",
                                              spec::to_text(market), job.cluster.device.name));
    }
  }
  take(plan::energy_of(job.cluster, time, choices), plan,
       [&](plan::Energy energy) { plan.energy = std::move(energy); });
  return {};
}

std::string in_quotes(std::string_view word) {
  return fmt::format("\"{}\"", word);
}

// All names of a policy: a job file may have used any.
std::string spelled(spec::Recompute policy) {
  if (policy == spec::Recompute::kCheap) return "\"cheap\" (or \"selective\", its other name)";
  return in_quotes(spec::to_text(policy));
}

// The policy that --set names, as it does; empty if it names none.
std::string recompute_in(const std::vector<std::string>& sets) {
  constexpr std::string_view kKey = "train.recompute=";
  std::string policy;
  for (const std::string& set : sets) {
    if (!set.starts_with(kKey)) continue;
    policy = base::trim(std::string_view(set).substr(kKey.size()));
    std::erase(policy, '"');
  }
  return policy;
}

// What is known about errors of the constants in use.
std::string known_errors(const plan::Calibration& calibration, const std::string& file,
                         bool mixtures) {
  const char* models = mixtures ? "mixtures" : "dense models";
  if (file.empty()) {
    const plan::PanelError panel = plan::panel_error(mixtures);
    return fmt::format(
        "mean error on {} of {} held out of all fits: {:.1f} %; {:.0f} % inside the "
        "interval",
        models, base::counted(panel.projects, "project"), 100 * panel.mean, 100 * panel.coverage);
  }
  return plan::described(calibration.fitted_to, file, mixtures);
}

}  // namespace

std::string room_for_experts(const JobPlan& plan) {
  const auto layout = step::layout_of(plan.job().layout, 0);
  if (!plan.plan.memory || !plan.plan.memory->counted || !layout) return {};
  step::Choices choices = step::choices_of(plan.job());
  choices.layout = *layout;
  return plan::room_for_experts(plan.job().model, choices);
}

std::string why_recomputed(const JobPlan& plan) {
  const spec::Recompute requested = plan.job().train.recompute;
  const std::string& made = plan.plan.recompute;
  if (made.empty() || requested == spec::Recompute::kAuto || made == spec::to_text(requested) ||
      made == plan.asked_recompute) {
    return {};
  }
  return fmt::format(
      "the job asks for train.recompute = {}: {} has no such policy; \"{}\" is the nearest",
      plan.asked_recompute.empty() ? spelled(requested) : in_quotes(plan.asked_recompute),
      plan.plan.framework, made);
}

std::string why_scheduled(const JobPlan& plan) {
  const auto framework = plan::parse_framework(plan.plan.framework);
  const spec::PipelineSchedule asked = plan.job().layout.pp_schedule;
  if (!framework) return {};
  const spec::PipelineSchedule run = plan::layout_run_by(*framework, plan.job().layout).pp_schedule;
  if (run == asked) return {};
  return fmt::format(
      "the job asks for layout.pp_schedule = {}: {} has no such schedule; {} is planned",
      in_quotes(spec::to_text(asked)), plan.plan.framework, in_quotes(spec::to_text(run)));
}

Fit fit_of(const std::optional<plan::PlannedMemory>& memory, const plan::ErrorInterval& needed) {
  if (!memory || memory->fits()) {
    const bool open = memory && !memory->counted && memory->device > base::Bytes(0) &&
                      needed.high * static_cast<double>(memory->need.total().count()) >
                          static_cast<double>(memory->device.count());
    return open ? Fit::kPerhaps : Fit::kYes;
  }
  return Fit::kNo;
}

std::string_view to_text(Fit fit) {
  switch (fit) {
    case Fit::kYes:
      return "fits";
    case Fit::kPerhaps:
      return "may not fit";
    case Fit::kNo:
      return "does not fit";
  }
  return "";
}

base::ExitCode exit_code_of(Fit fit) {
  switch (fit) {
    case Fit::kYes:
      return base::ExitCode::kYes;
    case Fit::kPerhaps:
      return base::ExitCode::kInconclusive;
    case Fit::kNo:
      return base::ExitCode::kNo;
  }
  return base::ExitCode::kNo;
}

base::Result<JobPlan> make_job_plan(const PlanOptions& options) {
  ASSAY_TRY(const auto step, duration_of("--step-time", options.step_time, " s"));
  if (step && step->count() > kLongestStep) {
    return base::fail(base::usage_error(
        "--step-time", fmt::format("'{}' is too long for one step", options.step_time),
        "give the time of one optimizer step, in seconds"));
  }
  ASSAY_TRY(const plan::EnergyChoices choices, energy_choices(options));
  ASSAY_TRY(const plan::Assumed assumed, assumed_by(options));
  ASSAY_TRY(const plan::Calibration calibration, calibration_by(options));
  const plan::PlanInputs inputs = calibration.inputs(assumed);
  ASSAY_TRY(spec::Loaded loaded, load_job(options));
  const auto& job = std::get<spec::JobSpec>(loaded.spec);
  const plan::Framework usual = plan::framework_of(job, assumed);
  auto instead = assumed.framework ? std::nullopt : plan::framework_instead(job);
  std::string framework_why;
  if (const auto able = assumed.framework ? std::nullopt : plan::framework_for_layout(job)) {
    instead = able;
    framework_why =
        fmt::format("{}: {} is planned", plan::missing_in(usual, job.layout), plan::to_text(*able));
  }
  const plan::Framework framework = instead.value_or(usual);
  ASSAY_TRY_VOID(plan::check_precision(job, framework));
  ASSAY_TRY_VOID(plan::check_layout_run(framework, job));
  JobPlan plan{.plan = plan::plan_of(loaded.name, job, inputs)};
  plan.loaded = std::move(loaded);
  plan.asked_recompute = recompute_in(options.sets);
  plan.framework_why = std::move(framework_why);
  plan.memory_intervals = calibration.memory_intervals;
  plan.constants_file = options.constants;
  plan.known_errors = known_errors(calibration, options.constants, plan.job().model.is_moe());
  add_scaling(plan, inputs);
  if (plan.fit() == Fit::kNo) plan.plan.step.reset();
  ASSAY_TRY_VOID(add_run(plan, step, choices));
  return plan;
}

base::Result<base::ExitCode> plan_job(const Session& session, const PlanOptions& options) {
  ASSAY_TRY_VOID(check_svg(options));
  ASSAY_TRY(const JobPlan plan, make_job_plan(options));
  // Before anything is printed.
  if (!options.svg.empty() && !plan.plan.step && plan.fit() != Fit::kNo) {
    return base::fail(base::usage_error("--svg", "there is no prediction to plot",
                                        "see what the plan lists as not known"));
  }
  session.print_json(plan_json(plan));
  print_plan(session, plan);
  if (!options.svg.empty()) ASSAY_TRY_VOID(draw_plan(session, plan, options.svg));
  if (plan.interval) {
    // A search prices whole runs.
    const char* length = spec::training_steps(plan.job()) ? "" : " --set train.tokens=N";
    session.next(fmt::format("{} --search{}, for other layouts, machines and offers",
                             plan_command(options), length));
  }
  return exit_code_of(plan.fit());
}

}  // namespace assay::cli
