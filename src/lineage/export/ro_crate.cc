// RO-Crate 1.1 with the profile Process Run Crate 0.5: the project is the crate, each run is an
// action with its files as objects and results. To be saved as ro-crate-metadata.json in the
// project's root.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/utf8.h"
#include "lineage/export/common.h"
#include "lineage/export/export.h"
#include "lineage/graph/dag_view.h"
#include "store/run_dependencies.h"

namespace assay::lineage {
namespace {

using base::Json;

constexpr const char* kProfile = "https://w3id.org/ro/wfrun/process/0.5";

Json reference(const std::string& id) {
  return {{"@id", id}};
}

// The profile's examples and validator use a numeric offset.
std::string crate_time(std::int64_t unix_ns) {
  std::string text = base::utc_millis_text(unix_ns);
  text.replace(text.size() - 1, 1, "+00:00");
  return text;
}

// The crate's own description, in its root.
constexpr const char* kCrateMetadata = "ro-crate-metadata.json";

// The files of the crate, each with the id under which readers find it.
class CrateFiles {
 public:
  explicit CrateFiles(const ExportSubject& subject);

  // Returns the id: the path if these runs left the file there and the name is UTF-8, else the
  // content; if that is not known, an id of this run alone.
  std::string add(const store::RunRecord& run, const std::string& path,
                  const std::optional<hash::Digest>& digest, std::int64_t size);

  [[nodiscard]] std::vector<std::string> ids() const;
  [[nodiscard]] std::vector<Json> json() const;  // sorted by id

 private:
  struct File {
    std::set<std::string> paths;
    std::optional<hash::Digest> content;
    std::int64_t size = -1;  // not known
    bool by_path = false;    // its id is its path
  };
  static Json file_json(const std::string& id, const File& file);

  std::string root_;
  // The content of each path after the runs, without deleted paths.
  std::map<std::string, std::optional<hash::Digest>> last_;
  std::map<std::string, File> files_;
};

std::string unknown_file_uri(const store::RunRecord& run, const std::string& path) {
  constexpr std::string_view kScheme = "file://";
  return fmt::format("urn:assay:file:unknown-{}{}", run.uid, file_uri(path).substr(kScheme.size()));
}

CrateFiles::CrateFiles(const ExportSubject& subject) : root_(subject.project_root) {
  std::map<store::RunId, const store::RunRecord*>
      in_time;  // the subject has producers first, but is not sorted by time
  for (const store::RunRecord& run : subject.runs) in_time[run.id] = &run;
  for (const auto& [id, run] : in_time) {
    for (const store::Input& input : store::dependencies_for(*run, subject.artifact_path)) {
      last_[input.path] = input.blake3;
    }
    for (const store::Output& output : run->outputs) {
      if (!exists_after(output)) last_.erase(output.path);
      if (output.status == store::OutputStatus::kRenamed) last_.erase(output.from);
    }
    for (const store::Output& output : run->outputs) {
      if (exists_after(output)) last_[output.path] = output.blake3;
    }
  }
}

std::string CrateFiles::add(const store::RunRecord& run, const std::string& path,
                            const std::optional<hash::Digest>& digest, std::int64_t size) {
  const auto last = last_.find(path);
  std::string id = crate_uri(path, root_);
  // Readers expect UTF-8 in URIs; and the crate's description is not one of its files.
  const bool by_path = last != last_.end() && (!digest || last->second == digest) &&
                       base::is_utf8(path) && id != kCrateMetadata;
  if (!by_path) id = digest ? content_uri(*digest) : unknown_file_uri(run, path);
  File& file = files_[id];
  file.paths.insert(path);
  file.by_path = by_path;
  if (digest) {
    file.content = digest;
    file.size = std::max(file.size, size);
  }
  return id;
}

Json CrateFiles::file_json(const std::string& id, const File& file) {
  std::vector<std::string> paths;
  for (const std::string& path : file.paths) paths.push_back(text_path(path));
  Json entity{{"@id", id}, {"@type", "File"}, {"name", paths[0].substr(paths[0].rfind('/') + 1)}};
  if (!file.by_path || id.starts_with("file:")) {
    entity["alternateName"] = paths.size() == 1 ? Json(paths[0]) : Json(paths);
  }
  if (file.size >= 0) entity["contentSize"] = std::to_string(file.size);
  if (file.content) entity["identifier"] = content_uri(*file.content);
  return entity;
}

std::vector<std::string> CrateFiles::ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, file] : files_) ids.push_back(id);
  return ids;
}

std::vector<Json> CrateFiles::json() const {
  std::vector<Json> entities;
  for (const auto& [id, file] : files_) entities.push_back(file_json(id, file));
  return entities;
}

class Crate {
 public:
  explicit Crate(const ExportSubject& subject) : subject_(subject), files_(subject) {
    for (const store::RunRecord& run : subject.runs) add(run);
  }

  [[nodiscard]] Json json() const {
    Json graph = Json::array();
    graph.push_back({{"@id", kCrateMetadata},
                     {"@type", "CreativeWork"},
                     {"conformsTo", reference("https://w3id.org/ro/crate/1.1")},
                     {"about", reference("./")}});
    graph.push_back(root());
    graph.push_back({{"@id", kProfile},
                     {"@type", "CreativeWork"},
                     {"name", "Process Run Crate"},
                     {"version", "0.5"}});
    for (const Json& action : actions_) graph.push_back(action);
    for (const auto* group : {&tools_, &people_}) {
      for (const auto& [id, entity] : *group) graph.push_back(entity);
    }
    for (Json& file : files_.json()) graph.push_back(std::move(file));
    return {{"@context",
             {"https://w3id.org/ro/crate/1.1/context",
              "https://w3id.org/ro/terms/workflow-run/context"}},
            {"@graph", std::move(graph)}};
  }

 private:
  [[nodiscard]] Json root() const {
    std::int64_t latest = 0;
    Json mentions = Json::array(), parts = Json::array();
    std::string names;
    for (const store::RunRecord& run : subject_.runs) {
      latest = std::max(latest, ended_unix_ns(run));
      mentions.push_back(reference(action_id(run)));
      names += (names.empty() ? "" : ", ") + title_of(run);
    }
    for (const std::string& id : files_.ids()) parts.push_back(reference(id));
    return {{"@id", "./"},
            {"@type", "Dataset"},
            {"conformsTo", reference(kProfile)},
            {"name", fmt::format("Recorded by assay: {}", names)},
            {"description", "Files and the commands that read and wrote them, as observed"},
            // Not the time of export, so that the same runs give the same document.
            {"datePublished", crate_time(latest)},
            {"license", "Not stated; the rights of the files' owners apply"},
            {"identifier", "urn:assay:project:" + subject_.project_id},
            {"mentions", std::move(mentions)},
            {"hasPart", std::move(parts)}};
  }

  static std::string action_id(const store::RunRecord& run) { return "urn:uuid:" + uuid_of(run); }

  std::string tool(const store::RunRecord& run) {
    const std::string program = run.command.empty() ? "command" : run.command[0];
    std::string id = "#tool-" + percent_encoded(program.substr(program.rfind('/') + 1),
                                                "abcdefghijklmnopqrstuvwxyz"
                                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._");
    tools_.try_emplace(id, Json{{"@id", id}, {"@type", "SoftwareApplication"}, {"name", program}});
    return id;
  }

  void add(const store::RunRecord& run) {
    Json objects = Json::array(), results = Json::array();
    for (const store::Input& input : store::dependencies_for(run, subject_.artifact_path)) {
      objects.push_back(reference(files_.add(run, input.path, input.blake3, input.size)));
    }
    for (const store::Output& output : run.outputs) {
      if (exists_after(output)) {
        results.push_back(reference(files_.add(run, output.path, output.blake3, output.size)));
      }
    }
    const std::string id = action_id(run);
    // ActivateAction is the profile's type for a run without outputs.
    Json action{{"@id", id},
                {"@type", results.empty() ? "ActivateAction" : "CreateAction"},
                {"name", title_of(run)},
                {"description", recorded_command_text(run)},
                {"instrument", reference(tool(run))},
                {"startTime", crate_time(run.started_unix_ns)}};
    if (run.status != store::RunStatus::kRunning) {
      const bool done = run.status == store::RunStatus::kDone;
      action["endTime"] = crate_time(ended_unix_ns(run));
      action["actionStatus"] =
          done ? "http://schema.org/CompletedActionStatus" : "http://schema.org/FailedActionStatus";
      if (!done) action["error"] = failure_text(run);
    } else {
      action["actionStatus"] = "http://schema.org/ActiveActionStatus";
    }
    if (!run.context.user.empty()) {
      const std::string person = "#person-" + percent_encoded(run.context.user,
                                                              "abcdefghijklmnopqrstuvwxyz"
                                                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                              "0123456789-._");
      people_.try_emplace(person,
                          Json{{"@id", person}, {"@type", "Person"}, {"name", run.context.user}});
      action["agent"] = reference(person);
    }
    if (!objects.empty()) action["object"] = std::move(objects);
    if (!results.empty()) action["result"] = std::move(results);
    actions_.push_back(std::move(action));
  }

  const ExportSubject& subject_;
  std::vector<Json> actions_;  // in the order of the runs
  std::map<std::string, Json> tools_, people_;
  CrateFiles files_;
};

}  // namespace

Json export_ro_crate(const ExportSubject& subject) {
  return Crate(subject).json();
}

}  // namespace assay::lineage
