#include "report/run_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "plot/stacked_bars.h"
#include "report/numbers.h"

namespace assay::report {
namespace {

using Ranks = std::vector<store::RankRecord>;

// More bars than this are too thin to read, more rows too many to look through.
constexpr std::size_t kMostBars = 32;
constexpr std::size_t kMostRows = 256;

// The `count` ranks with the most work of their own, in rank order; if that is not known, the first
// ones.
Ranks busiest(Ranks ranks, std::size_t count) {
  if (ranks.size() <= count) return ranks;
  std::ranges::stable_sort(ranks, [](const auto& a, const auto& b) {
    return a.mean_busy_s().value_or(0) > b.mean_busy_s().value_or(0);
  });
  ranks.resize(count);
  std::ranges::sort(ranks, {}, &store::RankRecord::rank);
  return ranks;
}

std::string rank_name(const store::RankRecord& rank) {
  return rank.place.empty() ? fmt::format("{}", rank.rank)
                            : fmt::format("{} ({})", rank.rank, base::printable(rank.place));
}

Facts rank_facts(const Ranks& ranks) {
  Facts facts;
  std::set<std::string> nodes;
  double waiting = 0;
  double memory = 0;
  bool measured = true;
  for (const store::RankRecord& rank : ranks) {
    nodes.insert(rank.host);
    memory += static_cast<double>(rank.memory_bytes);
    measured = measured && rank.wait_s.has_value();
    if (rank.mean_step_s() > 0) waiting += rank.mean_wait_s().value_or(0) / rank.mean_step_s();
  }
  facts.facts.push_back(
      {"ranks", base::grouped(static_cast<std::int64_t>(ranks.size())),
       fmt::format("on {}", base::counted(static_cast<std::int64_t>(nodes.size()), "node"))});
  if (const auto slowest = store::slowest_of(ranks)) {
    const auto at = std::ranges::find(ranks, slowest->rank, &store::RankRecord::rank);
    facts.facts.push_back(
        {"slowest rank", fmt::format("{}", slowest->rank),
         fmt::format("on {}: {} of its own work in a step, {} more than the median rank",
                     base::printable(at->host), amount(slowest->busy_s, "s"),
                     amount(slowest->slower_by(), "fraction"))});
  }
  if (measured) {
    facts.facts.push_back({"waiting for communication",
                           amount(waiting / static_cast<double>(ranks.size()), "fraction"),
                           "of a step, mean over ranks"});
  }
  facts.facts.push_back({"memory", amount(memory, "bytes"), "most in use, of all ranks together"});
  return facts;
}

Cell seconds_cell(const std::optional<double>& seconds) {
  return seconds ? Cell(amount(*seconds, "s"), *seconds) : Cell("—");
}

Cell off_cell(double measured, double predicted) {
  if (predicted <= 0 || measured <= 0) return Cell("—");
  const double percent = 100 * (measured / predicted - 1);
  return {fmt::format("{:+.1f} %", percent), percent};
}

PageTable rank_table(const ReportedRun& run) {
  const double predicted_s = run.predicted ? run.predicted->step_s : 0;
  PageTable table{"Every rank: a mean step, and the most memory",
                  {"rank", "node", "step", "own work", "waiting", "memory", "planned", "off"}};
  if (predicted_s > 0) {
    table.columns.insert(table.columns.begin() + 3, {"predicted step", "off by"});
  }
  const auto slowest = store::slowest_of(run.ranks);
  for (const store::RankRecord& rank : busiest(run.ranks, kMostRows)) {
    const auto memory = static_cast<double>(rank.memory_bytes);
    const auto planned = static_cast<double>(rank.planned_bytes);
    std::vector<Cell> row = {Cell(rank_name(rank)), Cell(base::printable(rank.host)),
                             seconds_cell(rank.mean_step_s())};
    if (predicted_s > 0) {
      row.push_back(seconds_cell(predicted_s));
      row.push_back(off_cell(rank.mean_step_s(), predicted_s));
    }
    Cell own = seconds_cell(rank.mean_busy_s());
    if (slowest && slowest->rank == rank.rank) own.text += ", slowest";
    row.push_back(std::move(own));
    row.push_back(seconds_cell(rank.mean_wait_s()));
    row.emplace_back(amount(memory, "bytes"), memory);
    row.emplace_back(amount(planned, "bytes"), planned);
    row.push_back(off_cell(memory, planned));
    table.rows.push_back(std::move(row));
  }
  table.more = static_cast<std::int64_t>(run.ranks.size() - table.rows.size());
  return table;
}

std::optional<Chart> rank_chart(const ReportedRun& run) {
  const Ranks shown = busiest(run.ranks, kMostBars);
  plot::StackedBars chart{
      .heading = {"A step of every rank", "own work, and waiting for other ranks' data"},
      .value = {.title = "milliseconds per step", .format = figure},
      .parts = {"own work", "waiting for communication"},
      .bars = {}};
  for (const store::RankRecord& rank : shown) {
    const auto busy = rank.mean_busy_s();
    const auto wait = rank.mean_wait_s();
    if (!busy || !wait) return std::nullopt;
    chart.bars.push_back({fmt::format("rank {}", rank.rank), {*busy * 1e3, *wait * 1e3}});
  }
  std::string note;
  if (shown.size() < run.ranks.size()) {
    chart.heading.title = "A step of the busiest ranks";
    note = fmt::format("The {} ranks with the most work, of {}.", shown.size(), run.ranks.size());
  }
  return drawn_chart("ranks", chart.heading.title, chart, std::move(note));
}

}  // namespace

Section ranks_section(const ReportedRun& run) {
  if (run.ranks.empty()) return {};
  Section section{"Ranks"};
  section.blocks.emplace_back(rank_facts(run.ranks));
  if (auto chart = rank_chart(run)) {
    section.blocks.emplace_back(*std::move(chart));
  } else {
    section.blocks.emplace_back(
        Note{"Waiting for communication was not measured: no step was finished, or an "
             "older assay recorded the run."});
  }
  section.blocks.emplace_back(rank_table(run));
  return section;
}

base::Json ranks_json(const ReportedRun& run) {
  if (run.ranks.empty()) return nullptr;
  base::Json list = base::Json::array();
  for (const store::RankRecord& rank : run.ranks) {
    list.push_back({{"rank", rank.rank},
                    {"host", rank.host},
                    {"place", rank.place},
                    {"step", rank.step},
                    {"steps", rank.steps},
                    {"step_s", rank.mean_step_s()},
                    {"wait_s", base::or_null(rank.mean_wait_s())},
                    {"busy_s", base::or_null(rank.mean_busy_s())},
                    {"planned_bytes", rank.planned_bytes},
                    {"memory_bytes", rank.memory_bytes},
                    {"host_bytes", rank.host_bytes}});
  }
  base::Json json{{"ranks", std::move(list)}, {"slowest", nullptr}};
  if (run.predicted && run.predicted->step_s > 0) json["predicted_step_s"] = run.predicted->step_s;
  if (const auto slowest = store::slowest_of(run.ranks)) {
    json["slowest"] = {{"rank", slowest->rank},
                       {"busy_s", slowest->busy_s},
                       {"median_busy_s", slowest->median_busy_s},
                       {"slower_by", slowest->slower_by()}};
  }
  return json;
}

}  // namespace assay::report
