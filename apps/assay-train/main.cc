// The program `assay-train`: what needs matrix libraries and devices. `assay train` and `assay
// generate` start it; started by itself it does the same, unobserved.
#include <unistd.h>

#include "assay-train/verbs.h"
#include "cli/program.h"
#include "train/cpu/blas_kernels.h"

namespace assay::cli {
namespace {

void describe(const Session& session, Verb& root) {
  root = {"assay-train", "The trainer of assay; `assay train` runs it as an observed job.", {}};
  root.verbs = {
      describe_train([&session](const TrainWords& words) { return train_model(session, words); }),
      describe_generate(
          [&session](const GenerateWords& words) { return generate_text(session, words); })};
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  // If that does not work, the slow kernels do.
  if (assay::train::cpu::better_kernels_after_restart()) ::execv("/proc/self/exe", argv);
  return assay::cli::run_program(argc, argv, assay::cli::describe);
}
