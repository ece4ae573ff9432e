// The JSON of `assay plan JOB`: the plan's own keys, and what the job adds to them.
#include <algorithm>
#include <utility>

#include "assay/plan/print.h"
#include "assay/shared/spec_summary.h"
#include "plan/search/layouts.h"
#include "spec/enum_names.h"

namespace assay::cli {
namespace {

using base::Json;

Json costs_json(const std::vector<plan::OfferCost>& costs) {
  Json rows = Json::array();
  for (const plan::OfferCost& cost : costs) {
    rows.push_back({{"provider", cost.offer.provider},
                    {"offer", cost.offer.offer},
                    {"device", cost.offer.device},
                    {"devices", cost.offer.devices},
                    {"market", to_text(cost.offer.market)},
                    {"rented", cost.rented},
                    {"idle_devices", cost.idle_devices},
                    {"per_hour", range_json(cost.per_hour)},
                    {"cost", range_json(cost.total)},
                    {"date", base::to_text(cost.offer.date)},
                    {"source", cost.offer.source}});
  }
  return rows;
}

Json input_json(const plan::SourcedNumber& input) {
  return {{"value", input.value}, {"source", input.source}};
}

Json energy_json(const plan::Energy& energy) {
  return {{"watts_per_device", input_json(energy.watts_per_device)},
          {"devices", energy.devices},
          {"hours", energy.time.count() / 3600},
          {"devices_kwh", energy.devices_kwh()},
          {"pue", input_json(energy.pue)},
          {"building_kwh", energy.building_kwh()},
          {"grid_g_per_kwh", input_json(energy.grid_g_per_kwh)},
          {"co2_kg", energy.carbon_kg()}};
}

constexpr base::Bytes kBytesPerGib(std::int64_t{1} << 30);

// Workspace is everything but the four above it; `gathered` is a part of it.
Json memory_gib_json(const JobPlan& plan) {
  const plan::PlannedMemory& memory = *plan.plan.memory;
  const plan::MemoryNeed& need = memory.need;
  const double total = need.total() / kBytesPerGib;
  const plan::ErrorInterval interval =
      memory.counted ? plan::ErrorInterval{.low = 1, .high = 1} : plan.memory_intervals.needed;
  const bool shipped = plan.constants_file.empty() || plan.memory_intervals.needed_of_others;
  return {{"total", total},
          {"total_low", total * interval.low},
          {"total_high", total * interval.high},
          {"interval_from", memory.counted ? Json(nullptr)
                            : shipped      ? Json("the shipped constants")
                                           : Json(plan.constants_file)},
          {"params", need.parameters / kBytesPerGib},
          {"grads", need.gradients / kBytesPerGib},
          {"optimizer", need.optimizer / kBytesPerGib},
          {"activations", need.activations / kBytesPerGib},
          {"workspace", (need.gathered + need.workspace) / kBytesPerGib},
          {"gathered", need.gathered / kBytesPerGib},
          {"stage", need.stage},
          {"card", memory.device / kBytesPerGib},
          {"fits", memory.fits()},
          {"fit", to_text(plan.fit())}};
}

Json parts_json(const plan::StepTime& step) {
  Json parts = Json::array();
  for (const plan::StepPart& part : plan::step_parts()) {
    parts.push_back({{"name", part.name}, {"s", (step.*part.time).count()}});
  }
  return parts;
}

Json scaling_json(const JobPlan& plan) {
  Json rows = Json::array();
  for (const plan::ScalePoint& point : plan.scaling) {
    const plan::Prediction& made = point.prediction;
    Json row{{"devices", point.devices},
             {"layout", plan::to_text(point.layout)},
             {"memory_gib", made.memory.total() / kBytesPerGib},
             {"fits", made.fits},
             {"is_job", point.is_job},
             {"recompute", plan::to_text(made.work.recompute)},
             {"own_recompute", point.own_recompute}};
    for (const char* key :
         {"step_s", "step_low_s", "step_high_s", "tokens_per_s", "of_ideal", "mfu", "parts"}) {
      row[key] = nullptr;
    }
    if (made.fits) {
      row["step_s"] = made.step.total.count();
      row["step_low_s"] = plan.interval->low * made.step.total.count();
      row["step_high_s"] = plan.interval->high * made.step.total.count();
      row["tokens_per_s"] = made.tokens_per_second;
      row["of_ideal"] = point.of_ideal;
      row["mfu"] = {{"published", made.mfu_with_embedding}, {"current", made.mfu}};
      row["parts"] = parts_json(made.step);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void add_prediction(const JobPlan& plan, Json& json) {
  json["step_source"] = "predicted";
  json["parts"] = parts_json(plan.plan.step->time);
}

// --step-time takes the place of what was predicted, which moves to `predicted`.
void add_given_step(const JobPlan& plan, Json& json) {
  const double given = plan.run->step.count();
  if (plan.plan.step) {
    const double times = plan.plan.step->time.total.count() / given;
    Json& predicted = json["predicted"];
    for (const char* key : {"step_s", "step_low_s", "step_high_s", "tokens_per_s", "mfu"}) {
      predicted[key] = json[key];
    }
    json["tokens_per_s"] = predicted["tokens_per_s"].get<double>() * times;
    for (const char* key : {"published", "current"}) {
      json["mfu"][key] = predicted["mfu"][key].get<double>() * times;
    }
  }
  json["step_s"] = json["step_low_s"] = json["step_high_s"] = given;
  json["step_source"] = "given";
}

}  // namespace

Json range_json(const spec::PriceRange& range) {
  const base::Currency currency = range.low.currency();
  return {{"low", range.low.units()},
          {"high", range.high.units()},
          {"currency", std::string(currency.code.data(), currency.code.size())}};
}

Json plan_json(const JobPlan& plan) {
  const spec::JobSpec& job = plan.job();
  const auto steps = spec::training_steps(job);
  Json json = plan::to_json(plan.plan);
  json["summary"] = summary(plan.loaded);
  json["layout"] = plan::to_text(job.layout);
  json["steps"] = base::or_null(steps);
  std::string room = room_for_experts(plan);  // in lines, for a terminal
  std::replace(room.begin(), room.end(), '\n', ' ');
  json["room_for_experts"] = std::move(room);
  json["framework_why"] = plan.framework_why;
  json["recompute_why"] = why_recomputed(plan);
  json["schedule_why"] = why_scheduled(plan);
  json["parts"] = nullptr;
  json["memory_gib"] = plan.plan.memory ? memory_gib_json(plan) : Json(nullptr);
  json["scaling"] = plan.interval ? scaling_json(plan) : Json(nullptr);
  json["step_source"] = nullptr;
  json["known_errors"] = plan.known_errors;
  if (plan.plan.step) add_prediction(plan, json);
  if (plan.step_given) add_given_step(plan, json);
  json["hours"] = plan.run ? Json(plan.run->total().count() / 3600) : Json(nullptr);
  json["cost"] = costs_json(plan.costs);
  json["carbon"] = plan.energy ? energy_json(*plan.energy) : Json(nullptr);
  return json;
}

}  // namespace assay::cli
