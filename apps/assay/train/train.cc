// assay train, assay generate: start the trainer, which is a program of its own; a training run is
// an observed job like any other.
#include <fmt/format.h>
#include <unistd.h>

#include "assay-train/words.h"
#include "assay/verbs.h"
#include "base/error.h"
#include "base/process/exit_status.h"
#include "base/process/program.h"
#include "lineage/record/run.h"
#include "spec/load.h"

namespace assay::cli {
namespace {

base::Result<std::string> trainer() {
  if (const auto found = base::beside_own_program("assay-train", {"", "../libexec"})) {
    return found->string();
  }
  return base::fail(base::unfit_error("assay-train", "is not installed beside assay",
                                      "build it: cmake --build build"));
}

void add_flags(const Session& session, std::vector<std::string>& words) {
  if (session.json) words.emplace_back("--json");
  if (session.quiet) words.emplace_back("--quiet");
}

base::Result<base::ExitCode> train(const Session& session, const TrainWords& words) {
  // A mistake in the job is told before anything is recorded.
  ASSAY_TRY_VOID(spec::load(words.job, {.overrides = words.sets}));
  ASSAY_TRY(std::string program, trainer());
  lineage::RunRequest request;
  request.words = {std::move(program), "train"};
  const std::vector<std::string> typed = words.typed();
  request.words.insert(request.words.end(), typed.begin(), typed.end());
  add_flags(session, request.words);
  request.summary = !session.quiet && ::isatty(STDERR_FILENO) == 1;
  ASSAY_TRY(const collect::Kept kept, lineage::run_command(request));
  if (kept.wait_status) base::exit_like(*kept.wait_status);
  ::_exit(kept.collector_lost ? static_cast<int>(base::ExitCode::kUnfit) : kept.collector_status);
}

base::Result<base::ExitCode> generate(const Session& session, const GenerateWords& words) {
  ASSAY_TRY(const std::string program, trainer());
  std::vector<std::string> all = {program, "generate"};
  const std::vector<std::string> typed = words.typed();
  all.insert(all.end(), typed.begin(), typed.end());
  add_flags(session, all);
  return base::fail(base::replace_process(all));
}

}  // namespace

Verb train_verb(const Session& session) {
  return describe_train([&session](const TrainWords& words) { return train(session, words); });
}

Verb generate_verb(const Session& session) {
  return describe_generate(
      [&session](const GenerateWords& words) { return generate(session, words); });
}

}  // namespace assay::cli
