// The text of `assay plan`. Tables fit 100 columns.
#include "assay/plan/print.h"

#include <fmt/format.h>

#include "assay/shared/spec_summary.h"
#include "base/figure.h"
#include "base/text.h"
#include "spec/enum_names.h"

namespace assay::cli {
namespace {

using base::Align;
using base::grouped;
using base::Table;

// A line for each part of a sentence.
std::string in_lines(std::string text) {
  for (std::size_t at = 0; (at = text.find("; ", at)) != std::string::npos;) {
    text.replace(at, 2, "\n");
  }
  return text + "\n";
}

// Millions of bytes, as volumes are published.
std::string megabytes(double bytes) {
  if (bytes == 0) return "0";
  return bytes < 5e4 ? "< 0.1" : fmt::format("{:.1f}", bytes / 1e6);
}
std::string megabytes(std::int64_t bytes) {
  return megabytes(static_cast<double>(bytes));
}

std::string gigabytes(double bytes) {
  return fmt::format("{:.2f} GB", bytes / 1e9);
}

// Two decimals, or three digits where that is more precise or shorter.
std::string figure(double value) {
  const bool plain = value == 0 || (value >= 0.995 && value < 1e7);
  return plain ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
}

// In the unit that leaves one to three digits before the point.
std::string energy_text(double kwh) {
  if (kwh >= 1e6) return figure(kwh / 1e6) + " GWh";
  return kwh >= 1e3 ? figure(kwh / 1e3) + " MWh" : figure(kwh) + " kWh";
}
std::string mass_text(double kg) {
  return kg >= 1e3 ? figure(kg / 1e3) + " t" : figure(kg) + " kg";
}

// Of the kinds of exchange those that there are; of a closed form the three that it knows.
struct VolumeColumn {
  const char* name;
  std::int64_t plan::Volume::*amount;
  bool counted;  // a program can have it
  bool closed;   // a closed form can
};
constexpr VolumeColumn kVolumeColumns[] = {{"RS MB", &plan::Volume::reduce_scatter, false, true},
                                           {"AG MB", &plan::Volume::all_gather, true, true},
                                           {"A2A MB", &plan::Volume::all_to_all, true, false},
                                           {"sent MB", &plan::Volume::send, true, false},
                                           {"AR MB", &plan::Volume::all_reduce, false, true}};

// "bf16"; where gradients are reduced in another type, that first: "f32, bf16".
std::string types_text(const plan::GroupTraffic& group) {
  if (group.gradient_type == group.type) return std::string(to_text(group.type));
  return fmt::format("{}, {}", to_text(group.gradient_type), to_text(group.type));
}

void print_groups(const Session& session, const plan::PlannedExchange& exchange) {
  std::vector<std::string> titles = {exchange.counted ? "units" : "group",
                                     "kind",
                                     exchange.counted ? "count" : "tensors",
                                     "each",
                                     "elements",
                                     "type"};
  std::vector<VolumeColumn> columns;
  const plan::Volume total = exchange.bytes();
  for (const VolumeColumn& column : kVolumeColumns) {
    const bool shown = column.amount == &plan::Volume::send ? total.send > 0
                       : exchange.counted                   ? column.counted
                                                            : column.closed;
    if (shown) columns.push_back(column);
  }
  for (const VolumeColumn& column : columns) titles.emplace_back(column.name);
  titles.emplace_back("2-byte");
  Table table(titles);
  for (std::size_t column = 2; column < titles.size(); ++column) {
    if (column != 5) table.align(column, Align::kRight);
  }
  const auto add = [&](std::vector<std::string> row, const plan::Volume& bytes,
                       const plan::Volume& two_byte) {
    for (const VolumeColumn& column : columns) row.push_back(megabytes(bytes.*column.amount));
    row.push_back(megabytes(two_byte.total()));
    table.row(std::move(row));
  };
  std::int64_t elements = 0;
  for (const plan::GroupTraffic& group : exchange.groups) {
    std::string tensors = grouped(group.tensors);
    if (group.padded != group.tensors) tensors += " → " + grouped(group.padded);
    add({group.group, std::string(to_text(group.optimizer)), tensors, grouped(group.elements_each),
         grouped(group.elements), types_text(group)},
        group.bytes(), group.two_byte_bytes());
    elements += group.elements;
  }
  table.rule();
  add({"total", "", "", "", grouped(elements), ""}, total, exchange.two_byte_bytes());
  session.print(table);
}

void print_calls(const Session& session, const plan::PlannedExchange& exchange) {
  std::vector<std::string> titles = {"collective", "type",    "about",    "calls",
                                     "total MB",   "mean MB", "least MB", "most MB"};
  if (exchange.counted) titles.insert(titles.begin() + 3, "among");
  Table table(titles);
  for (std::size_t column = titles.size() - 5; column < titles.size(); ++column) {
    table.align(column, Align::kRight);
  }
  if (exchange.counted) table.align(3, Align::kLeft);
  for (const plan::PlannedCalls& one : exchange.calls) {
    const plan::CallSummary& calls = one.calls;
    std::vector<std::string> row = {std::string(to_text(calls.kind)),
                                    std::string(to_text(calls.type)),
                                    one.about,
                                    grouped(calls.calls),
                                    megabytes(calls.bytes),
                                    megabytes(calls.mean_bytes()),
                                    megabytes(calls.least_bytes),
                                    megabytes(calls.most_bytes)};
    if (exchange.counted) row.insert(row.begin() + 3, fmt::format("{} {}", one.ranks, one.among));
    table.row(std::move(row));
  }
  if (table.empty()) return;
  session.print("\n");
  session.print(table);
}

void print_communication(const Session& session, const JobPlan& plan) {
  const plan::PlannedExchange& made = *plan.plan.exchange;
  const std::int64_t stages = plan.job().layout.pp;
  session.print(in_lines("\ncommunication per optimizer step: " + made.scheme));
  if (made.counted) {
    session.print(
        fmt::format("counted from the program of rank {}{}\n", made.rank,
                    stages > 1 ? fmt::format(" (pipeline stage {} of {}, which communicates most)",
                                             made.stage + 1, stages)
                               : ""));
  } else if (stages > 1) {
    session.print(fmt::format("of a rank of pipeline stage {} of {}\n", made.stage + 1, stages));
  }
  if (!made.not_counted.empty()) {
    session.print("computed in closed form, because the trainer has no program for it" +
                  (plan.plan.refused.empty() ? ":\n  " + made.not_counted : "") + "\n");
  }
  session.print(
      "MB: 10^6 bytes in the group's data type; 2-byte: the total if every element took 2 bytes\n");
  print_groups(session, made);
  print_calls(session, made);
  if (made.bytes().total() == 0) return;
  session.print(fmt::format("\n{} per step ({} at 2 bytes an element); each rank sends {}\n",
                            gigabytes(static_cast<double>(made.bytes().total())),
                            gigabytes(static_cast<double>(made.two_byte_bytes().total())),
                            gigabytes(made.sent_bytes)));
}

void print_costs(const Session& session, const std::vector<plan::OfferCost>& costs) {
  Table table({"provider", "offer", "market", "rented", "per hour", "as of", "cost"});
  table.align(3, Align::kRight).align(4, Align::kRight).align(6, Align::kRight);
  for (const plan::OfferCost& cost : costs) {
    std::string rented = fmt::format("{} x {}", grouped(cost.rented), cost.offer.devices);
    if (cost.idle_devices > 0) rented += fmt::format(" ({} idle)", cost.idle_devices);
    table.row({cost.offer.provider, cost.offer.offer, std::string(to_text(cost.offer.market)),
               rented, cents(cost.per_hour), base::to_text(cost.offer.date), cents(cost.total)});
  }
  session.print(table);
}

void print_energy(const Session& session, const plan::Energy& energy) {
  Table table({"energy and carbon", "", ""});
  table.align(1, Align::kRight).align(2, Align::kLeft);
  const auto given = [&](const char* what, const plan::SourcedNumber& input, const char* unit) {
    table.row({what, fmt::format("{:.6g}{}", input.value, unit), input.source});
  };
  const auto made = [&](const char* what, std::string value, const char* remark = "") {
    table.row({what, std::move(value), remark});
  };
  given("power per device", energy.watts_per_device, " W");
  table.row({"devices", grouped(energy.devices), ""});
  made("time", figure(energy.time.count() / 3600) + " h");
  made("energy of the devices", energy_text(energy.devices_kwh()),
       "without the rest of their nodes");
  given("PUE", energy.pue, "");
  made("energy of the building", energy_text(energy.building_kwh()));
  given("grid", energy.grid_g_per_kwh, " g/kWh");
  made("CO2", mass_text(energy.carbon_kg()));
  session.print("\n");
  session.print(table);
}

void print_run(const Session& session, const JobPlan& plan) {
  const double hours = plan.run->total().count() / 3600;
  session.print(fmt::format(
      "\ntime and cost: {} steps of {:.6g} s, as {}: {} hours\n(rented: machines x GPUs of each)\n",
      grouped(plan.run->steps), plan.run->step.count(), plan.step_given ? "given" : "predicted",
      figure(hours)));
  if (!plan.costs.empty()) print_costs(session, plan.costs);
  if (plan.energy) print_energy(session, *plan.energy);
}

// What all offers of a market ask for: "on demand $37.35 - $220.92 (cheapest: Vast)". Empty without
// offers. Currencies are not compared: the first one's.
std::string costs_of_market(const std::vector<plan::OfferCost>& costs, spec::Market market) {
  const plan::OfferCost* least = nullptr;
  spec::PriceRange all;
  for (const plan::OfferCost& cost : costs) {
    if (cost.offer.market != market) continue;
    if (cost.total.low.currency() != costs.front().total.low.currency()) continue;
    if (least == nullptr) {
      least = &cost;  // they are in order
      all = cost.total;
    } else if (all.high.micros() < cost.total.high.micros()) {
      all.high = cost.total.high;
    }
  }
  if (least == nullptr) return {};
  std::string text = fmt::format("{} {} (cheapest: {}", to_text(market), cents(all),
                                 base::shortened(least->offer.provider, 20));
  if (least->idle_devices > 0) {
    text += fmt::format(", {} of {} GPUs idle", grouped(least->idle_devices),
                        grouped(least->rented * least->offer.devices));
  }
  return text + ")";
}

void add_costs(const JobPlan& plan, std::string& text) {
  const std::string on_demand = costs_of_market(plan.costs, spec::Market::kOnDemand);
  const std::string spot = costs_of_market(plan.costs, spec::Market::kSpot);
  if (on_demand.empty() && spot.empty()) return;
  for (const std::string& market : {on_demand, spot}) {
    if (!market.empty()) text += market + "\n";
  }
  text += "  without interruptions, restarts, storage and network traffic\n";
}

// Predicted memory is a range, and so is the answer.
std::string fit_line(const JobPlan& plan) {
  const plan::PlannedMemory& memory = *plan.plan.memory;
  const auto gib = [](base::Bytes bytes, double times = 1) {
    return fmt::format("{:.1f}", times * (bytes / base::Bytes(std::int64_t{1} << 30)));
  };
  const Fit fit = plan.fit();
  std::string text = fmt::format("it {}: {} of {} GiB per rank",
                                 fit == Fit::kNo ? "does NOT fit" : std::string(to_text(fit)),
                                 gib(memory.need.total()), gib(memory.device));
  if (!memory.counted && fit != Fit::kYes) {
    const plan::ErrorInterval& interval = plan.memory_intervals.needed;
    text += fmt::format(", interval {} to {}", gib(memory.need.total(), interval.low),
                        gib(memory.need.total(), interval.high));
  }
  return text + "\n";
}

std::string predicted_step(const plan::PlannedStep& step) {
  return fmt::format("{:.4g} s, 80 % interval {:.4g} to {:.4g}", step.time.total.count(),
                     step.low().count(), step.high().count());
}

// What follows, hours and money, is of this step.
std::string given_step(const JobPlan& plan) {
  const double step = plan.run->step.count();
  return fmt::format(
      "step {:.6g} s, as given; {} tokens/s{}\n", step,
      base::figure(static_cast<double>(plan.plan.tokens_per_step) / step),
      plan.plan.step ? fmt::format(" (predicted: {})", predicted_step(*plan.plan.step)) : "");
}

// What most people read: the step, how long it all takes, what it costs, whether it fits.
void print_answer(const Session& session, const JobPlan& plan) {
  std::string text;
  if (plan.step_given) {
    text += given_step(plan);
  } else if (plan.plan.step) {
    text += fmt::format("step {}; {} tokens/s\n", predicted_step(*plan.plan.step),
                        base::figure(plan.plan.step->tokens_per_s));
  }
  if (plan.run) {
    text += fmt::format("{} hours\n", figure(plan.run->total().count() / 3600));
    add_costs(plan, text);
  }
  if (plan.plan.memory && plan.plan.memory->device > base::Bytes(0)) text += fit_line(plan);
  if (!text.empty()) session.print("\n" + text);
}

}  // namespace

std::string cents(const base::Money& amount) {
  const std::int64_t rounded = (amount.micros() + 5'000) / 10'000 * 10'000;
  return base::to_text(base::Money(rounded, amount.currency(), amount.as_of()));
}

std::string cents(const spec::PriceRange& range) {
  if (range.low == range.high) return cents(range.low);
  return cents(range.low) + " - " + cents(range.high);
}

void print_plan(const Session& session, const JobPlan& plan) {
  session.print(in_lines(base::printable(plan.loaded.name + ": " + summary(plan.loaded))));
  print_answer(session, plan);
  if (!plan.plan.refused.empty()) {
    session.print("\nassay train cannot run this job:\n  " + plan.plan.refused +
                  fmt::format("\nthe plan below is for software that can run it{}\n",
                              plan.plan.framework == "assay" ? " and is otherwise like assay train"
                                                             : ": " + plan.plan.framework));
  }
  print_prediction(session, plan);
  if (plan.plan.exchange) print_communication(session, plan);
  if (plan.run) print_run(session, plan);
  for (const std::string& line : plan.plan.unknown) session.print("\nnot known: " + line + "\n");
}

}  // namespace assay::cli
