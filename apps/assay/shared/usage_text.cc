#include "assay/shared/usage_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/table.h"
#include "base/text.h"
#include "base/units.h"

namespace assay::cli {
namespace {

using base::printable;

constexpr const char* kNothing = "—";
constexpr std::size_t kTitleColumns = 60;
constexpr std::size_t kShortestText = 20;

std::string bytes_text(std::uint64_t bytes) {
  return base::to_text(base::Bytes(static_cast<std::int64_t>(bytes)));
}

std::string percent_text(const std::optional<double>& percent) {
  return percent ? fmt::format("{:.0f}%", *percent) : kNothing;
}

std::string rate_text(const std::optional<base::BytesPerSecond>& rate) {
  return rate ? base::to_text(*rate) : kNothing;
}

// "4.1", "412", "12,345".
std::string count_rate(const std::optional<share::RunRates>& rates, double share::RunRates::*what) {
  if (!rates) return kNothing;
  const double value = (*rates).*what;
  if (value > 0 && value < 10) return fmt::format("{:.1f}", value);
  return base::grouped(std::llround(std::min(value, 1e18)));
}

std::string used_text(const share::DeviceState& device) {
  if (device.limit == 0) return bytes_text(device.used);
  return fmt::format("{} of {}", bytes_text(device.used), bytes_text(device.limit));
}

std::string share_column(const wire::GpuShare& share) {
  if (!share.limited()) return kNothing;
  std::string text = share_text(share.thousandths);
  if (share.borrow) text += "+";
  if (share.priority != wire::GpuPriority::kNormal) {
    text += fmt::format(" {}", share::name_of(share.priority));
  }
  return text;
}

// A table that leaves out columns to fit the terminal.
struct FittedTable {
  std::vector<std::string> headers;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> optional;  // columns that may go, the first one first
  std::set<std::string> texts;        // columns of text: aligned left, shortened if necessary

  [[nodiscard]] std::string text(const std::optional<std::size_t>& columns) const {
    std::set<std::string> gone;
    if (!columns) return without(gone, std::nullopt).text();
    for (const std::string& next : optional) {
      // Texts are shortened, down to a readable length, before columns are left out.
      if (base::display_width(rule_of(without(gone, kShortestText).text())) <= *columns) break;
      gone.insert(next);
    }
    return without(gone, kTitleColumns).text(columns);
  }

 private:
  // The rule under the headers is as wide as the table.
  static std::string_view rule_of(std::string_view text) {
    const std::size_t end = text.find('\n');
    const std::string_view rest = text.substr(end + 1);
    return rest.substr(0, rest.find('\n'));
  }
  [[nodiscard]] base::Table without(const std::set<std::string>& gone,
                                    std::optional<std::size_t> width) const {
    const auto kept = [&](const std::vector<std::string>& cells) {
      std::vector<std::string> out;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (gone.contains(headers[i])) continue;
        const bool cut = width && texts.contains(headers[i]);
        out.push_back(cut ? base::shortened(cells[i], *width) : cells[i]);
      }
      return out;
    };
    base::Table table(kept(headers));
    const std::vector<std::string> names = kept(headers);
    for (std::size_t i = 0; i < names.size(); ++i) {
      table.align(i, texts.contains(names[i]) ? base::Align::kLeft : base::Align::kRight);
    }
    for (const auto& row : rows) table.row(kept(row));
    return table;
  }
};

std::string gpus_text(const share::UsageView& view, const std::optional<std::size_t>& columns) {
  if (view.gpus.empty()) return fmt::format("no GPU: {}\n", printable(view.no_gpus));
  FittedTable table{.headers = {"GPU", "name", "memory", "of", "busy", "SM", "tensor", "DRAM",
                                "PCIe in", "PCIe out", "NVLink in", "NVLink out", "W", "MHz"},
                    .rows = {},
                    .optional = {"NVLink out", "NVLink in", "MHz", "PCIe out", "PCIe in", "name",
                                 "SM", "of", "DRAM", "W"},
                    .texts = {"GPU", "name"}};
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.0f}", *value) : kNothing;
  };
  const auto size = [](const std::optional<base::Bytes>& value) {
    return value ? base::to_text(*value) : kNothing;
  };
  for (const share::GpuView& gpu : view.gpus) {
    const machine::GpuActivity& now = gpu.activity;
    table.rows.push_back({short_name(gpu.name), printable(gpu.name.name), size(now.memory_used),
                          size(gpu.name.memory), percent_text(now.busy_percent),
                          percent_text(now.sm_percent), percent_text(now.tensor_percent),
                          percent_text(now.dram_percent), rate_text(now.pcie_received),
                          rate_text(now.pcie_sent), rate_text(now.nvlink_received),
                          rate_text(now.nvlink_sent), number(now.watts), number(now.clock_mhz)});
  }
  return table.text(columns);
}

std::string device_name(const share::DeviceView& device) {
  return device.gpu.empty() ? device.uuid : device.gpu;
}

std::string run_name(const share::RunSample& run) {
  return run.id ? fmt::format("{}", *run.id) : run.uid.substr(0, 8);
}

// "4.1234", "0.0312": four digits after the point, or of the number.
std::string loss_text(const std::optional<double>& loss) {
  if (!loss) return kNothing;
  return std::abs(*loss) < 1000 ? fmt::format("{:.4f}", *loss) : fmt::format("{:.4g}", *loss);
}

std::string runs_text(const share::UsageView& view, const std::optional<std::size_t>& columns) {
  if (view.runs.empty()) return "no run is running\n";
  const bool training = std::any_of(view.runs.begin(), view.runs.end(),
                                    [](const auto& run) { return run.run.training.has_value(); });
  FittedTable table{.headers = {"run", "time", "processes", "CPU", "memory"},
                    .rows = {},
                    .optional = {"processes", "tokens/s", "memory", "CPU", "time"},
                    .texts = {"run", "command"}};
  if (training) table.headers.insert(table.headers.end(), {"step", "loss", "tokens/s"});
  table.headers.emplace_back("command");
  for (const share::RunView& one : view.runs) {
    const share::RunSample& run = one.run;
    const auto& usage = run.usage;
    std::vector<std::string> row = {
        printable(run_name(run)),
        run.elapsed_s ? base::to_text(base::Seconds(std::floor(*run.elapsed_s))) : kNothing,
        usage ? fmt::format("{}", usage->processes) : kNothing, percent_text(one.cpu_percent),
        usage ? bytes_text(usage->memory_bytes) : kNothing};
    if (training) {
      const auto& progress = run.training;
      row.push_back(progress ? base::grouped(progress->step) : kNothing);
      row.push_back(progress ? loss_text(progress->loss) : kNothing);
      row.push_back(progress && progress->tokens_per_s
                        ? base::grouped(std::llround(std::min(*progress->tokens_per_s, 1e18)))
                        : kNothing);
    }
    row.push_back(printable(run.title));
    table.rows.push_back(std::move(row));
  }
  return table.text(columns);
}

// A row for each rank of runs on several, the busiest where there are many.
std::string ranks_text(const share::UsageView& view, const std::optional<std::size_t>& columns) {
  constexpr std::size_t kMostRanks = 16;
  FittedTable table{.headers = {"run", "rank", "place", "node", "step", "step time", "own work",
                                "waiting", "memory", "planned", ""},
                    .rows = {},
                    .optional = {"planned", "own work", "place", "step", "memory", "node"},
                    .texts = {"run", "place", "node", ""}};
  std::string more;
  for (const share::RunView& one : view.runs) {
    std::vector<share::RankProgress> ranks = one.run.ranks;
    const auto busy_s = [](const share::RankProgress& rank) {
      return rank.step_s - rank.wait_s.value_or(0);
    };
    if (ranks.size() > kMostRanks) {
      more += fmt::format("run {} has {} ranks; these are the busiest\n", run_name(one.run),
                          ranks.size());
      std::stable_sort(ranks.begin(), ranks.end(),
                       [&](const auto& a, const auto& b) { return busy_s(a) > busy_s(b); });
      ranks.resize(kMostRanks);
    }
    for (const share::RankProgress& rank : ranks) {
      const auto seconds = [](double value) { return base::to_text(base::Seconds(value)); };
      const auto bytes = [](std::int64_t value) { return base::to_text(base::Bytes(value)); };
      table.rows.push_back(
          {printable(run_name(one.run)), fmt::format("{}", rank.rank), printable(rank.place),
           printable(rank.host), fmt::format("{}", rank.step), seconds(rank.step_s),
           rank.wait_s ? seconds(busy_s(rank)) : kNothing,
           rank.wait_s && rank.step_s > 0 ? fmt::format("{:.0f}%", 100 * *rank.wait_s / rank.step_s)
                                          : kNothing,
           bytes(rank.memory_bytes), bytes(rank.planned_bytes), rank.slowest ? "slowest" : ""});
    }
  }
  return table.rows.empty() ? "" : "\n" + table.text(columns) + more;
}

// A row for each run and GPU; nothing if no run uses GPUs.
std::string gpu_runs_text(const share::UsageView& view, const std::optional<std::size_t>& columns) {
  FittedTable table{
      .headers = {"run", "GPU", "GPU memory", "share", "busy", "waited", "launches/s",
                  "collectives/s", "refused"},
      .rows = {},
      .optional = {"refused", "collectives/s", "waited", "launches/s", "busy", "share"},
      .texts = {"run", "GPU"}};
  for (const share::RunView& one : view.runs) {
    const share::RunSample& run = one.run;
    if (!run.gpu) continue;
    // Numbers of the whole run are in its first row.
    const auto add = [&](bool first, std::string gpu, std::string memory, std::string share,
                         std::string busy, std::string waited) {
      const auto once = [&](std::string text) { return first ? std::move(text) : std::string(); };
      table.rows.push_back({once(printable(run_name(run))), std::move(gpu), std::move(memory),
                            std::move(share), std::move(busy), std::move(waited),
                            once(count_rate(one.rates, &share::RunRates::launches)),
                            once(count_rate(one.rates, &share::RunRates::collectives)),
                            once(fmt::format("{}", run.gpu->refused))});
    };
    if (one.devices.empty()) add(true, kNothing, kNothing, kNothing, kNothing, kNothing);
    bool first = true;
    for (const share::DeviceView& device : one.devices) {
      add(first, printable(device_name(device)), used_text(device.state),
          share_column(device.state.share), percent_text(device.busy_percent),
          percent_text(device.waited_percent));
      first = false;
    }
  }
  return table.rows.empty() ? "" : "\n" + table.text(columns);
}

std::string seconds_text(std::uint64_t ns) {
  return ns == 0 ? kNothing : base::to_text(base::Seconds(static_cast<double>(ns) / 1e9));
}

}  // namespace

std::string share_text(std::uint32_t thousandths) {
  if (thousandths % 10 == 0) return fmt::format("{}%", thousandths / 10);
  return fmt::format("{}.{}%", thousandths / 10, thousandths % 10);
}

std::string top_text(const share::UsageView& view, std::optional<std::size_t> columns) {
  return gpus_text(view, columns) + "\n" + runs_text(view, columns) + ranks_text(view, columns) +
         gpu_runs_text(view, columns);
}

std::string limits_text(const share::RunView& run, std::optional<std::size_t> columns) {
  base::Table table({"GPU", "memory", "limit", "share", "priority", "borrows", "busy", "waited"});
  table.align(4, base::Align::kLeft);
  const auto row = [&](const std::string& gpu, const std::string& used, std::uint64_t limit,
                       const wire::GpuShare& share, const std::string& busy,
                       const std::string& waited) {
    table.row({gpu, used, limit == 0 ? "none" : bytes_text(limit),
               share.thousandths < wire::kGpuWholeShare ? share_text(share.thousandths) : "none",
               std::string(share::name_of(share.priority)), share.borrow ? "yes" : "no", busy,
               waited});
  };
  for (const share::DeviceView& device : run.devices) {
    row(printable(device_name(device)), bytes_text(device.state.used), device.state.limit,
        device.state.share, seconds_text(device.state.busy_ns),
        seconds_text(device.state.waited_ns));
  }
  // For devices that the run has not used yet.
  const share::Limits& all = run.run.gpu->all;
  wire::GpuShare share;
  share.thousandths = all.thousandths.value_or(wire::kGpuWholeShare);
  share.priority = all.priority.value_or(wire::GpuPriority::kNormal);
  share.borrow = all.borrow.value_or(false);
  const std::uint64_t bytes = all.bytes.value_or(0);
  row(run.devices.empty() ? "all" : "others", kNothing, bytes == wire::kGpuUnlimited ? 0 : bytes,
      share, kNothing, kNothing);
  return table.text(columns);
}

}  // namespace assay::cli
