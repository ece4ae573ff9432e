// assay log: the recorded jobs, newest first.
#include <fmt/format.h>

#include <memory>

#include "assay/project.h"
#include "assay/show/print_job.h"
#include "assay/verbs.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/job_json.h"
#include "store/job_reader.h"

namespace assay::cli {
namespace {

constexpr std::int64_t kDefaultCount = 20;

struct LogOptions {
  std::string count;
  bool all = false;
};

base::Result<base::ExitCode> log(const Session& session, const LogOptions& options) {
  std::int64_t limit = options.all ? -1 : kDefaultCount;
  if (!options.count.empty()) {
    ASSAY_TRY(limit, count_option("log", "-n", options.count));
  }
  if (limit == 0) {
    return base::fail(base::usage_error("log", "-n 0 asks for nothing", "use --all for all"));
  }
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const auto jobs, store::list_jobs(store, {.limit = limit}));
  base::Json list = base::Json::array();
  base::Table table({"job", "when", "step", "outcome", "took", "in", "out", "command"});
  table.align(1, base::Align::kLeft).align(2, base::Align::kRight);
  for (const store::Job& job : jobs) {
    if (session.json) list.push_back(lineage::job_head_json(job));
    table.row({fmt::format("{}", job.id), base::utc_text(job.started_unix_ns), step_text(job),
               outcome_text(job), took_text(job), base::grouped(job.input_count),
               base::grouped(job.output_count), log_command(job)});
  }
  session.print_json(base::Json{{"jobs", std::move(list)}});
  if (jobs.empty()) {
    session.print("no job has been recorded yet\n");
    session.next("assay run -- COMMAND");
    return base::ExitCode::kYes;
  }
  session.print(table);
  session.next(fmt::format("assay show {}", jobs.front().id));
  return base::ExitCode::kYes;
}

}  // namespace

Verb log_verb(const Session& session) {
  const auto given = std::make_shared<LogOptions>();
  return {.name = "log",
          .description = "recorded jobs, newest first",
          .examples = {"assay log", "assay log -n 5 --json"},
          .options = {{"-n,--count", "so many of the newest; default: 20", &given->count, {}, "N"},
                      {"--all", "all of them", &given->all}},
          .action = [&session, given] { return log(session, *given); }};
}

}  // namespace assay::cli
