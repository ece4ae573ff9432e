#include "report/run_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "base/units.h"
#include "plot/flow.h"
#include "plot/stacked_bars.h"
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

void add(PageTable& table, const char* name, std::string value) {
  if (!value.empty()) table.rows.push_back({Cell(name), Cell(std::move(value))});
}

PageTable machine_table(const ReportedRun& run) {
  const store::RunRecord& record = run.record;
  const Json& machine = record.context.machine;
  PageTable table{"Where it ran", {"what", "value"}};
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

constexpr double kSecondsPerHour = 3600;
constexpr double kJoulesPerKwh = 3.6e6;

std::string dollars(double value) {
  if (value > 0 && value < 0.01) return "less than $0.01";
  return dollars_text(value);
}

std::string dollars(double low, double high) {
  return low == high ? dollars(low) : fmt::format("{} – {}", dollars(low), dollars(high));
}

// In hours, as bills are, unless that would be a row of zeros.
std::string time_text(double hours) {
  constexpr double kFewestHours = 0.01;
  return hours < kFewestHours ? base::to_text(base::Seconds(hours * kSecondsPerHour))
                              : figure(hours) + " h";
}

void add_row(PageTable& table, const char* what, double predicted, std::optional<double> measured,
             const char* unit, std::string note = {}) {
  if (predicted <= 0) return;
  const bool is_time = std::string_view(unit) == "s";
  const auto off = [&]() -> Cell {
    if (!measured) return Cell("—");
    const double percent = 100 * (*measured / predicted - 1);
    // A ratio is easier to read where the two are far apart.
    const bool far = *measured > 0 && std::abs(std::log(*measured / predicted)) > std::log(1.5);
    return Cell(far ? fmt::format("{:+.0f} %, {}", percent, ratio_text(percent, is_time))
                    : fmt::format("{:+.1f} %", percent),
                percent);
  };
  table.rows.push_back({Cell(what), Cell(amount(predicted, unit), predicted),
                        measured ? Cell(amount(*measured, unit), *measured) : Cell("—"), off(),
                        Cell(std::move(note))});
}

std::optional<double> median_of(const ReportedRun& run, std::string_view name) {
  const auto summary = summary_of(series_of(run, name));
  return summary ? std::optional(summary->median) : std::nullopt;
}

void add_energy(const ReportedRun& run, double hours, PageTable& table) {
  const auto joules = joules_of(run);
  if (!joules) {
    table.rows.push_back({Cell("energy"), Cell("unknown"),
                          Cell("the run measured no power, so its carbon is unknown too")});
    return;
  }
  const double kwh = *joules / kJoulesPerKwh;
  table.rows.push_back(
      {Cell("energy"), Cell(kwh < 1e-3 ? figure(kwh * 1e3) + " Wh" : figure(kwh) + " kWh", kwh),
       Cell(fmt::format(
           "measured during steps: {}, on average {:.0f} W over the whole time; devices only",
           amount(*joules, "J"), *joules / (hours * kSecondsPerHour)))});
  const auto tokens = summary_of(series_of(run, "joules_per_token"));
  if (tokens) {
    table.rows.push_back({Cell("energy per token"),
                          Cell(amount(tokens->median, "J"), tokens->median), Cell("median")});
  }
  if (!run.rates.grams_per_kwh) {
    table.rows.push_back({Cell("carbon"), Cell("unknown"),
                          Cell("the grid's intensity was not given: --carbon gCO2/kWh")});
    return;
  }
  const double grams = kwh * *run.rates.grams_per_kwh;
  table.rows.push_back({Cell("intensity of the grid"),
                        Cell(figure(*run.rates.grams_per_kwh) + " g/kWh", *run.rates.grams_per_kwh),
                        Cell("--carbon")});
  table.rows.push_back({Cell("carbon"), Cell(figure(grams) + " g CO2", grams),
                        Cell("energy times intensity; without the building's overhead")});
}

}  // namespace

Section gpu_section(const ReportedRun& run) {
  Section section{"GPU work"};
  const store::GpuWork& gpu = run.record.gpu;
  if (!gpu.use.empty()) {
    PageTable table{"Work submitted to GPUs", {"what", "times", "in all"}};
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
    PageTable table{"GPU memory", {"device", "peak of one process"}};
    for (const store::GpuMemory& memory : gpu.memory) {
      table.rows.push_back({Cell(memory.device), bytes_cell(memory.peak_bytes)});
    }
    section.blocks.emplace_back(std::move(table));
  }
  if (!gpu.collectives.empty()) {
    PageTable table{"Collectives",
                    {"operation", "type", "ranks", "times", "in all", "communicator"}};
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
  for (PageTable& gpus : gpu_tables(run.record.context.machine)) {
    section.blocks.emplace_back(std::move(gpus));
  }
  const auto& packages = run.record.context.packages;
  if (!packages.empty()) {
    PageTable table{"Packages whose files it read", {"package", "version", "from"}};
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
  PageTable table{
      "Every quantity",
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

Section predicted_section(const ReportedRun& run) {
  Section section{"Predicted and measured"};
  if (!run.not_predicted.empty()) {
    section.blocks.emplace_back(
        Note{(run.predicted ? "Step times are not predicted: " : "There is no prediction: ") +
             run.not_predicted + "."});
  }
  if (!run.predicted) return section;
  const Predicted& p = *run.predicted;
  if (!p.source.empty()) section.blocks.emplace_back(Note{"Prediction: " + p.source + "."});
  PageTable table{fmt::format("Predicted for {}", p.of),
                  {"quantity", "predicted", "measured (median)", "off", "remark"}};
  add_row(table, "step", p.step_s, median_of(run, "seconds"), "s",
          fmt::format("80 %: {} to {}", amount(p.step_interval_s.low, "s"),
                      amount(p.step_interval_s.high, "s")));
  add_row(table, "throughput", p.tokens_per_s, median_of(run, "tokens_per_s"), "tokens/s");
  add_row(table, "MFU", p.mfu, median_of(run, "mfu"), "fraction");
  add_row(table, "MFU, 6N", p.mfu_6n, median_of(run, "mfu_6n"), "fraction");
  const auto memory = summary_of(series_of(run, "memory_bytes"));
  add_row(table, "memory", p.memory_bytes, memory ? std::optional(memory->most) : std::nullopt,
          "bytes", "measured: the most");
  section.blocks.emplace_back(std::move(table));
  if (p.parts_s.empty()) return section;
  plot::StackedBars chart{
      .heading = {"Where the time of a step goes", "as predicted; below, the measured total"},
      .value = {.title = "milliseconds per step", .format = figure},
      .parts = {},
      .bars = {{"predicted", {}}}};
  for (const auto& [name, seconds] : p.parts_s) {
    chart.parts.push_back(name);
    chart.bars[0].values.push_back(seconds * 1e3);
  }
  if (const auto measured = median_of(run, "seconds")) {
    chart.parts.emplace_back("measured, total");
    chart.bars[0].values.push_back(0);
    plot::Bar& bar = chart.bars.emplace_back(plot::Bar{"measured", {}});
    bar.values.resize(chart.parts.size());
    bar.values.back() = *measured * 1e3;
  }
  section.blocks.emplace_back(
      drawn_chart("step-breakdown", "Where the time of a step goes", chart));
  return section;
}

Section cost_section(const ReportedRun& run) {
  const double hours = ran_s(run) / kSecondsPerHour;
  if (hours <= 0) return {};
  PageTable table{"Cost, with every input", {"input or result", "value", "where from"}};
  const bool running = run.record.status == store::RunStatus::kRunning;
  table.rows.push_back({Cell("time"), Cell(time_text(hours), hours),
                        Cell(running ? "from the command's start until now: it is still running"
                                     : "from the command's start to its end")});
  if (run.rates.dollars_per_hour) {
    const double price = *run.rates.dollars_per_hour;
    table.rows.push_back(
        {Cell("price"), Cell(dollars(price) + " per hour", price), Cell("--price")});
    table.rows.push_back(
        {Cell("cost"), Cell(dollars(price * hours), price * hours), Cell("price times time")});
  } else if (run.rates.offers.empty()) {
    table.rows.push_back(
        {Cell("cost"), Cell("unknown"),
         Cell("no price was given (--price $/h), and no preset offers this machine's GPUs")});
  }
  add_energy(run, hours, table);
  Section section{"Cost and carbon", {std::move(table)}};
  if (run.rates.dollars_per_hour || run.rates.offers.empty()) return section;
  PageTable offers{"What this run would have cost, by offer of the presets",
                   {"offer", "market", "per hour", "this run", "as of", "source"}};
  for (const Offer& offer : run.rates.offers) {
    offers.rows.push_back(
        {Cell(fmt::format("{}, {}", offer.provider, offer.name)), Cell(offer.market),
         Cell(dollars(offer.low_per_hour, offer.high_per_hour), offer.low_per_hour),
         Cell(dollars(offer.low_per_hour * hours, offer.high_per_hour * hours),
              offer.low_per_hour * hours),
         Cell(offer.date), Cell(offer.source)});
  }
  section.blocks.emplace_back(std::move(offers));
  return section;
}

}  // namespace assay::report
