// assay train, assay generate: start the trainer, which is a program of its own; a training run is
// an observed job like any other.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "assay-train/words.h"
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
  if (kept.wait_status) collect::exit_like(*kept.wait_status);
  ::_exit(kept.collector_lost ? static_cast<int>(base::ExitCode::kUnfit) : kept.collector_status);
}

base::Result<base::ExitCode> generate(const Session& session, const GenerateWords& words) {
  ASSAY_TRY(const std::string program, trainer());
  std::vector<std::string> all = {program, "generate"};
  const std::vector<std::string> typed = words.typed();
  all.insert(all.end(), typed.begin(), typed.end());
  add_flags(session, all);
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  return base::fail(base::system_error(program, "cannot be started", errno));
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
