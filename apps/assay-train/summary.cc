#include "assay-train/summary.h"

#include <fmt/format.h>

#include "base/table.h"
#include "base/units.h"
#include "plan/plan.h"
#include "plan/rank_footprints.h"
#include "spec/enum_names.h"

namespace assay::cli {
namespace {

struct PlanRow {
  const char* key;
  const char* text;
  std::int64_t bytes;
};

std::vector<PlanRow> rows_of(const train::ExecutableStep& planned) {
  const step::MemoryPlan& plan = planned.plan;
  return {
      {"parameters", "parameters", plan.of(step::Storage::kWeights)},
      {"remainders", "low halves of parameters", plan.of(step::Storage::kRemainders)},
      {"gradients", "gradients", plan.of(step::Storage::kGradients)},
      {"optimizer", "optimizer", plan.of(step::Storage::kMoments)},
      {"gathered", "parameters of other ranks", plan.of(step::Storage::kGathered)},
      {"activations", "activations", plan.of(step::Storage::kActivations)},
      {"workspace", "workspace",
       planned.extra_bytes + plan.of(step::Storage::kInputs) + plan.of(step::Storage::kScalars)}};
}

std::int64_t planned_bytes(const train::ExecutableStep& planned) {
  return planned.plan.bytes + planned.extra_bytes;
}

// This rank's communication in a step.
std::vector<plan::PlannedCalls> calls_of(const train::ExecutableStep& planned) {
  return plan::exchange_of(step::footprint_of(planned.program, planned.plan)).calls;
}

void print_calls(const Session& session, const train::ExecutableStep& planned) {
  base::Table table({"communication per step", "by", "among", "calls", "bytes"});
  table.align(2, base::Align::kLeft);
  for (const plan::PlannedCalls& one : calls_of(planned)) {
    table.row({one.about, std::string(to_text(one.calls.kind)),
               fmt::format("{} {}", one.ranks, one.among), base::grouped(one.calls.calls),
               base::to_text(base::Bytes(one.calls.bytes))});
  }
  if (table.empty()) return;
  session.print(table);
  session.print("\n");
}

base::Json plan_json(const train::ExecutableStep& planned, const TrainingDevice& device) {
  base::Json bytes = base::Json::object();
  for (const PlanRow& row : rows_of(planned)) bytes[row.key] = row.bytes;
  const step::Choices& choices = planned.program.choices;
  return {{"event", "plan"},
          {"device", device.backend->description()},
          {"device_reason", base::or_null(device.why)},
          {"recompute", spec::to_text(choices.recompute)},
          {"ops", planned.program.ops.size()},
          {"sequence", choices.sequence},
          {"micro_batch", choices.micro_batch},
          {"accumulate", choices.accumulate},
          {"tokens_per_step", planned.program.step_tokens()},
          {"bytes", std::move(bytes)},
          {"planned_bytes", planned_bytes(planned)},
          {"collectives", plan::to_json(calls_of(planned))},
          {"available_bytes", device.available_bytes}};
}

std::string_view ending_text(train::Ending ending) {
  switch (ending) {
    case train::Ending::kFinished:
      return "finished";
    case train::Ending::kStopAfter:
      return "stopped by --stop-after";
    case train::Ending::kStopped:
      return "stopped by a signal";
    case train::Ending::kNotFinite:
      break;
  }
  return "stopped: gradients not finite";
}

double over_planned_percent(const train::ExecutableStep& planned, const Telemetry& telemetry) {
  return 100 * (static_cast<double>(telemetry.peak_memory_bytes()) /
                    static_cast<double>(planned_bytes(planned)) -
                1);
}

// On a CPU the kernel counts the whole process, not the arena; a GPU's driver the whole GPU.
std::string measurement_text(const TrainingDevice& device) {
  if (!device.gpu_bus_id) {
    return "growth of the process's resident memory since before the arena was allocated";
  }
  const char* const taken = "device memory taken since before the arena was allocated";
  if (device.gpu_ranks == 1) return taken;
  return fmt::format("{}, an equal share for each of the {} ranks on this GPU", taken,
                     device.gpu_ranks);
}

base::Json result_json(const train::ExecutableStep& planned, const TrainingDevice& device,
                       const Telemetry& telemetry, const RunReport& report,
                       const train::TrainingResult& result) {
  const RunTotals totals = report.totals();
  base::Json json{{"event", "result"},
                  {"ending", ending_text(result.ending)},
                  {"step", result.step},
                  {"loss", totals.steps > 0 ? base::Json(result.loss) : base::Json()},
                  {"checkpoint", base::or_null(result.checkpoint.string())}};
  if (result.skipped > 0) json["skipped_in_a_row"] = result.skipped;
  if (result.validation_loss) json["validation_loss"] = *result.validation_loss;
  json["steps_done"] = totals.steps;
  json["tokens_done"] = totals.tokens;
  json["step_seconds"] = totals.seconds;
  if (totals.tokens_per_s) json["tokens_per_s"] = *totals.tokens_per_s;
  if (totals.utilisation) {
    json["mfu"] = totals.utilisation->mfu;
    json["mfu_6n"] = totals.utilisation->mfu_6n;
    json["peak"] = totals.utilisation->peak;
    if (totals.utilisation->fp8) {
      json["mfu_fp8"] = totals.utilisation->fp8->mfu;
      json["mfu_6n_fp8"] = totals.utilisation->fp8->mfu_6n;
    }
  }
  if (totals.joules) json["joules"] = *totals.joules;
  json["planned_bytes"] = planned_bytes(planned);
  json["measured_bytes"] = telemetry.peak_memory_bytes();
  json["measured"] = measurement_text(device);
  json["over_planned_percent"] = over_planned_percent(planned, telemetry);
  json["host_peak_bytes"] = telemetry.peak_host_bytes();
  if (report.ranks().empty()) return json;
  json["ranks"] = base::Json::array();
  for (const store::RankRecord& rank : report.ranks()) json["ranks"].push_back(rank_json(rank));
  if (const auto slowest = store::slowest_of(report.ranks())) {
    json["slowest_rank"] = {{"rank", slowest->rank},
                            {"busy_s", slowest->busy_s},
                            {"median_busy_s", slowest->median_busy_s}};
  }
  return json;
}

// Which rank the others wait for, and the time of each.
void print_ranks(const Session& session, std::span<const store::RankRecord> ranks) {
  if (ranks.empty()) return;
  std::int64_t bytes = 0;
  double waited = 0;
  for (const store::RankRecord& rank : ranks) {
    bytes += rank.memory_bytes;
    const double step_s = rank.mean_step_s();
    if (step_s > 0) waited += rank.mean_wait_s().value_or(0) / step_s;
  }
  std::string line = fmt::format("{} ranks: {} measured in total", ranks.size(),
                                 base::to_text(base::Bytes(bytes)));
  if (const auto slowest = store::slowest_of(ranks)) {
    line += fmt::format(
        "; {:.0f} % of a step spent waiting for communication; slowest is rank {}, with {:.0f} % "
        "more work than the median",
        100 * waited / static_cast<double>(ranks.size()), slowest->rank,
        100 * slowest->slower_by());
  }
  session.print(line + "\n");
}

}  // namespace

void print_plan(const Session& session, const train::ExecutableStep& planned,
                const TrainingDevice& device) {
  session.print_json_line(plan_json(planned, device));
  base::Table table({"memory", "bytes"});
  const auto row = [&](const char* name, std::int64_t bytes) {
    if (bytes > 0) table.row({name, base::to_text(base::Bytes(bytes))});
  };
  for (const PlanRow& part : rows_of(planned)) row(part.text, part.bytes);
  table.rule();
  row("planned", planned_bytes(planned));
  row("available", device.available_bytes);
  const step::Program& program = planned.program;
  const std::int64_t ranks = program.choices.layout.ranks();
  session.print(fmt::format("{}{}, recompute {}, {} ops, {} tokens per step\n\n",
                            ranks == 1 ? "" : fmt::format("rank 0 of {}: ", ranks),
                            device.backend->description(), spec::to_text(program.choices.recompute),
                            base::grouped(static_cast<std::int64_t>(program.ops.size())),
                            base::grouped(program.global_step_tokens())));
  if (!device.why.empty()) session.print(fmt::format("--device auto: {}\n\n", device.why));
  session.print(table);
  const std::string room = plan::room_for_experts(program.model, program.choices);
  if (!room.empty()) session.print(room + "\n");
  session.print("\n");
  print_calls(session, planned);
}

void print_result(const Session& session, const train::ExecutableStep& planned,
                  const TrainingDevice& device, const Telemetry& telemetry, const RunReport& report,
                  const train::TrainingResult& result) {
  session.print_json_line(result_json(planned, device, telemetry, report, result));
  if (report.totals().steps == 0 && result.ending == train::Ending::kFinished) {
    session.print(fmt::format(
        "already finished: {} is the checkpoint of the last step; raise train.steps to continue\n",
        result.checkpoint.string()));
    return;
  }
  session.print(fmt::format(
      "{} after step {}, loss {:.4f}{}\n", ending_text(result.ending), result.step, result.loss,
      result.validation_loss ? fmt::format(", validation loss {:.4f}", *result.validation_loss)
                             : ""));
  if (report.totals().steps == 0) return;
  session.print(fmt::format("memory: {} planned, {} measured ({:+.1f} %): {}\n",
                            base::to_text(base::Bytes(planned_bytes(planned))),
                            base::to_text(base::Bytes(telemetry.peak_memory_bytes())),
                            over_planned_percent(planned, telemetry), measurement_text(device)));
  print_ranks(session, report.ranks());
}

}  // namespace assay::cli
