// The text of `assay plan`. Tables fit 100 columns.
#include "assay/plan/print.h"

#include <fmt/format.h>

#include "assay/presets/print.h"
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

void print_groups(const Session& session, const plan::Communication& communication) {
  Table table({"group", "kind", "tensors", "each", "elements", "type", "RS MB", "AG MB", "AR MB",
               "2-byte"});
  for (std::size_t column = 2; column < 10; ++column) {
    if (column != 5) table.align(column, Align::kRight);
  }
  std::int64_t elements = 0;
  for (const plan::GroupTraffic& group : communication.groups) {
    const plan::Volume bytes = group.bytes();
    std::string tensors = grouped(group.tensors);
    if (group.padded != group.tensors) tensors += " → " + grouped(group.padded);
    table.row({group.group, std::string(to_text(group.optimizer)), tensors,
               grouped(group.elements_each), grouped(group.elements),
               std::string(to_text(group.type)), megabytes(bytes.reduce_scatter),
               megabytes(bytes.all_gather), megabytes(bytes.all_reduce),
               megabytes(group.two_byte_bytes().total())});
    elements += group.elements;
  }
  const plan::Volume total = communication.bytes();
  table.rule().row({"total", "", "", "", grouped(elements), "", megabytes(total.reduce_scatter),
                    megabytes(total.all_gather), megabytes(total.all_reduce),
                    megabytes(communication.two_byte_bytes().total())});
  session.print(table);
}

void print_calls(const Session& session, const JobPlan& plan) {
  Table table(
      {"collective", "type", "about", "calls", "total MB", "mean MB", "least MB", "most MB"});
  for (std::size_t column = 3; column < 8; ++column) table.align(column, Align::kRight);
  const auto add = [&](std::string_view about, const plan::CallSummary& calls) {
    table.row({std::string(to_text(calls.kind)), std::string(to_text(calls.type)),
               std::string(about), grouped(calls.calls), megabytes(calls.bytes),
               megabytes(calls.mean_bytes()), megabytes(calls.least_bytes),
               megabytes(calls.most_bytes)});
  };
  for (const plan::CallSummary& calls : plan.communication.calls()) add("parameters", calls);
  for (const plan::ActivationCalls& one : plan.activations) add(to_text(one.axis), one.calls);
  if (table.empty()) return;
  session.print("\n");
  session.print(table);
}

void print_communication(const Session& session, const JobPlan& plan) {
  const plan::Communication& made = plan.communication;
  const std::int64_t stages = plan.job().layout.pp;
  session.print(in_lines("\nexchanged per optimizer step: " + made.scheme));
  if (stages > 1) {
    session.print(fmt::format("by a rank of pipeline stage {} of {}\n", made.stage + 1, stages));
  }
  session.print(
      "MB of 10^6 bytes in the group's type; 2-byte: all three, were every element of 2 bytes\n");
  print_groups(session, made);
  print_calls(session, plan);
  if (made.exchanges.empty()) return;
  session.print(fmt::format("\n{} per step ({} at 2 bytes an element); each rank sends {}\n",
                            gigabytes(static_cast<double>(made.bytes().total())),
                            gigabytes(static_cast<double>(made.two_byte_bytes().total())),
                            gigabytes(made.sent_bytes())));
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
  const auto given = [&](const char* what, const plan::Input& input, const char* unit) {
    table.row({what, fmt::format("{:.6g}{}", input.value, unit), input.source});
  };
  const auto made = [&](const char* what, double value, const char* unit, const char* remark = "") {
    table.row({what, figure(value) + unit, remark});
  };
  given("power per device", energy.watts_per_device, " W");
  table.row({"devices", grouped(energy.devices), ""});
  made("time", energy.time.count() / 3600, " h");
  made("energy of the devices", energy.devices_kwh(), " kWh", "without the rest of their nodes");
  given("PUE", energy.pue, "");
  made("energy of the building", energy.building_kwh(), " kWh");
  given("grid", energy.grid_g_per_kwh, " g/kWh");
  made("CO2", energy.carbon_kg(), " kg");
  session.print("\n");
  session.print(table);
}

void print_run(const Session& session, const JobPlan& plan) {
  const double hours = plan.run->total().count() / 3600;
  session.print(fmt::format("\ntime and cost: {} steps of {:.6g} s, as {}: {} hours\n",
                            grouped(plan.run->steps), plan.run->step.count(),
                            plan.step_given ? "given" : "predicted", figure(hours)));
  if (!plan.costs.empty()) print_costs(session, plan.costs);
  if (plan.energy) print_energy(session, *plan.energy);
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
  print_communication(session, plan);
  if (plan.plan.step) print_prediction(session, plan);
  if (plan.run) print_run(session, plan);
  for (const std::string& line : plan.plan.unknown) session.print("\nnot known: " + line + "\n");
}

}  // namespace assay::cli
