#include "report/run_part.h"

#include <fmt/format.h>

#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "report/numbers.h"
#include "report/run_cost.h"
#include "report/run_curves.h"
#include "report/run_json.h"
#include "report/run_ranks.h"
#include "report/run_tables.h"
#include "report/run_times.h"

namespace assay::report {
namespace {

constexpr std::size_t kMostTitle = 100;  // columns

Verdict verdict_of_run(const ReportedRun& run) {
  const store::RunRecord& record = run.record;
  Verdict verdict{.word = std::string(store::name_of(record.status))};
  switch (record.status) {
    case store::RunStatus::kDone:
      verdict.rating = Rating::kGood;
      break;
    case store::RunStatus::kFailed:
      verdict.rating = Rating::kBad;
      break;
    case store::RunStatus::kInterrupted:
    case store::RunStatus::kRunning:
      verdict.rating = Rating::kOpen;
      break;
  }
  verdict.text = fmt::format("{} {}", record.status == store::RunStatus::kRunning ? "for" : "after",
                             base::to_text(base::Seconds(ran_s(run))));
  if (record.signal) {
    verdict.text += fmt::format(", by signal {}", *record.signal);
  } else if (record.exit_code && *record.exit_code != 0) {
    verdict.text += fmt::format(", with exit code {}", *record.exit_code);
  }
  verdict.text += record.complete ? "; all files it read and wrote were recorded"
                                  : "; some files it read or wrote were not recorded";
  return verdict;
}

void add_fact(Facts& facts, const ReportedRun& run, const char* series, const char* name,
              double SeriesSummary::*what, const char* note) {
  const store::MetricSeries* found = series_of(run, series);
  const auto summary = summary_of(found);
  if (summary) facts.facts.push_back({name, amount((*summary).*what, found->unit), note});
}

Section summary_section(const ReportedRun& run) {
  Facts facts;
  facts.facts.push_back({"ran", base::to_text(base::Seconds(ran_s(run))),
                         "since " + base::utc_text(run.record.started_unix_ns)});
  if (const auto steps = summary_of(series_of(run, "seconds"))) {
    const store::MetricSeries* series = series_of(run, "seconds");
    facts.facts.push_back({"steps", base::grouped(steps->count),
                           fmt::format("{} to {}", base::grouped(series->points.front().step),
                                       base::grouped(series->points.back().step))});
    facts.facts.push_back({"step", amount(steps->median, "s"),
                           fmt::format("median; p99 {}", amount(steps->p99, "s"))});
  }
  if (const auto rate = summary_of(series_of(run, "tokens_per_s"))) {
    facts.facts.push_back(
        {"throughput", base::grouped(std::llround(rate->median)), "tokens per second, median"});
  }
  add_fact(facts, run, "mfu", "utilisation (MFU)", &SeriesSummary::median,
           "median, of the bf16 peak (on CPUs fp32); counting matmul parameters");
  add_fact(facts, run, "loss", "loss", &SeriesSummary::last, "last step");
  add_fact(facts, run, "validation_loss", "validation loss", &SeriesSummary::last, "last");
  add_fact(facts, run, "memory_bytes", "memory", &SeriesSummary::most, "most in use");
  add_fact(facts, run, "watts", "power", &SeriesSummary::mean, "mean over steps");
  if (const auto joules = joules_of(run)) {
    facts.facts.push_back({"energy", amount(*joules, "J"), "measured"});
  }
  const store::Usage& usage = run.record.usage;
  if (usage.user_s + usage.system_s > 0) {
    facts.facts.push_back({"processor time",
                           base::to_text(base::Seconds(usage.user_s + usage.system_s)),
                           "of all processes"});
  }
  if (usage.max_rss_bytes > 0) {
    facts.facts.push_back(
        {"largest process", base::to_text(base::Bytes(usage.max_rss_bytes)), "resident"});
  }
  return {"Summary", {std::move(facts)}};
}

}  // namespace

PagePart run_part(const ReportedRun& run, std::size_t most_points) {
  const store::RunRecord& record = run.record;
  PagePart part{
      .kind = "run",
      .title = base::shortened_middle(base::printable(run.command), kMostTitle),
      .subtitle = record.name.empty()
                      ? fmt::format("run {} in {}", record.id, record.directory)
                      : fmt::format("run {}: {}, in {}", record.id, record.name, record.directory),
      .verdict = verdict_of_run(run)};
  add_section(part, summary_section(run));
  add_section(part, steps_section(run));
  add_section(part, curves_section(run));
  add_section(part, times_section(run));
  add_section(part, events_section(run));
  add_section(part, predicted_section(run));
  add_section(part, ranks_section(run));
  add_section(part, cost_section(run));
  add_section(part, gpu_section(run));
  add_section(part, lineage_section(run));
  add_section(part, fingerprint_section(run));
  add_section(part, metrics_section(run));
  part.data = run_json(run, most_points);
  return part;
}

}  // namespace assay::report
