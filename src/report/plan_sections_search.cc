#include "report/plan_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "plot/scatter.h"
#include "report/numbers.h"
#include "report/plan_values.h"

namespace assay::report {
namespace {

using base::Json;

constexpr std::size_t kReasonsShown = 12;

std::string counted(double count, const char* what) {
  return fmt::format("{} {}{}", figure(count), what, count == 1 ? "" : "s");
}

// In a table, as machines x GPUs of each: "2 x 4 NVIDIA H200".
std::string short_machines(const Json& one) {
  const double each = number_in(one, "devices_per_node");
  const std::string nodes = figure(number_in(one, "nodes"));
  if (!std::isfinite(each)) return fmt::format("{} x {}", nodes, text_in(one, "machines"));
  return fmt::format("{} x {} {}", nodes, figure(each), text_in(one, "gpu"));
}

// "2 machines of 4 x NVIDIA H200 (8 GPUs)".
std::string machines_text(const Json& one) {
  const double each = number_in(one, "devices_per_node");
  const std::string gpu = text_in(one, "gpu");
  const std::string gpus = counted(number_in(one, "devices"), "GPU");
  if (!std::isfinite(each) || gpu.empty())  // older searches
    return fmt::format("{} ({})", short_machines(one), gpus);
  return fmt::format("{} of {} x {} ({})", counted(number_in(one, "nodes"), "machine"),
                     figure(each), gpu, gpus);
}

// Empty where all that is rented is used.
std::string idle_text(const Json& one) {
  const double idle = number_in(one, "idle_devices");
  if (!(idle > 0)) return {};
  return fmt::format("{} of {} rented GPUs are paid for but idle", figure(idle),
                     figure(idle + number_in(one, "devices")));
}

bool is_priced(const Json& one) {
  return !object_in(one, "cost_p50").empty();
}

std::string offer_text(const Json& one) {
  return is_priced(one) ? fmt::format("{}, {}", text_in(one, "provider"), text_in(one, "policy"))
                        : "no price known";
}

std::string layout_text(const Json& one) {
  return fmt::format("{}; {} x {}, {}", text_in(one, "layout_text"),
                     figure(number_in(one, "micro_batch")), figure(number_in(one, "accumulate")),
                     text_in(one, "recompute"));
}

double cost_of(const Json& one) {
  return is_priced(one) ? number_in(object_in(one, "cost_p50"), "high")
                        : number_in(one, "gpu_hours_p50");
}

Cell hours_cell(const Json& one, const char* key) {
  const double hours = number_in(one, key);
  return std::isfinite(hours) ? Cell(fmt::format("{:.3g}", hours), hours) : Cell("—");
}

Cell cost_cell(const Json& one, const char* key) {
  const Json& range = object_in(one, key);
  const double high = number_in(range, "high");
  return std::isfinite(high) ? Cell(cost_text(range), high) : Cell("—");
}

bool keeps_limits(const Json& one) {
  return !one.is_object() || !one.contains("misses") || one.at("misses").is_null();
}

// Without prices, GPU-hours take the place of money.
Chart pareto_chart(const Json& search, const Json& recommended) {
  const bool priced = is_priced(recommended);
  const std::string title = priced ? "Time versus cost" : "Time versus GPU-hours";
  plot::Scatter chart{.heading = {title, "medians, with failures"},
                      .x = {.title = priced ? "cost of the run, $" : "GPU-hours of the run",
                            .scale = plot::Scale::kLog10},
                      .y = {.title = "hours", .scale = plot::Scale::kLog10},
                      .groups = {"on demand", "spot"},
                      .points = {},
                      .front_name = "Pareto front"};
  // Those that a page leaves out are in the search's JSON.
  const Json& all = list_in(search, "candidates");
  bool is_marked = false;
  for (const Json& one : all.empty() ? list_in(search, "front") : all) {
    if (!keeps_limits(one)) continue;
    const bool is_recommended = !is_marked && one == recommended;
    is_marked = is_marked || is_recommended;
    chart.points.push_back({.x = cost_of(one),
                            .y = number_in(one, "hours_p50"),
                            .label = fmt::format("{}{}{}", is_recommended ? "recommended: " : "",
                                                 priced ? text_in(one, "provider") + ", " : "",
                                                 counted(number_in(one, "devices"), "GPU")),
                            .group = text_in(one, "policy") == "on demand" ? 0U : 1U,
                            .marked = is_recommended});
  }
  return drawn_chart("plan-offers", title, chart);
}

// So few columns that the layout stays in the window.
PageTable front_table(const Json& search, const Json& recommended) {
  const bool priced = is_priced(recommended);
  PageTable table{priced ? "Pareto front of time and cost" : "Pareto front of time and GPU-hours",
                  {"offer", "machines x GPUs", "GPUs", "hours", "P90",
                   priced ? "cost" : "GPU-hours", "layout"}};
  bool is_marked = false;
  for (const Json& one : list_in(search, "front")) {
    const bool is_recommended = !is_marked && one == recommended;
    is_marked = is_marked || is_recommended;
    Cell offer(offer_text(one) + (is_recommended ? ", recommended" : ""));
    if (is_recommended) offer.rating = Rating::kGood;
    const double devices = number_in(one, "devices");
    const double idle = number_in(one, "idle_devices");
    const double hours = number_in(one, "gpu_hours_p50");
    table.rows.push_back(
        {std::move(offer), Cell(short_machines(one)),
         Cell(figure(devices) + (idle > 0 ? fmt::format(" + {} idle", figure(idle)) : ""), devices),
         hours_cell(one, "hours_p50"), hours_cell(one, "hours_p90"),
         priced ? cost_cell(one, "cost_p50") : Cell(figure(hours), hours), Cell(layout_text(one))});
  }
  return table;
}

Facts recommended_facts(const Json& one) {
  const std::string idle = idle_text(one);
  Facts facts{{{"machines", counted(number_in(one, "devices"), "GPU"), machines_text(one)}}};
  if (is_priced(one)) {
    facts.facts.push_back(
        {"offer", text_in(one, "provider"),
         fmt::format("{}, {}, prices of {}{}", text_in(one, "offer"), text_in(one, "policy"),
                     text_in(one, "price_date"), idle.empty() ? "" : "; " + idle)});
  }
  facts.facts.push_back(
      {"time", figure(number_in(one, "hours_p50")) + " h",
       fmt::format("at most {} h for 90 % of runs", figure(number_in(one, "hours_p90")))});
  if (is_priced(one)) {
    facts.facts.push_back(
        {"cost", cost_text(object_in(one, "cost_p50")),
         fmt::format("at most {} for 90 % of runs; without storage and network traffic",
                     cost_text(object_in(one, "cost_p90")))});
  } else {
    facts.facts.push_back({"GPU-hours", figure(number_in(one, "gpu_hours_p50")), "no price known"});
  }
  const Facts others{
      {{"step", amount(number_in(one, "step_s"), "s"), text_in(one, "layout_text")},
       {"memory per rank", figure(number_in(one, "memory_gib")) + " GiB",
        fmt::format("recomputed: {}", text_in(one, "recompute"))},
       {"checkpoint every", amount(number_in(one, "checkpoint_interval_s"), "s"),
        fmt::format("{} interruptions expected", figure(number_in(one, "interruptions")))}}};
  facts.facts.insert(facts.facts.end(), others.facts.begin(), others.facts.end());
  return facts;
}

// Which machines the recommendation is the best of.
std::string searched_text(const Json& search) {
  if (flag_in(search, "everywhere")) {
    return "All cluster presets that have an offer were searched, beside the job's own cluster.";
  }
  return "Only the job's own cluster was searched; assay plan JOB --search --everywhere searches "
         "all "
         "cluster presets that have an offer.";
}

Section rejected_section(const Json& search) {
  PageTable table{"What was ruled out", {"why", "how many"}};
  const Json& rejected = list_in(search, "rejected");
  for (std::size_t i = 0; i < std::min(kReasonsShown, rejected.size()); ++i) {
    const double count = number_in(rejected[i], "count");
    table.rows.push_back({Cell(text_in(rejected[i], "reason")), Cell(figure(count), count)});
  }
  if (table.rows.empty()) return {};
  table.more = static_cast<std::int64_t>(rejected.size() - table.rows.size());
  return {"What was ruled out", {std::move(table)}};
}

Section assumed_section(const Json& search) {
  PageTable table{"Assumptions", {"what", "value", "source"}};
  for (const Json& one : list_in(search, "assumptions")) {
    table.rows.push_back(
        {Cell(text_in(one, "what")), Cell(text_in(one, "value")), Cell(text_in(one, "source"))});
  }
  if (table.rows.empty()) return {};
  return {"Assumptions", {std::move(table)}};
}

}  // namespace

std::string recommended_text(const Json& search) {
  const Json& one = object_in(search, "recommended");
  if (one.empty()) return {};
  const std::string hours = figure(number_in(one, "hours_p50"));
  if (!is_priced(one)) {
    return fmt::format("{}: {} h, {} GPU-hours; no price is known", machines_text(one), hours,
                       figure(number_in(one, "gpu_hours_p50")));
  }
  const std::string idle = idle_text(one);
  return fmt::format("{}, from {}, {}: {} h, {}{}", machines_text(one), text_in(one, "provider"),
                     text_in(one, "policy"), hours, cost_text(object_in(one, "cost_p50")),
                     idle.empty() ? "" : "; " + idle);
}

std::vector<Section> search_sections(const Json& search) {
  Section offers{"Machines and offers"};
  const Json& recommended = object_in(search, "recommended");
  const std::string why = text_in(search, "why");
  if (!recommended.empty()) {
    offers.blocks.emplace_back(
        Note{fmt::format("Recommended: {} ({}).", recommended_text(search), why)});
    offers.blocks.emplace_back(recommended_facts(recommended));
    offers.blocks.emplace_back(pareto_chart(search, recommended));
    offers.blocks.emplace_back(front_table(search, recommended));
  } else {
    offers.blocks.emplace_back(Note{fmt::format("Nothing is recommended: {}.", why)});
  }
  // Searches of earlier versions do not say.
  if (search.contains("everywhere")) offers.blocks.emplace_back(Note{searched_text(search)});
  const double considered = number_in(search, "considered");
  offers.blocks.emplace_back(Note{fmt::format(
      "{} configurations were tried, {} machine offers were priced.", figure(considered),
      base::grouped(static_cast<std::int64_t>(list_in(search, "candidates").size())))});
  return {std::move(offers), rejected_section(search), assumed_section(search)};
}

}  // namespace assay::report
