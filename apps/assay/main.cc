// The program `assay`: which verbs it has.
#include "assay/verbs.h"
#include "cli/program.h"

namespace assay::cli {
namespace {

constexpr const char* kDescription =
    "Assay trains language models and says what every second, byte and dollar of a training run\n"
    "bought, for its own trainer and for anybody's command.";

void describe(const Session& session, Verb& root) {
  root = {"assay", kDescription, {}};
  root.verbs = {train_verb(session),      generate_verb(session),
                plan_verb(session),       run_verb(session),
                limit_verb(session),      top_verb(session),
                compare_verb(session),    bench_verb(session),
                report_verb(session),     tracers_verb(session),
                presets_verb(session),    data_verb(session),
                checkpoint_verb(session), init_verb(session),
                log_verb(session),        show_verb(session),
                dag_verb(session),        lineage_verb(session),
                status_verb(session),     diff_verb(session),
                label_verb(session),      pop_verb(session),
                gc_verb(session),         reproduce_verb(session),
                export_verb(session),     completion_verb(session, root)};
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  return assay::cli::run_program(argc, argv, assay::cli::describe);
}
