// assay plan JOB: communication, step time, memory and cost of one job.
#include <fmt/format.h>

#include <algorithm>

#include "assay/plan/options.h"
#include "assay/plan/pictures.h"
#include "assay/plan/print.h"
#include "assay/presets/print.h"
#include "base/decimal.h"
#include "base/text.h"
#include "plan/search/layouts.h"
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
  const plan::Assumed same{.framework = plan::parse_framework(plan.plan.framework),
                           .imbalance = inputs.assumed.imbalance};
  take(plan::scaling_of(plan.job(), same, inputs.constants), plan,
       [&](std::vector<plan::ScalePoint> points) { plan.scaling = std::move(points); });
  // The closed form is for comparing numbers of devices; the job's own figures are the plan's.
  for (plan::ScalePoint& point : plan.scaling) {
    if (!point.is_job || !plan.plan.memory->counted) continue;
    plan::Prediction& own = point.prediction;
    own.step = plan.plan.step->time;
    own.tokens_per_second = plan.plan.step->tokens_per_s;
    own.mfu = plan.plan.step->mfu;
    own.mfu_with_embedding = plan.plan.step->mfu_with_embedding;
    own.memory = plan.plan.memory->need;
    own.fits = plan.plan.memory->fits();
  }
}

bool fits(const JobPlan& plan) {
  return !plan.plan.memory || plan.plan.memory->fits();
}

base::Result<void> add_run(JobPlan& plan, std::optional<base::Seconds> given,
                           const plan::EnergyChoices& choices) {
  const spec::JobSpec& job = plan.job();
  if (!given && !plan.plan.step) return {};
  if (!fits(plan)) {
    plan.plan.unknown.push_back(
        "time and cost: the job does not fit into device memory; use --search, or change "
        "layout.tp, layout.fsdp, train.recompute or batch.micro_batch");
    return {};
  }
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

}  // namespace

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
  JobPlan plan{.plan = plan::plan_of(loaded.name, job, inputs)};
  plan.loaded = std::move(loaded);
  add_scaling(plan, inputs);
  ASSAY_TRY_VOID(add_run(plan, step, choices));
  return plan;
}

base::Result<base::ExitCode> plan_job(const Session& session, const PlanOptions& options) {
  ASSAY_TRY(const JobPlan plan, make_job_plan(options));
  session.print_json(plan_json(plan));
  print_plan(session, plan);
  if (!options.svg.empty()) ASSAY_TRY_VOID(draw_plan(session, plan, options.svg));
  if (plan.plan.step) {
    session.next(fmt::format("assay plan {} --search, for other layouts, machines and offers",
                             base::shell_quoted(base::printable(options.job))));
  }
  return fits(plan) ? base::ExitCode::kYes : base::ExitCode::kNo;
}

}  // namespace assay::cli
