// assay pop: removes the newest run from the store. Its files are not touched.
#include <fmt/format.h>

#include "assay/project.h"
#include "assay/shared/run_text.h"
#include "assay/verbs.h"
#include "base/text.h"
#include "lineage/graph/resolve.h"
#include "lineage/graph/run_json.h"
#include "store/cleaning.h"
#include "store/run_reader.h"

namespace assay::cli {
namespace {

base::Result<base::ExitCode> pop(const Session& session) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const auto newest, store::find_run(store, "last"));
  if (!newest) return base::fail(lineage::resolve_run(store, "last").error());
  const store::RunId id = *newest;
  ASSAY_TRY(const store::RunRecord run, store::head_of(store, id));
  ASSAY_TRY_VOID(store::remove_run(store, id));
  session.print_json(base::Json{{"removed", lineage::run_head_json(run)}});
  session.print(fmt::format("removed run {} ({}): {}\n", id, outcome_text(run), log_command(run)));
  session.print("its files were not touched\n");
  session.next("assay log");
  return base::ExitCode::kYes;
}

}  // namespace

Verb pop_verb(const Session& session) {
  return {.name = "pop",
          .description = "remove the newest run from the store; its files are not touched",
          .examples = {"assay pop"},
          .action = [&session] { return pop(session); }};
}

}  // namespace assay::cli
