// assay reproduce HASH|PATH [--run]: the plan for reproducing an artifact; with --run, carries it
// out in a fresh copy and compares every output.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assay/project.h"
#include "assay/verbs.h"
#include "base/log.h"
#include "base/path_map.h"
#include "base/process/environment.h"
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "lineage/export/common.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/resolve.h"
#include "lineage/reproduce/choose_runs.h"
#include "lineage/reproduce/plan.h"
#include "lineage/reproduce/run_plan.h"

namespace assay::cli {
namespace {

using base::ExitCode;
using base::Result;

struct ReproduceOptions {
  std::string what;
  std::string directory;
  bool run = false;
  bool allow_outside = false;
  bool make_environments = false;
};

std::string short_hash(const std::optional<hash::Digest>& digest) {
  return digest ? digest->hex().substr(0, 12) : "";
}

std::string source_text(const store::RunRecord& run) {
  const auto& git = run.context.git;
  if (!git) return "no git: inputs are copied";
  const std::string where = git->remote.empty() ? git->root : git->remote;
  const std::string commit = git->commit.empty() ? "no commit" : git->commit.substr(0, 12);
  if (!git->dirty) return fmt::format("{} at {}", where, commit);
  return fmt::format("{} at {} + diff of {}", where, commit,
                     to_text(base::Bytes(static_cast<std::int64_t>(git->diff.size()))));
}

// With the redirections of the shell.
std::string shown_command(const store::RunRecord& run) {
  std::string text = lineage::command_text(run);
  for (const std::string& redirect : run.redirects) text += " " + redirect;
  return text;
}

std::string here_text(const lineage::ExternalInput& one) {
  std::string text(to_text(one.state));
  if (one.same_content)
    text += fmt::format(", same content as {} of run {}", one.same_content->path,
                        one.same_content->run);
  return text;
}

void print_plan(const Session& session, const lineage::ReproductionPlan& plan) {
  session.print(
      fmt::format("{} ({})\n\n", base::printable(plan.artifact_path), short_hash(plan.artifact)));
  base::Table stages({"stage", "run", "kind", "command", "source"});
  int number = 0;
  for (const lineage::PlannedStage& stage : plan.stages) {
    stages.row({std::to_string(++number), std::to_string(stage.run.id),
                stage.run.build ? "build" : "run", shown_command(stage.run),
                source_text(stage.run)});
  }
  session.print(stages);

  base::Table inputs({"needed", "by run", "size", "blake3", "here", "copied from"});
  for (const lineage::PlannedStage& stage : plan.stages) {
    for (const lineage::ExternalInput& one : stage.externals) {
      inputs.row({one.path, std::to_string(stage.run.id),
                  one.size < 0 ? "" : to_text(base::Bytes(one.size)), short_hash(one.blake3),
                  here_text(one), one.found == one.path ? "" : one.found});
    }
  }
  if (!inputs.empty()) {
    session.print("\n");
    session.print(inputs);
  }
  base::Table differences({"different here", "recorded", "here"});
  for (const lineage::EnvironmentDifference& one : plan.differences) {
    differences.row({one.what, one.recorded, one.here});
  }
  session.print("\n");
  if (differences.empty())
    session.print("system, CPU, GPUs, driver and packages are as recorded\n");
  if (!differences.empty()) session.print(differences);
  for (const std::string& note : plan.notes) session.print("note: " + base::printable(note) + "\n");
  for (const lineage::Obstacle& one : plan.obstacles) {
    session.print("cannot run: " + base::printable(one.text) + "\n");
  }
}

// "model.bin is different (recorded …, now …)", or how many files of a folder are.
std::string difference_text(const lineage::ReproductionPlan& plan,
                            const lineage::Reproduction& done) {
  const std::string artifact = base::printable(plan.artifact_path);
  if (plan.artifact) {
    const bool missing = done.artifact && done.artifact->match == lineage::OutputMatch::kMissing;
    if (missing) return artifact + " was not written";
    return fmt::format("{} is different (recorded {}, now {})", artifact, short_hash(plan.artifact),
                       short_hash(done.artifact ? done.artifact->now : std::nullopt));
  }
  int all = 0;
  int different = 0;
  for (const lineage::OutputComparison& one : lineage::compared_files(plan, done.stages)) {
    ++all;
    if (one.match == lineage::OutputMatch::kDifferent ||
        one.match == lineage::OutputMatch::kMissing) {
      ++different;
    }
  }
  return fmt::format("{} of {} files in {} differ", different, all, artifact);
}

// Files of a stage that came out alike in the same way, in one folder at the top of the project.
struct AlikeFiles {
  lineage::OutputMatch match = lineage::OutputMatch::kUnknown;
  store::RunId run = 0;
  std::string folder;
  std::vector<const lineage::OutputComparison*> files;
};

// "/p/.venv" for "/p/.venv/lib/x.py" in the project /p; "/p" for a file at its top.
std::string top_folder(const std::string& path, const std::string& root) {
  const std::string_view below = base::PathMap(root, "").inside(path) && path.size() > root.size()
                                     ? std::string_view(path).substr(root.size() + 1)
                                     : std::string_view(path).substr(1);
  const std::size_t slash = below.find('/');
  const std::size_t begin = path.size() - below.size();
  return slash == below.npos ? path.substr(0, begin - 1) : path.substr(0, begin + slash);
}

// Outputs other than the artifact that are worth a remark. A folder of many is one line: a stage
// that makes an environment leaves thousands that no machine makes alike.
base::Table other_outputs(const lineage::ReproductionPlan& plan,
                          const lineage::Reproduction& done) {
  constexpr std::size_t kListed = 3;
  std::vector<AlikeFiles> groups;
  for (const lineage::StageResult& stage : done.stages) {
    const std::size_t first = groups.size();
    std::map<std::pair<lineage::OutputMatch, std::string>, std::size_t> places;
    for (const lineage::OutputComparison& one : stage.outputs) {
      if (one.path == plan.artifact_path || one.match == lineage::OutputMatch::kIdentical) continue;
      const std::string folder = top_folder(one.path, plan.root);
      const auto [place, is_new] = places.try_emplace({one.match, folder}, first + places.size());
      if (is_new) groups.push_back({one.match, stage.run, folder, {}});
      groups[place->second].files.push_back(&one);
    }
  }
  base::Table others({plan.artifact ? "also" : "verdict", "run", "recorded", "now", "path"});
  for (const AlikeFiles& group : groups) {
    const std::string word(to_text(group.match));
    const std::string run = std::to_string(group.run);
    if (group.files.size() > kListed) {
      others.row({word, run, "", "",
                  fmt::format("{} in {}/",
                              base::counted(static_cast<std::int64_t>(group.files.size()), "file"),
                              group.folder)});
      continue;
    }
    for (const lineage::OutputComparison* one : group.files) {
      others.row({word, run, short_hash(one->recorded), short_hash(one->now), one->path});
    }
  }
  return others;
}

// The artifact decides, and the last line says what.
void print_verdicts(const Session& session, const lineage::ReproductionPlan& plan,
                    const lineage::Reproduction& done, bool removed) {
  if (const base::Table others = other_outputs(plan, done); !others.empty()) {
    session.print(others);
    session.print("\n");
  }
  if (removed) session.print("the copy was removed; --directory DIR keeps it\n");
  if (!done.directory.empty()) {
    session.print(fmt::format("the copy: {}\n", base::printable(done.directory.string())));
  }
  switch (done.exit_code()) {
    case ExitCode::kYes:
      session.print(fmt::format(
          "reproduced: {} is identical{}\n", base::printable(plan.artifact_path),
          plan.artifact ? fmt::format(" ({})", short_hash(plan.artifact)) : ", every file of it"));
      break;
    case ExitCode::kNo:
      session.print("not reproduced: " + difference_text(plan, done) + "\n");
      break;
    default:
      session.print(fmt::format(
          "undecided: {}\n",
          base::printable(done.undecided.empty() ? "contents were not recorded" : done.undecided)));
  }
}

Result<ExitCode> reproduce(const Session& session, const ReproduceOptions& options) {
  ASSAY_TRY(store::Store store, open_store());
  ASSAY_TRY(const std::filesystem::path here, working_directory());
  ASSAY_TRY(lineage::Artifact artifact, lineage::resolve_artifact(store, options.what, here));
  ASSAY_TRY(const DescribedFile described, describe_file(store, artifact));
  const auto environment = base::Environment::from_current().values();
  ASSAY_TRY(lineage::ReproductionPlan plan,
            lineage::plan_reproduction(store, artifact, environment));
  if (options.run && options.make_environments && !plan.missing_environments.empty()) {
    for (const lineage::MissingEnvironment& one : plan.missing_environments) {
      if (!session.quiet) {
        base::write_stderr(fmt::format("making {} with {}\n", base::printable(one.folder),
                                       fmt::join(one.packages, " ")));
      }
      ASSAY_TRY_VOID(lineage::make_environment(one));
    }
    ASSAY_TRY(plan, lineage::plan_reproduction(store, artifact, environment));
  }
  base::Json document = to_json(plan);
  document["on_disk"] = to_json(described.state);
  if (!described.text.empty()) {
    session.print(fmt::format("{}: {}\n", base::printable(options.what), described.text));
  }
  if (!options.run) {
    session.print_json(document);
    print_plan(session, plan);
    const bool allowed =
        std::all_of(plan.obstacles.begin(), plan.obstacles.end(),
                    [](const lineage::Obstacle& one) { return one.outside || one.environment; });
    const bool outside = std::any_of(plan.obstacles.begin(), plan.obstacles.end(),
                                     [](const lineage::Obstacle& one) { return one.outside; });
    if (allowed) {
      session.next(fmt::format("assay reproduce {} --run{}{}", base::path_argument(options.what),
                               plan.missing_environments.empty() ? "" : " --make-environments",
                               outside ? " --allow-outside" : ""));
    }
    return ExitCode::kYes;
  }
  // Standard output is reserved for the verdict.
  base::UniqueFd silent;
  if (session.quiet) silent.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ASSAY_TRY(lineage::Reproduction done,
            lineage::run_plan(plan, {.directory = options.directory,
                                     .environment = environment,
                                     .allow_outside = options.allow_outside,
                                     .output_fd = session.quiet ? silent.get() : STDERR_FILENO,
                                     .progress = [&session](std::string_view line) {
                                       if (!session.quiet) {
                                         base::write_stderr(base::printable(line) + "\n");
                                       }
                                     }}));
  // Where the project no longer has the artifact as it was, the copy is the only place that does.
  const bool wanted =
      !options.directory.empty() || described.state.kind != lineage::FileState::Kind::kUnchanged;
  const bool removed = !wanted && lineage::remove_if_identical(done);
  document["reproduction"] = to_json(done);
  document["verdict"] = done.exit_code() == ExitCode::kYes  ? "identical"
                        : done.exit_code() == ExitCode::kNo ? "different"
                                                            : "undecided";
  session.print_json(document);
  print_verdicts(session, plan, done, removed);
  return done.exit_code();
}

}  // namespace

Verb reproduce_verb(const Session& session) {
  const auto options = std::make_shared<ReproduceOptions>();
  return {.name = "reproduce",
          .description = "plan how to reproduce an artifact, or do it and compare",
          .examples = {"assay reproduce model.bin", "assay reproduce model.bin --json"},
          .arguments = {{"ARTIFACT",
                         "a path, the first digits of a hash, or a label",
                         &options->what,
                         true,
                         {},
                         true}},
          .options = {{"--run", "reproduce it in a fresh folder and compare", &options->run},
                      {"--directory",
                       "the fresh folder, which is kept; default: a temporary one",
                       &options->directory,
                       {},
                       "DIR",
                       true},
                      {"--make-environments",
                       "with --run: make virtual environments that are not here, with the recorded "
                       "versions of their packages",
                       &options->make_environments},
                      {"--allow-outside", "let stages write their outputs outside the project",
                       &options->allow_outside}},
          .action = [&session, options] { return reproduce(session, *options); }};
}

}  // namespace assay::cli
