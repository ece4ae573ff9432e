// See reproduce.h. Files are judged by their content; a large one costs a reading.
#include "lineage/reproduce/reproduce.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/process/environment.h"
#include "hash/file.h"
#include "lineage/export/parts.h"
#include "lineage/redact/environment.h"
#include "lineage/reproduce/path_map.h"
#include "lineage/source/git_program.h"
#include "store/needs.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// Whether the file at `path` has this content; the size, if known, is looked at first.
bool has_content(const std::string& path, const hash::Digest& digest, std::int64_t size) {
  std::error_code error;
  const auto found = fs::file_size(path, error);
  if (error || (size >= 0 && static_cast<std::int64_t>(found) != size)) return false;
  const auto hashed = hash::hash_file(path);
  return hashed && !hashed->changed && hashed->digest == digest;
}

// The repository's root when the project lies in it, so that the whole checkout is copied; else the
// project's, in which the repository may lie.
std::string root_of(const std::vector<store::RunRecord>& runs, const std::string& project_root) {
  for (const store::RunRecord& run : runs) {
    const auto& git = run.context.git;
    if (git && PathMap(git->root, "").inside(project_root)) return git->root;
  }
  return project_root;
}

// Paths of the commit, relative to the repository; empty when there is no such commit here.
class CommitFiles {
 public:
  explicit CommitFiles(const std::map<std::string, std::string>& environment)
      : environment_(base::Environment::from_values(environment).entries()) {}
  bool has(const store::Git& git, const std::string& path) {
    const PathMap map(git.root, "");
    if (!map.inside(path) || path.size() <= git.root.size()) return false;
    const std::string relative = path.substr(git.root.size() + 1);
    if (git.diff.find("b/" + relative) != std::string::npos) return true;
    return files_of(git).contains(relative);
  }

 private:
  const std::set<std::string>& files_of(const store::Git& git) {
    const auto [found, added] = files_.try_emplace(git.root + "@" + git.commit);
    if (!added || git.commit.empty()) return found->second;
    const GitProgram program(git.root, environment_, {});
    const auto told =
        program.run({"ls-tree", "-r", "-z", "--name-only", "--full-tree", git.commit});
    if (!told || !told->ok()) return found->second;
    std::string_view text = told->output;
    while (!text.empty()) {
      const std::string_view name = text.substr(0, text.find('\0'));
      found->second.emplace(name);
      text.remove_prefix(std::min(name.size() + 1, text.size()));
    }
    return found->second;
  }

  std::vector<std::string> environment_;
  std::map<std::string, std::set<std::string>> files_;
};

External judge(const store::Input& input, const store::RunRecord& run, const PlanInput& given,
               CommitFiles& commits) {
  External external{.path = input.path, .blake3 = input.blake3, .size = input.size, .found = ""};
  if (const auto twin = given.twins.find({run.id, input.path}); twin != given.twins.end()) {
    external.twin = twin->second;
  }
  std::error_code ignored;
  if (!input.blake3) {  // nothing to compare with
    const bool exists = fs::exists(input.path, ignored);
    external.state = exists ? SourceState::kUnchanged : SourceState::kMissing;
    if (exists) external.found = input.path;
    return external;
  }
  if (has_content(input.path, *input.blake3, input.size)) {
    external.state = SourceState::kUnchanged;
    external.found = input.path;
    return external;
  }
  if (const auto places = given.places.find(*input.blake3); places != given.places.end()) {
    for (const std::string& place : places->second) {
      if (place == input.path || !has_content(place, *input.blake3, input.size)) continue;
      external.state = SourceState::kElsewhere;
      external.found = place;
      return external;
    }
  }
  if (run.context.git && commits.has(*run.context.git, input.path)) {
    external.state = SourceState::kInGit;
    return external;
  }
  external.state = fs::exists(input.path, ignored) ? SourceState::kChanged : SourceState::kMissing;
  return external;
}

// Variables whose values were not kept.
std::vector<std::string> secrets_of(const store::RunRecord& run) {
  std::vector<std::string> names;
  for (const auto& [name, value] : run.context.environment) {
    if (is_redacted(value)) names.push_back(name);
  }
  return names;
}

void add_obstacles(Plan& plan, const PlanStage& stage, const PathMap& map, const PlanInput& given) {
  const std::string title = fmt::format("run {} ({})", stage.run.id, title_of(stage.run));
  for (const External& external : stage.externals) {
    // A changed file outside the copy would be read all the same.
    const bool outside = !map.inside(external.path);
    const bool usable = external.state == SourceState::kUnchanged ||
                        (!outside && (external.state == SourceState::kElsewhere ||
                                      external.state == SourceState::kInGit));
    if (usable) continue;
    plan.obstacles.push_back({fmt::format("{} needs {}, which is {} here", title, external.path,
                                          to_text(external.state))});
  }
  if (stage.redacted_words) {
    plan.obstacles.push_back({title + " has a secret in its command, which was not kept"});
  }
  for (const std::string& name : stage.secrets) {
    if (!given.environment.contains(name)) {
      plan.notes.push_back(
          fmt::format("{} had {} set to a secret; it is not set here", title, name));
    }
  }
  for (const std::string& path : stage.outside) {
    plan.obstacles.push_back(
        {fmt::format("{} writes {}, outside the project, and would write it again", title, path),
         true});
  }
}

void add_source_notes(Plan& plan, const store::RunRecord& run) {
  const auto& git = run.context.git;
  if (!git) return;
  for (const std::string& one : git->left_out) {
    plan.notes.push_back(fmt::format("run {}: the stored difference is without {}", run.id, one));
  }
}

// The files of the copy that stages have made so far.
class Made {
 public:
  void leave(const store::Output& output) {
    if (output.status == store::OutputStatus::kRenamed) files_.erase(output.from);
    if (output.status == store::OutputStatus::kDeleted) {
      files_.erase(output.path);
    } else {
      files_[output.path] = output.blake3;
    }
  }
  // Whether this content stands at this path; where one of the two is not known, the path decides.
  [[nodiscard]] bool holds(const store::Input& input) const {
    const auto found = files_.find(input.path);
    if (found == files_.end()) return false;
    return !input.blake3 || !found->second || *input.blake3 == *found->second;
  }

 private:
  std::map<std::string, std::optional<hash::Digest>> files_;
};

// Which streams are results and which are logs that several stages share.
class Wanted {
 public:
  explicit Wanted(const PlanInput& given) : artifact_(given.artifact_path, given.artifact) {
    for (const store::RunRecord& run : given.runs) {
      for (const store::Input& input : store::needs_of(run, store::Logs::kNo)) {
        needed_.insert({input.path, input.blake3});
      }
      for (const store::Output& output : run.outputs) ++writers_[output.path];
    }
  }
  [[nodiscard]] bool compares(const store::Output& output, const Made& made) const {
    const File file{output.path, output.blake3};
    if (file == artifact_ || needed_.contains(file)) return true;
    if (output.before) return made.holds({output.path, output.before, -1});
    return writers_.at(output.path) == 1;
  }

 private:
  using File = std::pair<std::string, std::optional<hash::Digest>>;
  File artifact_;
  std::set<File> needed_;
  std::map<std::string, int> writers_;
};

}  // namespace

std::string_view to_text(SourceState state) {
  switch (state) {
    case SourceState::kMade:
      return "made by an earlier stage";
    case SourceState::kInGit:
      return "in git";
    case SourceState::kUnchanged:
      return "unchanged";
    case SourceState::kElsewhere:
      return "elsewhere";
    case SourceState::kChanged:
      return "changed";
    case SourceState::kMissing:
      return "missing";
  }
  return "";
}

Plan make_plan(PlanInput given) {
  Plan plan{.artifact_path = given.artifact_path,
            .artifact = given.artifact,
            .root = root_of(given.runs, given.project_root),
            .stages = {},
            .differences = std::move(given.differences),
            .obstacles = {},
            .notes = {}};
  const PathMap map(plan.root, "");
  CommitFiles commits(given.environment);
  const Wanted wanted(given);
  Made made;
  for (store::RunRecord& run : given.runs) {
    PlanStage stage;
    for (const store::Input& input : store::needs_of(run, store::Logs::kNo)) {
      if (made.holds(input)) {
        stage.made_before.insert(input.path);
      } else {
        stage.externals.push_back(judge(input, run, given, commits));
      }
    }
    const std::set<std::string> streams = store::stream_paths(run);
    for (const store::Output& output : run.outputs) {
      const bool stream = streams.contains(output.path);
      const bool outside = !map.inside(output.path);
      if (outside && !stream) stage.outside.push_back(output.path);
      if (stream && (outside || !wanted.compares(output, made))) {
        stage.streams.push_back(output.path);
        plan.notes.push_back(
            fmt::format("run {}: its output went to {}, {}; it is shown, not compared", run.id,
                        output.path, outside ? "outside the project" : "which is not its alone"));
      }
    }
    for (const store::Output& output : run.outputs) made.leave(output);
    stage.secrets = secrets_of(run);
    stage.redacted_words = std::any_of(run.command.begin(), run.command.end(),
                                       [](const std::string& word) { return is_redacted(word); });
    if (!run.complete) {
      plan.notes.push_back(fmt::format(
          "run {}: not everything it did was seen; see 'assay show {}'", run.id, run.id));
    }
    add_source_notes(plan, run);
    stage.run = std::move(run);
    add_obstacles(plan, stage, map, given);
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

base::Json to_json(const Plan& plan) {
  base::Json stages = base::Json::array();
  for (const PlanStage& stage : plan.stages) {
    base::Json externals = base::Json::array();
    for (const External& one : stage.externals) {
      externals.push_back(
          {{"path", one.path},
           {"blake3", one.blake3 ? base::Json(one.blake3->hex()) : base::Json()},
           {"size", one.size < 0 ? base::Json() : base::Json(one.size)},
           {"state", to_text(one.state)},
           {"from", one.found.empty() ? base::Json() : base::Json(one.found)},
           {"same_content", one.twin ? base::Json{{"run", one.twin->run}, {"path", one.twin->path}}
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
  for (const Difference& one : plan.differences) {
    differences.push_back({{"what", one.what}, {"recorded", one.recorded}, {"here", one.here}});
  }
  base::Json obstacles = base::Json::array();
  for (const Obstacle& one : plan.obstacles) obstacles.push_back(one.text);
  return {{"artifact",
           {{"path", plan.artifact_path},
            {"blake3", plan.artifact ? base::Json(plan.artifact->hex()) : base::Json()}}},
          {"root", plan.root},
          {"stages", std::move(stages)},
          {"differences", std::move(differences)},
          {"obstacles", std::move(obstacles)},
          {"notes", plan.notes}};
}

}  // namespace assay::lineage
