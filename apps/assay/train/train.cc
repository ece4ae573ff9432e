// assay train, assay generate: start the trainer, a program of its own (apps/assay-train). Training
// is recorded like any other command that `assay run` runs.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "assay-train/options.h"
#include "assay/verbs.h"
#include "base/error.h"
#include "lineage/record/run.h"
#include "spec/load.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

base::Result<std::string> trainer() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder : {program.parent_path(), program.parent_path() / ".." / "libexec"}) {
    fs::path candidate = folder / "assay-train";
    if (::access(candidate.c_str(), X_OK) == 0) return candidate.string();
  }
  return base::fail(base::unfit_error("assay-train", "is not installed beside assay",
                                      "build it: cmake --build build"));
}

void add_common_flags(const Session& session, std::vector<std::string>& arguments) {
  if (session.json) arguments.emplace_back("--json");
  if (session.quiet) arguments.emplace_back("--quiet");
}

base::Result<base::ExitCode> train(const Session& session, const TrainOptions& options) {
  // Errors in the job are reported before anything is recorded.
  ASSAY_TRY_VOID(spec::load(options.job, {.overrides = options.sets}));
  ASSAY_TRY(std::string program, trainer());
  lineage::RunRequest request;
  request.words = {std::move(program), "train"};
  const std::vector<std::string> arguments = options.arguments();
  request.words.insert(request.words.end(), arguments.begin(), arguments.end());
  add_common_flags(session, request.words);
  request.summary = !session.quiet && ::isatty(STDERR_FILENO) == 1;
  ASSAY_TRY(const collect::Kept kept, lineage::run_command(request));
  if (kept.wait_status) collect::end_like(*kept.wait_status);
  ::_exit(kept.collector_lost ? static_cast<int>(base::ExitCode::kUnfit) : kept.collector_status);
}

base::Result<base::ExitCode> generate(const Session& session, const GenerateOptions& options) {
  ASSAY_TRY(const std::string program, trainer());
  std::vector<std::string> all = {program, "generate"};
  const std::vector<std::string> arguments = options.arguments();
  all.insert(all.end(), arguments.begin(), arguments.end());
  add_common_flags(session, all);
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  return base::fail(base::system_error(program, "cannot be started", errno));
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
