// assay pop: takes the newest job out of the store. Its files stay.
#include <fmt/format.h>

#include "assay/project.h"
#include "assay/show/print_job.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "lineage/graph/artifact_name.h"
#include "lineage/graph/job_json.h"
#include "store/cleaning.h"
#include "store/job_reader.h"

namespace assay::cli {
namespace {

base::Result<base::ExitCode> pop(const Session& session) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const store::JobId id, lineage::job_named(store, "last"));
  ASSAY_TRY(const store::Job job, store::head_of(store, id));
  ASSAY_TRY_VOID(store::remove_job(store, id));
  session.print_json(base::Json{{"removed", lineage::job_head_json(job)}});
  session.print(fmt::format("removed job {} ({}): {}\n", id, outcome_text(job), log_command(job)));
  session.print("its files are as they were\n");
  session.next("assay log");
  return base::ExitCode::kYes;
}

}  // namespace

Verb pop_verb(const Session& session) {
  return {.name = "pop",
          .description = "forget the newest job; its files stay",
          .examples = {"assay pop"},
          .action = [&session] { return pop(session); }};
}

}  // namespace assay::cli
