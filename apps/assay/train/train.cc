// assay train, assay generate: start the trainer, a program of its own (apps/assay-train). Training
// is recorded like any other command that `assay run` runs.
#include <fmt/format.h>
#include <unistd.h>

#include "assay-train/options.h"
#include "assay/verbs.h"
#include "base/error.h"
#include "base/process/program.h"
#include "lineage/record/run.h"
#include "spec/load.h"

namespace assay::cli {
namespace {

base::Result<std::string> trainer() {
  if (const auto found = base::beside_own_program("assay-train", {"", "../lib/assay"})) {
    return found->string();
  }
  return base::fail(base::unfit_error("assay-train", "is not installed beside assay",
                                      "repeat make install, or make in a build tree"));
}

void add_common_flags(const Session& session, std::vector<std::string>& arguments) {
  if (session.json) arguments.emplace_back("--json");
  if (session.quiet) arguments.emplace_back("--quiet");
}

base::Result<base::ExitCode> train(const Session& session, const TrainOptions& options) {
  // Errors in the job are reported before anything is recorded.
  ASSAY_TRY_VOID(spec::load(
      options.job, {.overrides = options.sets, .ranks_from_layout = options.device == "cpu"}));
  ASSAY_TRY(std::string program, trainer());
  lineage::RunRequest request;
  request.command = {std::move(program), "train"};
  const std::vector<std::string> arguments = options.arguments();
  request.command.insert(request.command.end(), arguments.begin(), arguments.end());
  add_common_flags(session, request.command);
  if (!session.quiet && ::isatty(STDERR_FILENO) == 1) request.summary = lineage::Summary::kLine;
  ASSAY_TRY(const collect::KeeperResult result, lineage::run_command(request));
  collect::exit_like(result);
}

base::Result<base::ExitCode> generate(const Session& session, const GenerateOptions& options) {
  ASSAY_TRY(const std::string program, trainer());
  std::vector<std::string> all = {program, "generate"};
  const std::vector<std::string> arguments = options.arguments();
  all.insert(all.end(), arguments.begin(), arguments.end());
  add_common_flags(session, all);
  return base::fail(base::replace_process(all));
}

}  // namespace

Verb train_verb(const Session& session) {
  return describe_train(
      [&session](const TrainOptions& options) { return train(session, options); });
}

Verb generate_verb(const Session& session) {
  return describe_generate(
      [&session](const GenerateOptions& options) { return generate(session, options); });
}

}  // namespace assay::cli
