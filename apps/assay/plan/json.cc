// A plan as JSON: the counterpart of print_plan.cc.
#include "assay/plan/print.h"
#include "plan/search/layouts.h"
#include "spec/enum_names.h"

namespace assay::cli {
namespace {

using base::Json;

Json volume_json(const plan::Volume& volume) {
  return {{"reduce_scatter", volume.reduce_scatter},
          {"all_gather", volume.all_gather},
          {"all_reduce", volume.all_reduce},
          {"total", volume.total()}};
}

Json groups_json(const plan::Communication& communication) {
  Json rows = Json::array();
  for (const plan::GroupTraffic& group : communication.groups) {
    rows.push_back({{"group", group.group},
                    {"parameters", group.parameters},
                    {"optimizer", to_text(group.optimizer)},
                    {"dtype", to_text(group.type)},
                    {"tensors", group.tensors},
                    {"padded_tensors", group.padded},
                    {"elements_each", group.elements_each},
                    {"elements", group.elements},
                    {"bytes", volume_json(group.bytes())},
                    {"two_byte_bytes", volume_json(group.two_byte_bytes())}});
  }
  return rows;
}

Json calls_json(std::string_view about, const plan::CallSummary& calls) {
  return {{"op", to_text(calls.kind)},
          {"dtype", to_text(calls.type)},
          {"about", about},
          {"calls", calls.calls},
          {"bytes", calls.bytes},
          {"mean_bytes", calls.mean_bytes()},
          {"least_bytes", calls.least_bytes},
          {"most_bytes", calls.most_bytes}};
}

Json calls_json(const Plan& plan) {
  Json rows = Json::array();
  for (const plan::CallSummary& calls : plan.communication.calls()) {
    rows.push_back(calls_json("parameters", calls));
  }
  for (const plan::ActivationCalls& one : plan.activations) {
    rows.push_back(calls_json(step::to_text(one.axis), one.calls));
  }
  return rows;
}

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

Json input_json(const plan::Input& input) {
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

// Workspace has all that is none of the other four; its parts are told beside it.
Json memory_json(const plan::Prediction& made) {
  const plan::MemoryNeed& need = made.memory;
  const double total = need.total() / kBytesPerGib;
  const plan::Interval interval = plan::memory_interval();
  return {{"total", total},
          {"total_low", total * interval.low},
          {"total_high", total * interval.high},
          {"params", need.parameters / kBytesPerGib},
          {"grads", need.gradients / kBytesPerGib},
          {"optimizer", need.optimizer / kBytesPerGib},
          {"activations", need.activations / kBytesPerGib},
          {"workspace", (need.gathered + need.workspace) / kBytesPerGib},
          {"gathered", need.gathered / kBytesPerGib},
          {"stage", need.stage},
          {"card", made.work.card.memory / kBytesPerGib},
          {"fits", made.fits}};
}

Json scaling_json(const std::vector<plan::ScalePoint>& points, const plan::Interval& interval) {
  Json rows = Json::array();
  for (const plan::ScalePoint& point : points) {
    const plan::Prediction& made = point.prediction;
    rows.push_back({{"devices", point.devices},
                    {"layout", plan::to_text(point.layout)},
                    {"step_s", made.step.total.count()},
                    {"step_low_s", interval.low * made.step.total.count()},
                    {"step_high_s", interval.high * made.step.total.count()},
                    {"tokens_per_s", made.tokens_per_second},
                    {"of_ideal", point.of_ideal},
                    {"mfu", {{"published", made.mfu_with_embedding}, {"current", made.mfu}}},
                    {"memory_gib", made.memory.total() / kBytesPerGib},
                    {"fits", made.fits},
                    {"is_job", point.is_job}});
  }
  return rows;
}

void add_prediction_json(const Plan& plan, Json& json) {
  const plan::Prediction& made = *plan.prediction;
  const double step = made.step.total.count();
  json["step_s"] = step;
  json["step_low_s"] = step * plan.interval.low;
  json["step_high_s"] = step * plan.interval.high;
  json["step_source"] = "predicted";
  json["framework"] = plan::to_text(made.work.software.framework);
  json["recompute"] = plan::to_text(made.work.recompute);
  json["comparable_rows"] = plan.interval.rows;
  json["extrapolations"] = plan.extrapolations;
  json["tokens_per_s"] = made.tokens_per_second;
  json["mfu"] = {{"published", made.mfu_with_embedding}, {"current", made.mfu}};
  json["memory_gib"] = memory_json(made);
  Json breakdown = Json::object();
  for (const StepPart& part : parts_of(made.step)) breakdown[part.key] = part.time.count();
  json["breakdown"] = std::move(breakdown);
  json["scaling"] = scaling_json(plan.scaling, plan.interval);
}

// What was given stands in the place of what was predicted, and that moves aside.
void add_given_step(const Plan& plan, Json& json) {
  const double given = plan.run->step.count();
  if (plan.prediction) {
    const double times = plan.prediction->step.total.count() / given;
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

Json plan_json(const Plan& plan) {
  const spec::JobSpec& job = plan.job();
  const plan::Communication& communication = plan.communication;
  const auto steps = spec::training_steps(job);
  Json json = {{"name", plan.loaded.name},
               {"tokens_per_step", job.tokens_per_step()},
               {"steps", steps ? Json(*steps) : Json(nullptr)}};
  // What is not known is null, and `unknown` says why.
  for (const char* key : {"step_s", "step_low_s", "step_high_s", "tokens_per_s", "mfu",
                          "memory_gib", "breakdown", "scaling"}) {
    json[key] = nullptr;
  }
  if (plan.prediction) add_prediction_json(plan, json);
  if (plan.step_given) add_given_step(plan, json);
  if (plan.run) {
    json["hours"] = plan.run->total().count() / 3600;
  }
  json["comm"] = {{"scheme", communication.scheme},
                  {"stage", communication.stage},
                  {"bytes", volume_json(communication.bytes())},
                  {"two_byte_bytes", volume_json(communication.two_byte_bytes())},
                  {"sent_bytes_per_rank", communication.sent_bytes()}};
  json["comm_groups"] = groups_json(communication);
  json["collectives"] = calls_json(plan);
  json["cost"] = costs_json(plan.costs);
  json["carbon"] = plan.energy ? energy_json(*plan.energy) : Json(nullptr);
  json["unknown"] = plan.unknown;
  return json;
}

}  // namespace assay::cli
