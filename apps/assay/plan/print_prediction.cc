// What the model says about a job's step, as tables: time, memory, scaling.
#include <fmt/format.h>

#include "assay/plan/print.h"
#include "base/text.h"
#include "plan/search/layouts.h"

namespace assay::cli {
namespace {

using base::Align;
using base::grouped;
using base::Table;

constexpr base::Bytes kGib(std::int64_t{1} << 30);

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
  Table table({"a step goes to", "ms", "%"});
  for (const StepPart& part : parts_of(step)) {
    if (part.time < 1e-6 * step.total) continue;
    table.row({part.name, milliseconds(part.time), percent(part.time / step.total)});
  }
  table.rule().row({"step", milliseconds(step.total), "100.0"});
  session.print("\n");
  session.print(table);
}

void print_memory(const Session& session, const Plan& plan) {
  const plan::Prediction& made = *plan.prediction;
  const plan::MemoryNeed& need = made.memory;
  Table table({"a rank's memory", "GiB"});
  const auto row = [&](const char* what, base::Bytes bytes) {
    if (bytes > base::Bytes(0)) table.row({what, gib(bytes)});
  };
  row("parameters", need.parameters);
  row("gradients", need.gradients);
  row("optimizer", need.optimizer);
  row("activations", need.activations);
  row("gathered, and communication", need.gathered);
  row("workspace", need.workspace);
  table.rule().row({"total", gib(need.total())});
  session.print("\n");
  session.print(table);
  const plan::Interval interval = plan::memory_interval();
  std::string line = fmt::format(
      "8 of 10 measured runs held {:.2f} to {:.2f} times what is predicted ({} rows)\n"
      "recomputed: {}; the card has {} GiB: {}",
      interval.low, interval.high, interval.rows, plan::to_text(made.work.recompute),
      gib(made.work.card.memory), made.fits ? "it fits" : "it does NOT fit");
  const std::int64_t stages = plan.job().layout.pp;
  if (stages > 1) {
    line += fmt::format("; stage {} of {} is the largest", need.stage + 1, stages);
  }
  session.print(line + "\n");
}

void print_scaling(const Session& session, const Plan& plan) {
  if (plan.scaling.size() < 2) return;
  Table table({"devices", "layout", "step s", "tokens/s", "per device", "of ideal %", "MFU %",
               "memory GiB"});
  table.align(0, Align::kRight);
  for (const plan::ScalePoint& point : plan.scaling) {
    const plan::Prediction& made = point.prediction;
    table.row({(point.is_job ? "> " : "") + grouped(point.devices), plan::to_text(point.layout),
               seconds(made.step.total), grouped(static_cast<std::int64_t>(made.tokens_per_second)),
               grouped(static_cast<std::int64_t>(made.tokens_per_second /
                                                 static_cast<double>(point.devices))),
               point.of_ideal > 0 ? percent(point.of_ideal) : "-", percent(made.mfu),
               gib(made.memory.total()) + (made.fits ? "" : " too much")});
  }
  session.print("\nscaling, each rank with the same work (>: this job)\n");
  session.print(table);
}

}  // namespace

std::vector<StepPart> parts_of(const plan::StepTime& step) {
  return {{"products", "matrix products", step.products},
          {"attention", "attention", step.attention},
          {"passes", "norms, activations, casts", step.passes},
          {"head", "head and loss", step.head},
          {"routing", "routing of experts", step.routing},
          {"tensor", "tensor parallelism", step.tensor},
          {"context", "context parallelism", step.context},
          {"experts", "all-to-all of experts", step.experts},
          {"shards", "shards, not hidden", step.shards},
          {"gradients", "gradients, not hidden", step.gradients},
          {"pipeline", "pipeline: bubbles, sends", step.pipeline},
          {"host", "waiting for the host", step.host},
          {"optimizer", "optimizer", step.optimizer},
          {"other", "fixed costs, jitter", step.other}};
}

void print_prediction(const Session& session, const Plan& plan) {
  const plan::Prediction& made = *plan.prediction;
  const base::Seconds step = made.step.total;
  session.print(
      fmt::format("\npredicted step: {} s; 8 of 10 comparable ones took {} to {} s ({} rows, {})\n",
                  seconds(step), seconds(step * plan.interval.low),
                  seconds(step * plan.interval.high), grouped(plan.interval.rows),
                  plan::to_text(made.work.software.kind(made.work.shape.is_moe()))));
  session.print(fmt::format(
      "run by {}: {} tokens/s, {} per device\n", plan::to_text(made.work.software.framework),
      grouped(static_cast<std::int64_t>(made.tokens_per_second)),
      grouped(static_cast<std::int64_t>(made.tokens_per_second / made.work.degrees.ranks))));
  session.print(fmt::format(
      "MFU {} % without the embedding's parameters, {} % with them; clock {} % of full\n",
      percent(made.mfu), percent(made.mfu_with_embedding), percent(made.step.clock)));
  for (const std::string& line : plan.extrapolations) {
    session.print("beyond what was measured: " + line + "\n");
  }
  print_breakdown(session, made.step);
  print_memory(session, plan);
  print_scaling(session, plan);
}

}  // namespace assay::cli
