// assay show [RUN] [--explain] [--metrics]: everything that was recorded about a run.
#include <fmt/format.h>

#include <memory>

#include "assay/project.h"
#include "assay/show/print_metrics.h"
#include "assay/show/print_run.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "lineage/graph/resolve.h"
#include "lineage/graph/run_json.h"
#include "store/metrics.h"
#include "store/parameters.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

constexpr std::size_t kFiles = 40;

struct ShowOptions {
  std::string run = "last";
  bool explain = false;
  bool metrics = false;
};

base::Result<base::ExitCode> show(const Session& session, const ShowOptions& options) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const store::RunId id, lineage::resolve_run(store, options.run));
  ASSAY_TRY(const std::vector<store::MetricSeries> metrics, store::load_metrics(store, id));
  if (options.metrics) {
    print_metric_rows(session, id, metrics, kFiles);
    return base::ExitCode::kYes;
  }
  ASSAY_TRY(const store::RunRecord run, store::load_run(store, id));
  ASSAY_TRY(const store::RunParameters parameters, store::load_parameters(store, id));
  if (session.json) {
    base::Json document = lineage::run_json(run);
    document["parameters"] = parameters;
    document["metrics"] = metrics_summary_json(metrics);
    session.print_json(document);
    return base::ExitCode::kYes;
  }
  print_run(session, run, directory, kFiles);
  if (!parameters.empty()) {
    base::Table table({"parameter", "value"});
    table.align(1, base::Align::kLeft);
    for (const auto& [name, value] : parameters) {
      table.row({base::printable(name), base::shortened(base::printable(value), 80)});
    }
    session.print("\n");
    session.print(table);
  }
  print_metrics(session, metrics);
  if (options.explain) print_rules(session, run, directory, kFiles);
  if (run.output_count > 0) {
    session.next(fmt::format("assay dag {}", id));
  } else {
    session.next("assay log");
  }
  return base::ExitCode::kYes;
}

}  // namespace

Verb show_verb(const Session& session) {
  const auto given = std::make_shared<ShowOptions>();
  return {.name = "show",
          .description = "show everything recorded about a run",
          .examples = {"assay show", "assay show last --json", "assay show 2 --explain"},
          .arguments = {{"RUN", "number, last, @STAGE, name, label or uid; default: last",
                         &given->run, false, [] { return std::vector<std::string>{"last"}; }}},
          .options = {{"--explain", "why files were kept or left out", &given->explain},
                      {"--metrics", "its metrics, step by step", &given->metrics}},
          .action = [&session, given] { return show(session, *given); }};
}

}  // namespace assay::cli
