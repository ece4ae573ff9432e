#include "report/search_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "plot/scatter.h"
#include "report/numbers.h"
#include "report/plan_sections.h"
#include "report/plan_values.h"

namespace assay::report {
namespace {

using base::Json;

constexpr std::size_t kReasonsShown = 12;

std::string machines_text(const Json& one) {
  const double nodes = number_in(one, "nodes");
  const std::string machines = text_in(one, "machines");
  return nodes == 1 ? machines : fmt::format("{} x {}", figure(nodes), machines);
}

std::string layout_text(const Json& one) {
  return fmt::format("{}; {} x {}, {}", text_in(one, "layout_text"),
                     figure(number_in(one, "micro_batch")), figure(number_in(one, "accumulate")),
                     text_in(one, "recompute"));
}

double cost_of(const Json& one) {
  return number_in(object_in(one, "cost_p50"), "high");
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

Chart pareto_chart(const Json& search, const Json& recommended) {
  plot::Scatter chart{.heading = {"Time versus cost", "medians, with failures"},
                      .x = {.title = "cost of the run, $", .scale = plot::Scale::kLog10},
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
    chart.points.push_back(
        {.x = cost_of(one),
         .y = number_in(one, "hours_p50"),
         .label = fmt::format("{}{}, {} devices", is_recommended ? "recommended: " : "",
                              text_in(one, "provider"), figure(number_in(one, "devices"))),
         .group = text_in(one, "policy") == "on demand" ? 0U : 1U,
         .marked = is_recommended});
  }
  return drawn_chart("plan-offers", "Time versus cost", chart);
}

Table front_table(const Json& search, const Json& recommended) {
  Table table{"Pareto front of time and cost",
              {"provider", "machines", "devices", "market", "hours", "P90", "cost", "layout"}};
  bool is_marked = false;
  for (const Json& one : list_in(search, "front")) {
    const bool is_recommended = !is_marked && one == recommended;
    is_marked = is_marked || is_recommended;
    Cell provider(is_recommended ? text_in(one, "provider") + ", recommended"
                                 : text_in(one, "provider"));
    if (is_recommended) provider.rating = Rating::kGood;
    const double devices = number_in(one, "devices");
    table.rows.push_back({std::move(provider), Cell(machines_text(one)),
                          Cell(figure(devices), devices), Cell(text_in(one, "policy")),
                          hours_cell(one, "hours_p50"), hours_cell(one, "hours_p90"),
                          cost_cell(one, "cost_p50"), Cell(layout_text(one))});
  }
  return table;
}

Facts recommended_facts(const Json& one) {
  const Json& offer = one;
  return {{{"machines", machines_text(one),
            fmt::format("{} devices", figure(number_in(one, "devices")))},
           {"offer", text_in(offer, "provider"),
            fmt::format("{}, {}, prices of {}", text_in(offer, "offer"), text_in(offer, "policy"),
                        text_in(offer, "price_date"))},
           {"time", figure(number_in(one, "hours_p50")) + " h",
            fmt::format("{} h for 90 % of runs", figure(number_in(one, "hours_p90")))},
           {"cost", cost_text(object_in(one, "cost_p50")),
            fmt::format("{} for 90 % of runs", cost_text(object_in(one, "cost_p90")))},
           {"step", amount(number_in(one, "step_s"), "s"), text_in(one, "layout_text")},
           {"memory per rank", figure(number_in(one, "memory_gib")) + " GiB",
            fmt::format("recomputed: {}", text_in(one, "recompute"))},
           {"checkpoint every", amount(number_in(one, "checkpoint_interval_s"), "s"),
            fmt::format("{} interruptions expected", figure(number_in(one, "interruptions")))}}};
}

Section rejected_section(const Json& search) {
  Table table{"What was ruled out", {"why", "how many"}};
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
  Table table{"Assumptions", {"what", "value", "source"}};
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
  return fmt::format("{} from {}, {}: {} h, {}", machines_text(one), text_in(one, "provider"),
                     text_in(one, "policy"), figure(number_in(one, "hours_p50")),
                     cost_text(object_in(one, "cost_p50")));
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
  const double considered = number_in(search, "considered");
  offers.blocks.emplace_back(Note{fmt::format(
      "{} configurations were tried, {} machine offers were priced.", figure(considered),
      base::grouped(static_cast<std::int64_t>(list_in(search, "candidates").size())))});
  return {std::move(offers), rejected_section(search), assumed_section(search)};
}

}  // namespace assay::report
