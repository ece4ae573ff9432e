// The program `assay`: which verbs it has.
#include <utility>

#include "assay/verbs.h"
#include "cli/program.h"

namespace assay::cli {
namespace {

constexpr const char* kDescription =
    "Assay trains language models and accounts for every second, byte and dollar of a training "
    "run,\nfor its own trainer and for any other command.";

void add_group(Verb& root, const std::string& heading, std::vector<Verb> verbs) {
  for (Verb& verb : verbs) {
    verb.group = heading;
    root.verbs.push_back(std::move(verb));
  }
}

void describe(const Session& session, Verb& root) {
  root = {"assay", kDescription, {}};
  add_group(root, "Train a model",
            {train_verb(session), generate_verb(session), score_verb(session), data_verb(session),
             checkpoint_verb(session)});
  add_group(
      root, "Observe a command",
      {run_verb(session), init_verb(session), log_metric_verb(session), tracers_verb(session)});
  add_group(
      root, "Query lineage",
      {log_verb(session), show_verb(session), dag_verb(session), lineage_verb(session),
       status_verb(session), refresh_verb(session), diff_verb(session), reproduce_verb(session),
       export_verb(session), label_verb(session), pop_verb(session), gc_verb(session)});
  add_group(
      root, "Keep and move results",
      {archive_verb(session), restore_verb(session), pack_verb(session), unpack_verb(session)});
  add_group(root, "Plan a job", {plan_verb(session), presets_verb(session)});
  add_group(root, "Measure and report",
            {compare_verb(session), bench_verb(session), report_verb(session)});
  add_group(root, "Share GPUs", {top_verb(session), limit_verb(session)});
  add_group(root, "Shell", {completion_verb(session, root)});
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  return assay::cli::run_program(argc, argv, assay::cli::describe);
}
