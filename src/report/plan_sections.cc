#include "report/plan_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/units.h"
#include "plot/lines.h"
#include "plot/stacked_bars.h"
#include "report/numbers.h"
#include "report/plan_values.h"

namespace assay::report {
namespace {

using base::Json;

// What is thinner cannot be seen.
constexpr double kThinnest = 1e-3;

Cell number_cell(double value, std::string text) {
  return std::isfinite(value) ? Cell(std::move(text), value) : Cell("—");
}
Cell number_cell(double value) {
  return number_cell(value, figure(value));
}

struct NamedSeconds {
  std::string name;
  double seconds = 0;
};

std::vector<NamedSeconds> parts_of(const Json& step) {
  std::vector<NamedSeconds> parts;
  for (const Json& part : list_in(step, "parts")) {
    const double seconds = number_in(part, "s");
    if (seconds > 0) parts.push_back({text_in(part, "name"), seconds});
  }
  return parts;
}

double total_seconds(const std::vector<NamedSeconds>& parts) {
  double sum = 0;
  for (const NamedSeconds& part : parts) sum += part.seconds;
  return sum;
}

std::string devices_text(const Json& point) {
  const double devices = number_in(point, "devices");
  return fmt::format("{} device{}{}", figure(devices), devices == 1 ? "" : "s",
                     flag_in(point, "is_job") ? ", this job" : "");
}

// A bar for each number of devices that fits, so that what grows with it is seen.
plot::StackedBars breakdown_chart(const Json& plan) {
  std::vector<std::pair<std::string, std::vector<NamedSeconds>>> steps;
  for (const Json& point : list_in(plan, "scaling")) {
    if (!flag_in(point, "fits")) continue;
    if (auto parts = parts_of(point); !parts.empty())
      steps.emplace_back(devices_text(point), parts);
  }
  if (steps.empty()) steps.emplace_back("this job", parts_of(plan));
  plot::StackedBars chart{
      .heading = {"Where the time of a step goes", "predicted, by number of devices"},
      .value = {.title = "milliseconds per step", .format = figure}};
  for (const NamedSeconds& part : parts_of(plan)) chart.parts.push_back(part.name);
  const auto is_new = [&](const std::string& name) {
    return std::find(chart.parts.begin(), chart.parts.end(), name) == chart.parts.end();
  };
  for (const auto& [label, parts] : steps) {
    for (const NamedSeconds& part : parts) {
      if (is_new(part.name) && part.seconds > kThinnest * total_seconds(parts))
        chart.parts.push_back(part.name);
    }
  }
  for (const auto& [label, parts] : steps) {
    plot::Bar bar{label, std::vector<double>(chart.parts.size())};
    for (const NamedSeconds& part : parts) {
      const auto at = std::find(chart.parts.begin(), chart.parts.end(), part.name);
      if (at == chart.parts.end()) continue;
      bar.values[static_cast<std::size_t>(at - chart.parts.begin())] = 1e3 * part.seconds;
    }
    chart.bars.push_back(std::move(bar));
  }
  return chart;
}

constexpr std::array<std::pair<const char*, const char*>, 6> kMemoryParts = {
    {{"parameters", "parameters"},
     {"gradients", "gradients"},
     {"optimizer", "optimizer"},
     {"activations", "activations"},
     {"gathered", "gathered"},
     {"workspace", "workspace"}}};

}  // namespace

std::string cost_text(const Json& range) {
  const double low = number_in(range, "low");
  const double high = number_in(range, "high");
  if (!std::isfinite(low) || !std::isfinite(high)) return {};
  return low == high ? dollars_text(low)
                     : fmt::format("{} – {}", dollars_text(low), dollars_text(high));
}

Section breakdown_section(const Json& plan) {
  const std::vector<NamedSeconds> parts = parts_of(plan);
  if (parts.empty()) return {};
  PageTable table{"Parts of a step of this job", {"part", "ms", "%"}};
  const double sum = total_seconds(parts);
  for (const NamedSeconds& part : parts) {
    const double share = 100 * part.seconds / sum;
    table.rows.push_back({Cell(part.name), number_cell(1e3 * part.seconds),
                          number_cell(share, fmt::format("{:.1f}", share))});
  }
  return {"Where the time of a step goes",
          {drawn_chart("plan-breakdown", "Where the time of a step goes", breakdown_chart(plan)),
           std::move(table)}};
}

Section memory_section(const Json& plan) {
  const Json& bytes = object_in(plan, "memory_bytes");
  const double total = number_in(bytes, "total");
  if (!(total > 0)) return {};
  const double device = number_in(bytes, "device");
  const bool is_small = std::max(total, device) < 1024.0 * 1024 * 1024;
  const double unit = is_small ? 1024.0 * 1024 : 1024.0 * 1024 * 1024;
  const std::string unit_name = is_small ? "MiB" : "GiB";
  plot::StackedBars chart{.heading = {"Memory per rank", "of the rank that needs most"},
                          .value = {.title = unit_name, .format = figure},
                          .bars = {{"this job", {}}}};
  PageTable table{"Memory per rank", {"for", unit_name, "%"}};
  for (const auto& [key, name] : kMemoryParts) {
    const double part = number_in(bytes, key);
    if (!(part > 0)) continue;
    chart.parts.emplace_back(name);
    chart.bars[0].values.push_back(part / unit);
    table.rows.push_back(
        {Cell(name), number_cell(part / unit),
         number_cell(100 * part / total, fmt::format("{:.1f}", 100 * part / total))});
  }
  table.rows.push_back({Cell("total"), number_cell(total / unit), Cell("100.0", 100)});
  if (device > 0) {
    plot::Bar card{"the device", std::vector<double>(chart.parts.size())};
    chart.parts.emplace_back("all of the device");
    chart.bars[0].values.push_back(0);
    card.values.push_back(device / unit);
    chart.bars.push_back(std::move(card));
  }
  std::string note = flag_in(bytes, "counted") ? "Counted from the buffers of the rank's program; "
                                                 "the workspace of libraries is an estimate."
                                               : "Predicted by the memory model.";
  if (const std::string policy = text_in(plan, "recompute"); !policy.empty()) {
    note += fmt::format(" Recomputed: {}.", policy);
  }
  if (const std::string room = text_in(plan, "room_for_experts"); !room.empty()) {
    note += fmt::format(" Experts: {}.", room);
  }
  return {
      "Memory per rank",
      {drawn_chart("plan-memory", "Memory per rank", chart, std::move(note)), std::move(table)}};
}

Section scaling_section(const Json& plan) {
  const Json& points = list_in(plan, "scaling");
  if (points.size() < 2) return {};
  plot::LineSeries series{.name = "predicted", .points = {}};
  PageTable table{
      "Weak scaling",
      {"devices", "layout", "step", "tokens/s", "per device", "of ideal", "MFU", "GiB"}};
  double per_device = 0;
  for (const Json& point : points) {
    const double devices = number_in(point, "devices");
    const double rate = number_in(point, "tokens_per_s");
    const double step = number_in(point, "step_s");
    const bool fits = flag_in(point, "fits");
    // Where the job's policy does not fit, another one does: not the same work.
    const bool is_other = point.is_object() && point.value("own_recompute", Json()) == false;
    std::string layout = text_in(point, "layout");
    if (is_other) layout += ", " + text_in(point, "recompute");
    if (devices > 0 && !fits) {  // no run, no time
      const double gib = number_in(point, "memory_gib");
      table.rows.push_back({Cell(devices_text(point), devices), Cell(layout), Cell("—"), Cell("—"),
                            Cell("—"), Cell("—"), Cell("—"),
                            Cell(figure(gib) + " too much", std::nullopt, Rating::kBad)});
      continue;
    }
    if (!(devices > 0) || !(rate > 0) || !(step > 0)) continue;
    if (!is_other) {
      if (per_device == 0) per_device = rate / devices;
      const double low = rate * step / number_in(point, "step_high_s");
      const double high = rate * step / number_in(point, "step_low_s");
      plot::LinePoint at{.x = devices, .y = rate};
      if (low > 0 && high > 0 && std::isfinite(high)) at.interval = plot::Interval{low, high};
      series.points.push_back(at);
    }
    const double ideal = number_in(point, "of_ideal");
    const double gib = number_in(point, "memory_gib");
    table.rows.push_back(
        {Cell(devices_text(point), devices), Cell(layout), number_cell(step, amount(step, "s")),
         number_cell(rate), number_cell(rate / devices),
         ideal > 0 ? Cell(amount(ideal, "fraction"), ideal) : Cell("—"),
         number_cell(number_in(object_in(point, "mfu"), "current"),
                     amount(number_in(object_in(point, "mfu"), "current"), "fraction")),
         number_cell(gib)});
  }
  if (table.rows.empty()) return {};
  Section section{"More and fewer devices"};
  if (series.points.size() > 1) {
    plot::Lines chart{.heading = {"Tokens per second", "weak scaling"},
                      .x = {.title = "devices", .scale = plot::Scale::kLog2},
                      .y = {.title = "tokens per second", .scale = plot::Scale::kLog10},
                      .series = {std::move(series)},
                      .reference = plot::Reference{.name = "ideal", .per_x = per_device},
                      .interval_name = "80 % interval"};
    section.blocks.emplace_back(drawn_chart("plan-scaling", "Tokens per second", chart));
  }
  section.blocks.emplace_back(std::move(table));
  return section;
}

Section exchange_section(const Json& plan) {
  PageTable table{"Calls of one rank in a step",
                  {"collective", "type", "about", "among", "calls", "GB total", "MB each"}};
  for (const Json& call : list_in(plan, "collectives")) {
    const double bytes = number_in(call, "bytes");
    const double ranks = number_in(call, "ranks");
    const std::string among = text_in(call, "among");
    table.rows.push_back(
        {Cell(text_in(call, "op")), Cell(text_in(call, "dtype")), Cell(text_in(call, "about")),
         Cell(ranks > 0 ? fmt::format("{} {}", figure(ranks), among) : among),
         number_cell(number_in(call, "calls")), number_cell(bytes / 1e9, figure(bytes / 1e9)),
         number_cell(number_in(call, "mean_bytes") / 1e6)});
  }
  if (table.rows.empty()) return {};
  Section section{"Communication between ranks"};
  const Json& comm = object_in(plan, "comm");
  if (const std::string scheme = text_in(comm, "scheme"); !scheme.empty()) {
    section.blocks.emplace_back(Note{scheme + "."});
  }
  section.blocks.emplace_back(std::move(table));
  return section;
}

Section offers_section(const Json& plan) {
  PageTable table{"This job, by offer",
                  {"provider", "offer", "market", "rented", "per hour", "cost", "as of"}};
  for (const Json& offer : list_in(plan, "cost")) {
    const Json& cost = object_in(offer, "cost");
    const Json& hour = object_in(offer, "per_hour");
    const double idle = number_in(offer, "idle_devices");
    std::string rented = fmt::format("{} x {}", figure(number_in(offer, "rented")),
                                     figure(number_in(offer, "devices")));
    if (idle > 0) rented += fmt::format(" ({} idle)", figure(idle));
    table.rows.push_back({Cell(text_in(offer, "provider")), Cell(text_in(offer, "offer")),
                          Cell(text_in(offer, "market")), Cell(std::move(rented)),
                          number_cell(number_in(hour, "high"), cost_text(hour)),
                          number_cell(number_in(cost, "high"), cost_text(cost)),
                          Cell(text_in(offer, "date"))});
  }
  if (table.rows.empty()) return {};
  return {"Offers for this job", {std::move(table)}};
}

}  // namespace assay::report
