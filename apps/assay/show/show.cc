// assay show [JOB] [--explain] [--metrics]: everything that was recorded of a job.
#include <fmt/format.h>

#include <memory>

#include "assay/project.h"
#include "assay/show/print_job.h"
#include "assay/show/print_metrics.h"
#include "assay/verbs.h"
#include "lineage/graph/artifact_name.h"
#include "lineage/graph/job_json.h"
#include "store/job_reader.h"
#include "store/metrics.h"

namespace assay::cli {
namespace {

constexpr std::size_t kFiles = 40;

struct ShowOptions {
  std::string job = "last";
  bool explain = false;
  bool metrics = false;
};

base::Result<base::ExitCode> show(const Session& session, const ShowOptions& options) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path directory, working_directory());
  ASSAY_TRY(const store::JobId id, lineage::job_named(store, options.job));
  ASSAY_TRY(const std::vector<store::MetricSeries> metrics, store::load_metrics(store, id));
  if (options.metrics) {
    print_metric_rows(session, id, metrics, kFiles);
    return base::ExitCode::kYes;
  }
  ASSAY_TRY(const store::Job job, store::load_job(store, id));
  if (session.json) {
    base::Json document = lineage::job_json(job);
    document["metrics"] = metrics_summary_json(metrics);
    session.print_json(document);
    return base::ExitCode::kYes;
  }
  print_job(session, job, directory, kFiles);
  print_metrics(session, metrics);
  if (options.explain) print_rules(session, job, directory, kFiles);
  if (job.output_count > 0) {
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
          .description = "everything recorded of a job",
          .examples = {"assay show", "assay show last --json", "assay show 2 --explain"},
          .arguments = {{"JOB", "number, last, @STEP, name, label or uid; default: last",
                         &given->job, false, [] { return std::vector<std::string>{"last"}; }}},
          .options = {{"--explain", "why files were kept or left out", &given->explain},
                      {"--metrics", "what it measured, step by step", &given->metrics}},
          .action = [&session, given] { return show(session, *given); }};
}

}  // namespace assay::cli
