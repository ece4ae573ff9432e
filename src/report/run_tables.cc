#include "report/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/units.h"
#include "plot/flow.h"
#include "report/machine_tables.h"
#include "report/numbers.h"

namespace assay::report {
namespace {

using base::Json;

constexpr std::size_t kMostPackages = 40;

Cell count_cell(std::int64_t value) {
  return {base::grouped(value), static_cast<double>(value)};
}

Cell bytes_cell(std::int64_t value) {
  return {base::to_text(base::Bytes(value)), static_cast<double>(value)};
}

void add(Table& table, const char* name, std::string value) {
  if (!value.empty()) table.rows.push_back({Cell(name), Cell(std::move(value))});
}

Table machine_table(const ReportedRun& run) {
  const store::RunRecord& record = run.record;
  const Json& machine = record.context.machine;
  Table table{"Where it ran", {"what", "value"}};
  add(table, "command", run.command);
  add(table, "commit", record.context.git ? record.context.git->commit : "");
  if (record.context.git) {
    add(table, "branch", record.context.git->branch);
    add(table, "uncommitted changes",
        record.context.git->dirty ? "yes; the store has them" : "none");
  } else {
    add(table, "commit", "not in a git repository");
  }
  add(table, "host", record.context.host);
  add_machine_rows(table, machine);
  if (const auto clock = summary_of(series_of(run, "sm_mhz"))) {
    add(table, "GPU clock while it ran",
        fmt::format("{:.0f} MHz median, {:.0f} to {:.0f}", clock->median, clock->least,
                    clock->most));
  }
  add(table, "directory", record.directory);
  add(table, "started", base::utc_millis_text(record.started_unix_ns));
  add(table, "tracer", record.tracer);
  add(table, "uid", record.uid);
  return table;
}

}  // namespace

Section gpu_section(const ReportedRun& run) {
  Section section{"GPU work"};
  const store::GpuWork& gpu = run.record.gpu;
  if (!gpu.use.empty()) {
    Table table{"Work submitted to GPUs", {"what", "times", "in all"}};
    for (const store::GpuUse& use : gpu.use) {
      std::string name = use.quantity;
      std::replace(name.begin(), name.end(), '_', ' ');
      Cell amount_cell = use.amount == 0 ? Cell("") : bytes_cell(use.amount);
      if (use.quantity == "graphs") {
        amount_cell = Cell(base::grouped(use.amount) + " nodes", static_cast<double>(use.amount));
      } else if (const auto flops = store::flops_of(use)) {
        amount_cell = Cell(base::to_text(*flops), flops->count());
      }
      table.rows.push_back({Cell(name), count_cell(use.calls), std::move(amount_cell)});
    }
    section.blocks.emplace_back(std::move(table));
  }
  if (!gpu.memory.empty()) {
    Table table{"GPU memory", {"device", "peak of one process"}};
    for (const store::GpuMemory& memory : gpu.memory) {
      table.rows.push_back({Cell(memory.device), bytes_cell(memory.peak_bytes)});
    }
    section.blocks.emplace_back(std::move(table));
  }
  if (!gpu.collectives.empty()) {
    Table table{"Collectives", {"operation", "type", "ranks", "times", "in all", "communicator"}};
    for (const store::GpuCollectiveUse& row : gpu.collectives) {
      table.rows.push_back({Cell(row.operation), Cell(row.type), count_cell(row.ranks),
                            count_cell(row.calls), bytes_cell(row.bytes), Cell(row.communicator)});
    }
    section.blocks.emplace_back(std::move(table));
  }
  return section;
}

Section lineage_section(const ReportedRun& run) {
  Section section{"Lineage"};
  if (run.lineage.inputs.empty() && run.lineage.outputs.empty()) return section;
  const plot::Flow chart{.heading = {"What it read and wrote"},
                         .left = run.lineage.inputs,
                         .middle = {run.command, fmt::format("run {}", run.record.id)},
                         .right = run.lineage.outputs};
  section.blocks.emplace_back(drawn_chart(
      "lineage", "What it read and wrote", chart,
      fmt::format("Files read: {}; written: {}; identified by content.",
                  base::grouped(run.record.input_count), base::grouped(run.record.output_count))));
  return section;
}

Section fingerprint_section(const ReportedRun& run) {
  Section section{"Fingerprint", {machine_table(run)}};
  for (Table& gpus : gpu_tables(run.record.context.machine)) {
    section.blocks.emplace_back(std::move(gpus));
  }
  const auto& packages = run.record.context.packages;
  if (!packages.empty()) {
    Table table{"Packages whose files it read", {"package", "version", "from"}};
    for (std::size_t i = 0; i < std::min(packages.size(), kMostPackages); ++i) {
      table.rows.push_back(
          {Cell(packages[i].name), Cell(packages[i].version), Cell(packages[i].manager)});
    }
    table.more = static_cast<std::int64_t>(packages.size() - table.rows.size());
    section.blocks.emplace_back(std::move(table));
  }
  return section;
}

Section metrics_section(const ReportedRun& run) {
  if (run.metrics.empty()) {
    return {"Metrics", {Note{"The run recorded no metrics."}}};
  }
  Table table{"Every quantity",
              {"quantity", "unit", "process", "points", "least", "median", "mean", "most", "last"}};
  // Units that scale with the number stand beside it; others have a column, to save space.
  const std::set<std::string> scaled = {"s", "bytes", "fraction", "J"};
  for (const store::MetricSeries& series : run.metrics) {
    const auto s = summary_of(&series);
    if (!s || series.name == "unix_s" || series.unit == store::kFlag) continue;
    const bool own = scaled.contains(series.unit);
    const auto cell = [&](double value) {
      return Cell(own ? amount(value, series.unit) : figure(value), value);
    };
    table.rows.push_back(
        {Cell(series.name), Cell(own ? "" : series.unit),
         Cell(fmt::format("{}", series.source), static_cast<double>(series.source)),
         count_cell(s->count), cell(s->least), cell(s->median), cell(s->mean), cell(s->most),
         cell(s->last)});
  }
  return {"Metrics", {std::move(table)}};
}

}  // namespace assay::report
