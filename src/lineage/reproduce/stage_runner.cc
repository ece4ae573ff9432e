#include "lineage/reproduce/stage_runner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/clock.h"
#include "base/process/environment.h"
#include "base/process/exit_status.h"
#include "base/process/process.h"
#include "base/unique_fd.h"
#include "hash/file.h"
#include "lineage/export/common.h"
#include "lineage/redact/command.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// The modification time given to existing files that a stage is expected to write, so that a write
// is noticed.
constexpr timespec kLongAgo{.tv_sec = 1, .tv_nsec = 0};

std::optional<hash::Digest> digest_at(const fs::path& path) {
  const auto hashed = hash::hash_file(path);
  return hashed ? std::optional(hashed->digest) : std::nullopt;
}

std::vector<std::string> entries(const std::map<std::string, std::string>& environment) {
  return base::Environment::from_values(environment).entries();
}

// Outputs, except files whose earlier content is read as well; and environments, which are linked.
std::set<std::string> made_by_stages(const ReproductionPlan& plan) {
  std::set<std::string> made;
  for (const PlannedStage& stage : plan.stages) {
    for (const store::Output& output : stage.run.outputs) made.insert(output.path);
  }
  for (const PlannedStage& stage : plan.stages) {
    for (const ExternalInput& external : stage.externals) made.erase(external.path);
  }
  for (const std::string& environment : plan.environments) made.insert(environment + "/");
  return made;
}

base::Result<void> place(const ExternalInput& input, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  fs::remove(to, error);  // a symbolic link would be followed
  fs::copy_file(input.found, to, fs::copy_options::overwrite_existing, error);
  // Archived files are read-only, but a stage may change its input in place.
  if (!error && input.state == InputState::kArchived) {
    fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
  }
  if (error) return base::fail(base::failed_error(to.string(), "cannot copy: " + error.message()));
  if (input.blake3 && digest_at(to) != input.blake3) {
    return base::fail(base::failed_error(input.found, "changed while it was copied"));
  }
  return {};
}

// Creates the folder and those above it, up to one that the stage makes itself.
void create_folders(const fs::path& folder, const std::set<std::string>& made_by_stage) {
  std::vector<fs::path> missing;
  std::error_code ignored;
  for (fs::path at = folder; at.has_relative_path() && !fs::exists(at, ignored);
       at = at.parent_path()) {
    missing.push_back(at);
  }
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    if (made_by_stage.contains(at->string())) return;
    fs::create_directory(*at, ignored);
  }
}

// Two descriptors of one file (`> log 2>&1`) share it, or one would write over the other. Outputs
// are opened here, as `run @N` does, so that one that cannot be opened is left out; `progress` gets
// a line.
std::vector<base::UniqueFd> add_redirections(
    const std::vector<Redirect>& redirects, std::vector<base::Redirection>& redirections,
    const std::function<void(std::string_view line)>& progress) {
  std::vector<base::UniqueFd> opened;
  std::map<std::string, int> outputs;  // -1: cannot be opened
  for (const Redirect& one : redirects) {
    if (!one.writes) {
      redirections.push_back(
          {.descriptor = one.descriptor, .path = one.path, .flags = open_flags(one)});
      continue;
    }
    const auto [at, first] = outputs.emplace(one.path, -1);
    if (first) {
      if (auto file = open_output(one)) {
        opened.push_back(*std::move(file));
        at->second = opened.back().get();
      } else {
        progress(file.error().line());
      }
    }
    if (at->second >= 0) {
      redirections.push_back({.descriptor = one.descriptor, .from = at->second});
    }
  }
  return opened;
}

// Runs a recorded command again: the recorded arguments, no shell. If `redirects` does not name
// them, standard input is empty and both outputs go to `plan_options.output_fd`. Returns a shell's
// exit code: 127 when the program does not exist, 126 when it cannot be run, 128+N for signal N.
int run_stage_command(const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment, const fs::path& directory,
                      const std::vector<Redirect>& redirects, const RunPlanOptions& plan_options) {
  const int output_fd = plan_options.output_fd;
  // In this process's group and with its signals: Ctrl-C ends the stage, as it would a command.
  base::ProcessOptions options{.arguments = arguments,
                               .environment = environment,
                               .directory = directory,
                               .redirections = {base::from_null(STDIN_FILENO),
                                                {.descriptor = STDOUT_FILENO, .from = output_fd},
                                                {.descriptor = STDERR_FILENO, .from = output_fd}},
                               .own_group = false,
                               .default_signals = std::nullopt};
  const std::vector<base::UniqueFd> opened =
      add_redirections(redirects, options.redirections, plan_options.progress);
  auto process = base::PreparedProcess(std::move(options)).start();
  if (!process) return base::shell_exit_code_of_failed_start(process.error());
  return base::shell_exit_code(process->wait().wait_status);
}

}  // namespace

StageRunner::StageRunner(const ReproductionPlan& plan, const RunPlanOptions& options,
                         const fs::path& folder)
    : options_(options),
      environments_(plan.environments),
      map_(plan.root, folder.string()),
      isolation_(plan.root, folder.string(), plan.environments, options.own_mounts),
      source_(map_, made_by_stages(plan), entries(options.environment)) {}

std::string StageRunner::environment_text() const {
  if (!isolation_.protects()) {
    return "is copied: this machine does not let stages have mounts of their own";
  }
  return isolation_.layers()
             ? "is used in place: what a stage writes there is kept apart, and removed at the end"
             : "is used in place, and stages cannot write to it";
}

base::Result<StageResult> StageRunner::run(const PlannedStage& stage) {
  const store::RunRecord& run = stage.run;
  if (run.context.git) ASSAY_TRY_VOID(source_.check_out(*run.context.git, made_));
  ASSAY_TRY_VOID(place_inputs(stage));
  ASSAY_TRY_VOID(place_environments());
  prepare_outputs(run);
  const auto before = files_below(map_.to());
  std::vector<std::string> command;
  for (const std::string& word : run.command) command.push_back(map_.argument(word));

  StageResult result{.run = run.id, .exit_code = 0, .duration_s = 0, .outputs = {}};
  const base::Stopwatch watch;
  ASSAY_TRY(result.exit_code, isolation_.run([&] {
    return run_stage_command(command, environment_of(run), map_.path(run.directory),
                             redirects_of_copy(run), options_);
  }));
  result.duration_s = watch.elapsed().count();
  if (result.exit_code == run.exit_code.value_or(0)) compare(stage, before, result);
  return result;
}

base::Result<void> StageRunner::place_inputs(const PlannedStage& stage) {
  for (const ExternalInput& external : stage.externals) {
    const fs::path target = map_.path(external.path);
    if (!map_.inside(external.path)) continue;  // read in place; the plan has checked it
    if (external.blake3 && digest_at(target) == external.blake3) continue;
    if (!external.blake3 && fs::exists(target)) continue;
    if (external.found.empty()) {
      return base::fail(base::failed_error(external.path, "is not in the source as recorded"));
    }
    ASSAY_TRY_VOID(place(external, target));
  }
  place_links(stage);
  return {};
}

// Inputs are recorded by their real paths, but commands may use symbolic links. In git checkouts
// git restores them.
void StageRunner::place_links(const PlannedStage& stage) {
  constexpr int kMostEntries = 200'000;
  if (stage.run.context.git || stage.externals.empty()) return;
  std::error_code error;
  int seen = 0;
  for (fs::recursive_directory_iterator at(map_.from(), error), end; !error && at != end;
       at.increment(error)) {
    if (++seen > kMostEntries) return;
    const std::string name = at->path().filename().string();
    if (name == ".git" || name == ".assay") at.disable_recursion_pending();
    std::error_code broken;
    if (!at->is_symlink(broken)) continue;
    const fs::path real = fs::canonical(at->path(), broken);
    if (broken) continue;
    const base::PathMap below(real.string(), "");
    const bool needed =
        std::any_of(stage.externals.begin(), stage.externals.end(),
                    [&](const ExternalInput& external) { return below.inside(external.path); });
    const fs::path copy = map_.path(at->path().string());
    if (!needed || fs::exists(fs::symlink_status(copy, broken))) continue;
    fs::create_directories(copy.parent_path(), broken);
    fs::create_symlink(map_.path(fs::read_symlink(at->path(), broken).string()), copy, broken);
  }
}

base::Result<void> StageRunner::place_environments() {
  for (const std::string& environment : environments_) {
    const fs::path copy = map_.path(environment);
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(copy, ignored))) continue;
    if (!isolation_.protects()) {
      ASSAY_TRY_VOID(copy_environment(environment, map_));
      continue;
    }
    fs::create_directories(copy.parent_path(), ignored);
    fs::create_directory_symlink(environment, copy, ignored);
  }
  return {};
}

// Existing files must be distinguishable from what the stage writes. Folders of outputs are
// created, unless the stage makes them: git does not keep empty ones.
void StageRunner::prepare_outputs(const store::RunRecord& run) {
  std::set<std::string> read;
  for (const store::Input& input : run.inputs) read.insert(input.path);
  std::error_code ignored;
  fs::create_directories(map_.path(run.directory), ignored);
  std::set<std::string> made;
  for (const store::PathFact& fact : run.facts) {
    if (fact.kind == store::PathFact::Kind::kMadeFolder) made.insert(map_.path(fact.path));
  }
  for (const store::Output& output : run.outputs) {
    if (!map_.inside(output.path)) continue;
    const fs::path path = map_.path(output.path);
    create_folders(path.parent_path(), made);
    if (output.status == store::OutputStatus::kCreated && !read.contains(output.path)) {
      fs::remove(path, ignored);
    }
    const std::array<timespec, 2> times = {kLongAgo, kLongAgo};
    ::utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
  }
}

std::vector<std::string> StageRunner::environment_of(const store::RunRecord& run) const {
  if (run.context.environment.empty()) return entries(options_.environment);
  std::vector<std::string> list;
  for (const auto& [name, value] : run.context.environment) {
    if (!is_redacted(value)) {
      list.push_back(name + "=" + map_.argument(value));
    } else if (const auto here = options_.environment.find(name);
               here != options_.environment.end()) {
      list.push_back(name + "=" + here->second);
    }
  }
  return list;
}

// Outputs outside the copy are not opened: they go to output_fd.
std::vector<Redirect> StageRunner::redirects_of_copy(const store::RunRecord& run) const {
  std::vector<Redirect> redirects = parse_redirects(run.redirects);
  std::erase_if(redirects,
                [this](const Redirect& one) { return one.writes && !map_.inside(one.path); });
  for (Redirect& one : redirects) {
    one.path = map_.path(one.path);
    one.is_log = true;  // an output that is missing shows in the comparison
  }
  return redirects;
}

void StageRunner::compare(const PlannedStage& stage, const Files& before, StageResult& result) {
  const store::RunRecord& run = stage.run;
  std::set<std::string> expected;
  for (const store::Output& output : run.outputs) {
    const std::string path = map_.path(output.path);
    expected.insert(path);
    if (!output.from.empty()) expected.insert(map_.path(output.from));
    if (exists_after(output) && map_.inside(output.path)) made_.insert(path);
    if (std::count(stage.streams.begin(), stage.streams.end(), output.path) > 0) continue;
    result.outputs.push_back(compare_output(output, path, before));
  }
  // Logs, too, are where they were.
  for (const std::string& stream : store::stream_paths(run)) expected.insert(map_.path(stream));
  for (const auto& [path, stamp] : files_below(map_.to())) {
    const auto was = before.find(path);
    if (expected.contains(path) || (was != before.end() && was->second == stamp)) continue;
    result.outputs.push_back({map_.from() + path.substr(map_.to().size()), OutputMatch::kExtra,
                              std::nullopt, digest_at(path)});
  }
}

OutputComparison StageRunner::compare_output(const store::Output& output, const std::string& path,
                                             const Files& before) {
  OutputComparison comparison{output.path, OutputMatch::kUnknown, output.blake3, std::nullopt};
  const auto stamp = stamp_of(path);
  if (output.status == store::OutputStatus::kDeleted) {
    comparison.match = stamp ? OutputMatch::kDifferent : OutputMatch::kIdentical;
    return comparison;
  }
  const auto was = before.find(path);
  const bool written = stamp && (was == before.end() || was->second != *stamp);
  if (!written) {
    comparison.match = OutputMatch::kMissing;
    return comparison;
  }
  comparison.now = digest_at(path);
  if (!output.blake3 || !comparison.now) return comparison;
  comparison.match =
      comparison.now == output.blake3 ? OutputMatch::kIdentical : OutputMatch::kDifferent;
  return comparison;
}

std::optional<StageRunner::Stamp> StageRunner::stamp_of(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return std::nullopt;
  return Stamp{status.st_ino, status.st_size, base::nanoseconds(status.st_mtim)};
}

// Every file of the copy, except those of git and Python's bytecode.
StageRunner::Files StageRunner::files_below(const fs::path& root) {
  Files files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(root, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name == ".git" || name == ".assay" || name == "__pycache__") {
      at.disable_recursion_pending();
      continue;
    }
    if (const auto stamp = stamp_of(at->path())) files.emplace(at->path().string(), *stamp);
  }
  return files;
}

}  // namespace assay::lineage
