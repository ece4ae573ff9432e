// A predicted step as tables: time, memory, scaling.
#include <fmt/format.h>

#include <algorithm>

#include "assay/plan/print.h"
#include "base/figure.h"
#include "base/text.h"
#include "plan/model/software.h"
#include "plan/search/layouts.h"
#include "spec/enum_names.h"

namespace assay::cli {
namespace {

using base::Align;
using base::grouped;
using base::Table;

constexpr base::Bytes kGib(std::int64_t{1} << 30);

constexpr base::Bytes kMib(std::int64_t{1} << 20);

std::string gib(base::Bytes bytes) {
  return fmt::format("{:.2f}", bytes / kGib);
}

std::string milliseconds(base::Seconds time) {
  return fmt::format("{:.2f}", 1e3 * time.count());
}

std::string percent(double share) {
  return fmt::format("{:.1f}", 100 * share);
}

std::string seconds(base::Seconds time) {
  return fmt::format("{:.4g}", time.count());
}

void print_breakdown(const Session& session, const plan::StepTime& step) {
  Table table({"part of the step", "ms", "%"});
  for (const plan::StepPart& part : plan::step_parts()) {
    const base::Seconds time = step.*part.time;
    if (time < 1e-6 * step.total) continue;
    table.row({std::string(part.name), milliseconds(time), percent(time / step.total)});
  }
  table.rule().row({"step", milliseconds(step.total), "100.0"});
  session.print("\n");
  session.print(table);
}

// Of predicted memory.
std::string known_memory_errors(const plan::MemoryIntervals& intervals) {
  const plan::ErrorInterval& needed = intervals.needed;
  const plan::ErrorInterval& shown = intervals.shown;
  std::string text = fmt::format(
      "80 % intervals: {:.2f} to {:.2f} times the predicted memory is needed ({} of {});\n  {:.2f} "
      "to {:.2f} times is what nvidia-smi shows, with the allocator's cache ({} of {})\n",
      needed.low, needed.high, base::counted(needed.rows, "run"),
      base::counted(needed.projects, "project"), shown.low, shown.high,
      base::counted(shown.rows, "run"), base::counted(shown.projects, "project"));
  if (intervals.needed_of_others && intervals.shown_of_others) {
    text += "  both are of the shipped constants\n";
  } else if (intervals.needed_of_others || intervals.shown_of_others) {
    text += fmt::format("  the {} is of the shipped constants\n",
                        intervals.needed_of_others ? "first" : "second");
  }
  return text;
}

void print_memory(const Session& session, const JobPlan& plan) {
  const plan::PlannedMemory& memory = *plan.plan.memory;
  const plan::MemoryNeed& need = memory.need;
  const bool small = need.total() < kGib;
  Table table({"memory per rank", small ? "MiB" : "GiB"});
  const auto text = [&](base::Bytes bytes) {
    return small ? fmt::format("{:.2f}", bytes / kMib) : gib(bytes);
  };
  const auto row = [&](const char* what, base::Bytes bytes) {
    if (bytes > base::Bytes(0)) table.row({what, text(bytes)});
  };
  row("parameters", need.parameters);
  row("gradients", need.gradients);
  row("optimizer", need.optimizer);
  row("activations", need.activations);
  row("gathered and communication", need.gathered);
  row("workspace", need.workspace);
  table.rule().row({"total", text(need.total())});
  session.print("\n");
  session.print(table);
  const bool on_cpu = plan.job().cluster.device.kind == spec::DeviceKind::kCpu;
  std::string line =
      memory.counted ? fmt::format("counted from the buffers of rank {}'s program{}\n", memory.rank,
                                   on_cpu ? "" : "; the workspace of libraries is an estimate")
                     : known_memory_errors(plan.memory_intervals);
  line += fmt::format("recomputed: {}", plan.plan.recompute);
  if (memory.device > base::Bytes(0)) {
    line += fmt::format(
        "; {} {} GiB: {}", on_cpu ? "limit per rank" : "device memory", gib(memory.device),
        plan.fit() == Fit::kNo ? "it does NOT fit" : fmt::format("it {}", to_text(plan.fit())));
  }
  const std::int64_t stages = plan.job().layout.pp;
  if (stages > 1) {
    line += fmt::format("; pipeline stage {} of {} needs most", need.stage + 1, stages);
  }
  session.print(line + "\n");
  if (const std::string why = why_recomputed(plan); !why.empty()) session.print(why + "\n");
  if (const std::string room = room_for_experts(plan); !room.empty()) session.print(room + "\n");
}

void print_scaling(const Session& session, const JobPlan& plan) {
  if (plan.scaling.size() < 2) return;
  Table table({"devices", "layout", "step s", "tokens/s", "per device", "of ideal %", "MFU %",
               "memory GiB"});
  table.align(0, Align::kRight);
  for (const plan::ScalePoint& point : plan.scaling) {
    const plan::Prediction& made = point.prediction;
    const std::string devices = (point.is_job ? "> " : "") + grouped(point.devices);
    std::string layout = plan::to_text(point.layout);
    if (!point.own_recompute) layout += fmt::format(", {}", plan::to_text(made.work.recompute));
    if (!made.fits) {  // no run, no time
      table.row({devices, layout, "-", "-", "-", "-", "-", gib(made.memory.total()) + " too much"});
      continue;
    }
    table.row({devices, layout, seconds(made.step.total), base::figure(made.tokens_per_second),
               base::figure(made.tokens_per_second / static_cast<double>(point.devices)),
               point.of_ideal > 0 ? percent(point.of_ideal) : "-", percent(made.mfu),
               gib(made.memory.total())});
  }
  session.print("\nweak scaling (>: this job)\n");
  const bool other = std::any_of(plan.scaling.begin(), plan.scaling.end(),
                                 [](const auto& point) { return !point.own_recompute; });
  if (other) session.print("recomputation after a layout: needed there to fit\n");
  session.print(table);
}

// What the measured projects behind an interval have in common, as a clause; plan/model/software.h
// names the classes.
std::string_view shared_by(std::string_view comparable) {
  if (comparable == plan::to_text(plan::SoftwareClass::kFused))
    return "whose software fuses operators";
  if (comparable == plan::to_text(plan::SoftwareClass::kTorchEager))
    return "that run PyTorch without compiling";
  if (comparable == plan::to_text(plan::SoftwareClass::kMegatronEager))
    return "that run Megatron of 2020 to 2022";
  return "with mixtures of experts";
}

void print_step(const Session& session, const JobPlan& plan) {
  const plan::PlannedStep& step = *plan.plan.step;
  session.print(
      fmt::format("\npredicted step: {} s; 80 % interval: {} to {} s\n  (from {} of {} {})\n",
                  seconds(step.time.total), seconds(step.low()), seconds(step.high()),
                  base::counted(step.interval.rows, "measured step"),
                  base::counted(step.interval.projects, "project"), shared_by(step.comparable)));
  session.print(fmt::format(
      "run by {}{}: {} tokens/s, {} per device\n",
      plan.plan.refused.empty() || plan.plan.framework != "assay" ? "" : "software like ",
      plan.plan.framework, base::figure(step.tokens_per_s),
      base::figure(step.tokens_per_s / static_cast<double>(plan.plan.ranks))));
  if (!plan.framework_why.empty()) session.print(plan.framework_why + "\n");
  if (const std::string why = why_scheduled(plan); !why.empty()) session.print(why + "\n");
  session.print(fmt::format(
      "MFU {} % without the embedding's parameters, {} % with them; clock {} % of full\n",
      percent(step.mfu), percent(step.mfu_with_embedding), percent(step.time.clock)));
  session.print(plan.known_errors + "\n");
  if (plan.plan.experts) {
    const plan::PlannedExperts& experts = *plan.plan.experts;
    session.print(
        experts.is_contained()
            ? fmt::format(
                  "experts over {} ranks: their imbalance is contained in the measured runs that "
                  "the\n  constants come from; --imbalance adds to it\n",
                  experts.ranks)
            : fmt::format("experts over {} ranks: the most loaded expert has {:.4g} times an even "
                          "share{};\n"
                          "  the slowest rank computes and receives {:.3g} times as many rows, and "
                          "all wait "
                          "for it\n",
                          experts.ranks, experts.imbalance,
                          experts.is_assumed ? " (assumed; --imbalance)" : " (--imbalance)",
                          experts.fullest_rank));
  }
  for (const std::string& line : step.extrapolations) {
    session.print("outside the measured range: " + line + "\n");
  }
  print_breakdown(session, step.time);
}

}  // namespace

void print_prediction(const Session& session, const JobPlan& plan) {
  if (plan.plan.step) {
    print_step(session, plan);
  } else if (!plan.framework_why.empty()) {
    session.print("\n" + plan.framework_why + "\n");
  }
  if (plan.plan.memory) print_memory(session, plan);
  print_scaling(session, plan);
}

}  // namespace assay::cli
