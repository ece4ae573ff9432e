// assay train, assay generate, assay score: start the trainer, a separate program
// (apps/assay-train). Training is recorded like any other command that `assay run` runs.
#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>

#include "assay-train/options.h"
#include "assay-train/training_job.h"
#include "assay/verbs.h"
#include "base/error.h"
#include "base/process/environment.h"
#include "base/process/program.h"
#include "lineage/record/run.h"

namespace assay::cli {
namespace {

base::Result<std::string> trainer() {
  if (const auto found = base::beside_own_program("assay-train", {"", "../lib/assay"})) {
    return found->string();
  }
  return base::fail(base::unfit_error("assay-train", "is not installed beside assay",
                                      "run make install again, or make in a build tree"));
}

void add_common_flags(const Session& session, std::vector<std::string>& arguments) {
  if (session.json) arguments.emplace_back("--json");
  if (session.quiet) arguments.emplace_back("--quiet");
}

// If a launcher started one `assay train` per rank, all of them record one run.
base::Result<std::optional<lineage::PartOf>> part_of(const TrainingJob& job) {
  ASSAY_TRY(const auto assignment, launcher_assignment(job));
  if (!assignment) return std::nullopt;
  const auto environment = base::Environment::from_current();
  std::string name = assignment->job.empty() ? "job" : assignment->job;
  // Slurm's job ids are unique, except that a requeued job keeps its id.
  if (const auto again = environment.get("SLURM_RESTART_COUNT")) name += fmt::format(".{}", *again);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  }
  constexpr std::size_t kMost = 100;
  const std::filesystem::path folder = std::filesystem::absolute(job.out) / "ranks";
  return lineage::PartOf{
      .rank = assignment->rank,
      .ranks = assignment->ranks,
      .folder = folder / (std::string(lineage::kPartFolderPrefix) + name.substr(0, kMost)),
      .may_be_old = assignment->source != control::LauncherKind::kSlurm};
}

base::Result<base::ExitCode> train(const Session& session, const TrainOptions& options) {
  // Errors in the job are reported before anything is recorded.
  ASSAY_TRY(const TrainingJob job, load_training_job(options));
  ASSAY_TRY(std::string program, trainer());
  lineage::RunRequest request;
  request.command = {std::move(program), "train"};
  const std::vector<std::string> arguments = options.arguments();
  request.command.insert(request.command.end(), arguments.begin(), arguments.end());
  add_common_flags(session, request.command);
  request.stops_when_killed = true;
  ASSAY_TRY(request.part_of, part_of(job));
  if (!session.quiet && ::isatty(STDERR_FILENO) == 1)
    request.summary = lineage::SummaryFormat::kLine;
  ASSAY_TRY(const collect::KeeperResult result, lineage::run_command(request));
  collect::exit_with_status(result);
}

// Runs the trainer's verb in this process: nothing is recorded.
base::Result<base::ExitCode> replace_with_trainer(const Session& session, const char* verb,
                                                  const std::vector<std::string>& arguments) {
  ASSAY_TRY(const std::string program, trainer());
  std::vector<std::string> all = {program, verb};
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
  return describe_generate([&session](const GenerateOptions& options) {
    return replace_with_trainer(session, "generate", options.arguments());
  });
}

Verb score_verb(const Session& session) {
  return describe_score([&session](const ScoreOptions& options) {
    return replace_with_trainer(session, "score", options.arguments());
  });
}

}  // namespace assay::cli
