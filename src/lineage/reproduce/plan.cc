// Files are compared by content, so large ones are read.
#include "lineage/reproduce/plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/path_map.h"
#include "base/units.h"
#include "hash/file.h"
#include "lineage/export/common.h"
#include "lineage/redact/command.h"
#include "lineage/reproduce/environments.h"
#include "lineage/source/commit_files.h"
#include "store/run_dependencies.h"
#include "store/streams.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// Whether the file at `path` has this content; the size, if known, is compared first.
bool has_content(const std::string& path, const hash::Digest& digest, std::int64_t size) {
  std::error_code error;
  const auto found = fs::file_size(path, error);
  if (error || (size >= 0 && static_cast<std::int64_t>(found) != size)) return false;
  const auto hashed = hash::hash_file(path);
  return hashed && !hashed->changed && hashed->digest == digest;
}

// The repository's root if it contains the project, so that the whole checkout is copied; else the
// project's, which may contain the repository.
std::string root_of(const std::vector<store::RunRecord>& runs, const std::string& project_root) {
  for (const store::RunRecord& run : runs) {
    const auto& git = run.context.git;
    if (git && base::PathMap(git->root, "").inside(project_root)) return git->root;
  }
  return project_root;
}

ExternalInput check_input(const store::Input& input, const store::RunRecord& run,
                          const PlanInput& given, CommitFiles& commits) {
  ExternalInput external{
      .path = input.path, .blake3 = input.blake3, .size = input.size, .found = ""};
  if (const auto same = given.same_contents.find({run.id, input.path});
      same != given.same_contents.end()) {
    external.same_content = same->second;
  }
  std::error_code ignored;
  if (!input.blake3) {  // nothing to compare with
    const bool exists = fs::exists(input.path, ignored);
    external.state = exists ? InputState::kUnchanged : InputState::kMissing;
    if (exists) external.found = input.path;
    return external;
  }
  if (has_content(input.path, *input.blake3, input.size)) {
    external.state = InputState::kUnchanged;
    external.found = input.path;
    return external;
  }
  if (const auto places = given.places.find(*input.blake3); places != given.places.end()) {
    for (const std::string& place : places->second) {
      if (place == input.path || !has_content(place, *input.blake3, input.size)) continue;
      external.state = InputState::kElsewhere;
      external.found = place;
      return external;
    }
  }
  if (given.archived) {
    if (const auto kept = given.archived(*input.blake3)) {
      external.state = InputState::kArchived;
      external.found = *kept;
      return external;
    }
  }
  if (run.context.git && commits.has(*run.context.git, input.path)) {
    external.state = InputState::kInGit;
    return external;
  }
  external.state = fs::exists(input.path, ignored) ? InputState::kChanged : InputState::kMissing;
  return external;
}

// Variables whose values were redacted.
std::vector<std::string> secrets_of(const store::RunRecord& run) {
  std::vector<std::string> names;
  for (const auto& [name, value] : run.context.environment) {
    if (is_redacted(value)) names.push_back(name);
  }
  return names;
}

void add_obstacles(ReproductionPlan& plan, const PlannedStage& stage, const base::PathMap& map,
                   const PlanInput& given) {
  const std::string title = fmt::format("run {} ({})", stage.run.id, title_of(stage.run));
  if (store::read_a_pipe(stage.run)) {
    plan.obstacles.push_back(
        {title + " read a pipe as its standard input, and what came through it was not recorded"});
  }
  for (const ExternalInput& external : stage.externals) {
    // A changed file outside the copy would be read as it is.
    const bool outside = !map.inside(external.path);
    const bool usable = external.state == InputState::kUnchanged ||
                        (!outside && (external.state == InputState::kElsewhere ||
                                      external.state == InputState::kArchived ||
                                      external.state == InputState::kInGit));
    if (usable) continue;
    plan.obstacles.push_back({fmt::format("{} needs {}, which is {} here", title, external.path,
                                          to_text(external.state))});
  }
  if (stage.redacted_command) {
    plan.obstacles.push_back({title + " has a secret in its command, which was redacted"});
  }
  for (const std::string& name : stage.secrets) {
    if (!given.environment.contains(name)) {
      plan.notes.push_back(
          fmt::format("{} ran with a secret in {}, which is not set here", title, name));
    }
  }
  for (const std::string& path : stage.outside) {
    plan.obstacles.push_back(
        {fmt::format("{} writes {}, outside the project, and would write it again", title, path),
         true});
  }
}

void add_source_notes(ReproductionPlan& plan, const store::RunRecord& run) {
  const auto& git = run.context.git;
  if (!git) return;
  for (const std::string& one : git->left_out) {
    plan.notes.push_back(fmt::format("run {}: the stored diff does not contain {}", run.id, one));
  }
}

void add_network_note(ReproductionPlan& plan, const store::RunRecord& run) {
  std::vector<std::string> used;
  for (const store::PathFact& fact : run.facts) {
    if (fact.kind == store::PathFact::Kind::kNetwork) used.push_back(fact.path);
  }
  if (used.empty()) return;
  plan.notes.push_back(
      fmt::format("run {}: it used the network ({}{}); the data it received was not recorded",
                  run.id, used.front(), used.size() > 1 ? ", …" : ""));
}

// The files that stages have produced in the copy so far.
class ProducedFiles {
 public:
  void add(const store::Output& output) {
    if (output.status == store::OutputStatus::kRenamed) files_.erase(output.from);
    if (output.status == store::OutputStatus::kDeleted) {
      files_.erase(output.path);
    } else {
      files_[output.path] = output.blake3;
    }
  }
  // Whether this content is at this path; if one of the two is not known, the path decides.
  [[nodiscard]] bool contains(const store::Input& input) const {
    const auto found = files_.find(input.path);
    if (found == files_.end()) return false;
    return !input.blake3 || !found->second || *input.blake3 == *found->second;
  }

 private:
  std::map<std::string, std::optional<hash::Digest>> files_;
};

// Which standard streams are results, and which are logs that several stages share.
class ComparedStreams {
 public:
  explicit ComparedStreams(const PlanInput& given)
      : artifact_(given.artifact_path, given.artifact) {
    for (const store::RunRecord& run : given.runs) {
      for (const store::Input& input : store::dependencies_of(run)) {
        needed_.insert({input.path, input.blake3});
      }
      for (const store::Output& output : run.outputs) ++writers_[output.path];
    }
  }
  [[nodiscard]] bool contains(const store::Output& output, const ProducedFiles& produced) const {
    const File file{output.path, output.blake3};
    if (file == artifact_ || needed_.contains(file)) return true;
    if (output.before) return produced.contains({output.path, output.before, -1});
    return writers_.at(output.path) == 1;
  }

 private:
  using File = std::pair<std::string, std::optional<hash::Digest>>;
  File artifact_;
  std::set<File> needed_;
  std::map<std::string, int> writers_;
};

}  // namespace

std::string_view to_text(InputState state) {
  switch (state) {
    case InputState::kMade:
      return "made by an earlier stage";
    case InputState::kInGit:
      return "in git";
    case InputState::kUnchanged:
      return "unchanged";
    case InputState::kElsewhere:
      return "elsewhere";
    case InputState::kArchived:
      return "archived";
    case InputState::kChanged:
      return "changed";
    case InputState::kMissing:
      return "missing";
  }
  return "";
}

ReproductionPlan make_plan(PlanInput given) {
  ReproductionPlan plan{.artifact_path = given.artifact_path,
                        .artifact = given.artifact,
                        .folder_files = std::move(given.folder_files),
                        .root = root_of(given.runs, given.project_root),
                        .stages = {},
                        .environments = {},
                        .differences = std::move(given.differences),
                        .obstacles = {},
                        .notes = {}};
  const base::PathMap map(plan.root, "");
  CommitFiles commits(given.environment);
  NeededEnvironments environments = needed_environments(given.runs, plan.root);
  plan.environments = std::move(environments.in_place);
  plan.notes = std::move(environments.notes);
  for (std::string& obstacle : environments.obstacles) {
    plan.obstacles.push_back({std::move(obstacle)});
  }
  plan.missing_environments = std::move(environments.missing);
  for (const MissingEnvironment& one : plan.missing_environments) {
    plan.obstacles.push_back(
        {.text = fmt::format(
             "the virtual environment {} is not here, and no recorded run makes "
             "it; --make-environments makes it, with {}",
             one.folder,
             base::counted(static_cast<std::int64_t>(one.packages.size()),
                           "package of the recorded version", "packages of the recorded versions")),
         .environment = true});
  }
  const ComparedStreams compared(given);
  ProducedFiles produced;
  for (store::RunRecord& run : given.runs) {
    PlannedStage stage;
    for (const store::Input& input : store::dependencies_of(run)) {
      if (produced.contains(input)) {
        stage.made_before.insert(input.path);
      } else {
        stage.externals.push_back(check_input(input, run, given, commits));
      }
    }
    const std::set<std::string> streams = store::stream_paths(run);
    for (const store::Output& output : run.outputs) {
      const bool stream = streams.contains(output.path);
      const bool outside = !map.inside(output.path);
      if (outside && !stream) stage.outside.push_back(output.path);
      if (stream && (outside || !compared.contains(output, produced))) {
        stage.streams.push_back(output.path);
        plan.notes.push_back(fmt::format(
            "run {}: its output went to {}, {}; it is shown, not compared", run.id, output.path,
            outside ? "outside the project" : "which other stages write to as well"));
      }
    }
    for (const store::Output& output : run.outputs) produced.add(output);
    stage.secrets = secrets_of(run);
    stage.redacted_command = std::any_of(run.command.begin(), run.command.end(),
                                         [](const std::string& word) { return is_redacted(word); });
    if (run.status != store::RunStatus::kDone) {
      plan.notes.push_back(fmt::format("run {}: it {}; what it left may be partial", run.id,
                                       run.status == store::RunStatus::kFailed
                                           ? "failed"
                                           : fmt::format("was {}", store::name_of(run.status))));
    }
    if (!run.complete) {
      plan.notes.push_back(fmt::format(
          "run {}: it was not recorded completely; see `assay show {}`", run.id, run.id));
    }
    add_source_notes(plan, run);
    add_network_note(plan, run);
    stage.run = std::move(run);
    add_obstacles(plan, stage, map, given);
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

base::Json to_json(const ReproductionPlan& plan) {
  base::Json stages = base::Json::array();
  for (const PlannedStage& stage : plan.stages) {
    base::Json externals = base::Json::array();
    for (const ExternalInput& one : stage.externals) {
      externals.push_back(
          {{"path", one.path},
           {"blake3", one.blake3 ? base::Json(one.blake3->hex()) : base::Json()},
           {"size", one.size < 0 ? base::Json() : base::Json(one.size)},
           {"state", to_text(one.state)},
           {"from", base::or_null(one.found)},
           {"same_content", one.same_content ? base::Json{{"run", one.same_content->run},
                                                          {"path", one.same_content->path}}
                                             : base::Json()}});
    }
    base::Json source;
    if (const auto& git = stage.run.context.git) {
      source = {{"remote", git->remote},          {"repository", git->root},
                {"commit", git->commit},          {"dirty", git->dirty},
                {"diff_bytes", git->diff.size()}, {"left_out", git->left_out}};
    }
    stages.push_back({{"run", stage.run.id},
                      {"name", title_of(stage.run)},
                      {"build", stage.run.build},
                      {"command", stage.run.command},
                      {"directory", stage.run.directory},
                      {"redirects", stage.run.redirects},
                      {"source", std::move(source)},
                      {"inputs", std::move(externals)},
                      {"made_before", stage.made_before},
                      {"outputs", stage.run.outputs.size()},
                      {"secrets", stage.secrets}});
  }
  base::Json differences = base::Json::array();
  for (const EnvironmentDifference& one : plan.differences) {
    differences.push_back({{"what", one.what}, {"recorded", one.recorded}, {"here", one.here}});
  }
  base::Json missing = base::Json::array();
  for (const MissingEnvironment& one : plan.missing_environments) {
    missing.push_back({{"folder", one.folder}, {"packages", one.packages}});
  }
  base::Json obstacles = base::Json::array();
  for (const Obstacle& one : plan.obstacles) obstacles.push_back(one.text);
  return {{"artifact",
           {{"path", plan.artifact_path},
            {"blake3", plan.artifact ? base::Json(plan.artifact->hex()) : base::Json()}}},
          {"root", plan.root},
          {"stages", std::move(stages)},
          {"environments", plan.environments},
          {"missing_environments", std::move(missing)},
          {"differences", std::move(differences)},
          {"obstacles", std::move(obstacles)},
          {"notes", plan.notes}};
}

}  // namespace assay::lineage
