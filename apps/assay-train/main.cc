// The program `assay-train`: the verbs that need matrix libraries and devices. `assay train`,
// `assay generate` and `assay score` start it; run directly it does the same without recording.
#include <sys/resource.h>

#include <tuple>

#include "assay-train/verbs.h"
#include "base/process/program.h"
#include "cli/program.h"
#include "train/cpu/cpu_backend.h"

namespace assay::cli {
namespace {

void describe(const Session& session, Verb& root) {
  root = {"assay-train", "The trainer of assay; `assay train` runs it as a recorded run.", {}};
  root.verbs = {describe_train([&session](const TrainOptions& options) {
                  return train_model(session, options);
                }),
                describe_generate([&session](const GenerateOptions& options) {
                  return generate_text(session, options);
                }),
                describe_tune([&session](const TuneOptions& options) {
                  return tune_products(session, options);
                }),
                describe_score([&session](const ScoreOptions& options) {
                  return score_text(session, options);
                })};
}

// A checkpoint has files of every rank that wrote it, all open while it is read; the usual limit of
// 1024 would end a resume after a few hundred ranks.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  // If the restart fails, the slow kernels still work.
  if (assay::train::cpu::better_kernels_after_restart()) {
    std::ignore = assay::base::restart_program(argv);
  }
  assay::cli::allow_many_files();
  return assay::cli::run_program(argc, argv, assay::cli::describe);
}
