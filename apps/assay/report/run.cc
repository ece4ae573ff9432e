// A run of the store with everything a report shows of it.
#include <fmt/format.h>

#include "assay/project.h"
#include "assay/report/sources.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/number_option.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/resolve.h"
#include "store/artifacts.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

constexpr std::size_t kBoxesShown = 12;
constexpr std::size_t kBoxCommand = 40;

std::string run_text(const store::RunRecord& record) {
  return fmt::format("{} {}", lineage::short_name(record),
                     base::shortened(lineage::command_text(record), kBoxCommand));
}

void add_rest(std::vector<plot::FlowBox>& boxes, std::int64_t all) {
  const std::int64_t more = all - static_cast<std::int64_t>(boxes.size());
  if (more > 0) boxes.push_back({fmt::format("and {} more", base::grouped(more)), "assay show"});
}

base::Result<void> add_lineage(store::Store& store, const std::filesystem::path& directory,
                               report::ReportedRun& run) {
  ASSAY_TRY(store::Producers producers, store::Producers::prepare(store));
  for (const store::Input& input : run.record.inputs) {
    if (run.lineage.inputs.size() == kBoxesShown) break;
    ASSAY_TRY(const auto from, producers.of(run.record, input));
    std::string detail = base::to_text(base::Bytes(input.size));
    if (from) {
      ASSAY_TRY(const store::RunRecord maker, store::head_of(store, from->run));
      detail = fmt::format("from {}", run_text(maker));
    }
    run.lineage.inputs.push_back({lineage::shown_path(input.path, directory), std::move(detail)});
  }
  add_rest(run.lineage.inputs, run.record.input_count);
  for (const store::Output& output : run.record.outputs) {
    if (run.lineage.outputs.size() == kBoxesShown) break;
    ASSAY_TRY(const auto readers, producers.readers(run.record, output));
    std::string detail = fmt::format("{}, {}", store::name_of(output.status),
                                     base::to_text(base::Bytes(output.size)));
    if (!readers.empty()) {
      ASSAY_TRY(const store::RunRecord reader, store::head_of(store, readers.front().run));
      detail =
          fmt::format("read by {}{}", run_text(reader),
                      readers.size() > 1 ? fmt::format(" and {} more", readers.size() - 1) : "");
    }
    run.lineage.outputs.push_back({lineage::shown_path(output.path, directory), std::move(detail)});
  }
  add_rest(run.lineage.outputs, run.record.output_count);
  return {};
}

base::Result<std::optional<double>> rate_of(const char* option, std::string_view text, double most,
                                            const char* example) {
  if (text.empty()) return std::nullopt;
  if (text.starts_with('$')) text.remove_prefix(1);
  return number_option<double>(option, text, 0, most, example);
}

}  // namespace

base::Result<report::Rates> rates_of(const ReportOptions& options) {
  constexpr double kMostPerHour = 1e7;
  constexpr double kMostGrams = 1e4;
  report::Rates rates;
  ASSAY_TRY(rates.dollars_per_hour,
            rate_of("--price", options.price, kMostPerHour,
                    "price in dollars per hour, for all machines together, as in --price 31.92"));
  ASSAY_TRY(rates.grams_per_kwh, rate_of("--carbon", options.carbon, kMostGrams,
                                         "grams of CO2 per kWh, as in --carbon 380"));
  return rates;
}

base::Result<report::ReportedRun> reported_run(store::Store& store, const std::string& name,
                                               const report::Rates& rates) {
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const store::RunId id, lineage::resolve_run(store, name));
  report::ReportedRun run;
  ASSAY_TRY(run.record, store::load_run(store, id));
  ASSAY_TRY(run.metrics, store::load_metrics(store, id));
  ASSAY_TRY(run.ranks, store::load_ranks(store, id));
  run.seen_unix_ns = base::system_clock().wall_ns();
  run.command = lineage::command_text(run.record);
  run.rates = rates;
  if (!rates.dollars_per_hour) run.rates.offers = offers_of(run.record);
  ASSAY_TRY_VOID(add_lineage(store, directory, run));
  add_prediction(store, run);
  return run;
}

}  // namespace assay::cli
