// PROV-JSON (W3C Member Submission of 24 April 2013): entities are contents at their paths (in
// PROV, a copy generates another entity than it used); activities are runs, agents are the user and
// this program. An entity is generated only once (PROV-CONSTRAINTS, generation-uniqueness). So an
// output is an entity of its run, and a specialization of the content at its path, to which
// documents of other runs may refer too.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/version.h"
#include "lineage/export/common.h"
#include "lineage/export/export.h"
#include "lineage/graph/dag_view.h"
#include "store/run_dependencies.h"

namespace assay::lineage {
namespace {

using base::Json;

class ProvDocument {
 public:
  explicit ProvDocument(const ExportSubject& subject) : artifact_(subject.artifact_path) {
    for (const store::RunRecord& run : subject.runs) add(run);
  }

  [[nodiscard]] Json json() const {
    Json entities = Json::object();
    for (const auto& [id, entity] : entities_) entities[id] = entity_json(entity);
    Json document{{"prefix",
                   {{"assay", "urn:assay:term:"},
                    {"file", "urn:assay:file:"},
                    {"run", "urn:assay:run:"},
                    {"agent", "urn:assay:agent:"},
                    {"xsd", "http://www.w3.org/2001/XMLSchema#"}}},
                  {"entity", std::move(entities)},
                  {"activity", activities_},
                  {"agent", agents_}};
    // Empty relations are omitted.
    const auto put = [&document](const char* name, const Json& relation) {
      if (!relation.empty()) document[name] = relation;
    };
    put("used", used_);
    put("wasGeneratedBy", generated_);
    put("wasAssociatedWith", associated_);
    put("wasInformedBy", informed_);
    put("specializationOf", specialized_);
    return document;
  }

 private:
  struct Entity {
    std::string path;
    std::optional<hash::Digest> content;
    std::int64_t size = -1;  // not known
  };

  static Json entity_json(const Entity& entity) {
    Json json{{"prov:type", qualified("assay:File")},
              {"prov:label", text_path(entity.path)},
              {"prov:location", text_path(entity.path)}};
    json["assay:content"] = entity.content ? "blake3:" + entity.content->hex() : "unknown";
    if (entity.content && entity.size >= 0) json["assay:size"] = entity.size;
    return json;
  }

  // Without the type it would be a string and not a name.
  static Json qualified(const char* name) { return {{"$", name}, {"type", "prov:QUALIFIED_NAME"}}; }

  // "file:WHICH/path", where WHICH distinguishes contents and generations of one path.
  std::string entity(const std::string& which, const std::string& path,
                     const std::optional<hash::Digest>& digest, std::int64_t size) {
    std::string id =
        fmt::format("file:{}{}", which,
                    percent_encoded(path,
                                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789-._/"));
    Entity& found = entities_[id];
    found = {path, digest, std::max(found.size, size)};
    return id;
  }

  struct Generation {
    std::string entity, activity;
  };

  // The generation of an input: by the newest run before the reader, else by a concurrent one.
  const Generation* generation_of(const store::Input& input, store::RunId reader) const {
    const auto found = generations_.find({input.path, input.blake3});
    if (!input.blake3 || found == generations_.end()) return nullptr;
    const auto after = found->second.lower_bound(reader);
    if (after != found->second.begin()) return &std::prev(after)->second;
    return after->first == reader ? nullptr : &after->second;
  }

  // A file with unknown content is an entity of its run only.
  std::string used_entity(const store::RunRecord& run, const store::Input& input,
                          const Generation* generation) {
    if (generation == nullptr) {
      return entity(input.blake3 ? input.blake3->hex() : "unread-" + run.uid, input.path,
                    input.blake3, input.size);
    }
    Entity& known = entities_.at(generation->entity);
    known.size = std::max(known.size, input.size);
    return generation->entity;
  }

  std::string generated_entity(const store::RunRecord& run, const store::Output& output) {
    if (!output.blake3) return entity("unknown-" + run.uid, output.path, {}, output.size);
    const std::string hex = output.blake3->hex();
    std::string id = entity(hex + "-" + run.uid, output.path, output.blake3, output.size);
    specialized_[next("specialized", specialized_)] = {
        {"prov:specificEntity", id},
        {"prov:generalEntity", entity(hex, output.path, output.blake3, output.size)}};
    return id;
  }

  static std::string next(const char* name, const Json& relation) {
    return fmt::format("_:{}{}", name, relation.size() + 1);
  }

  void add(const store::RunRecord& run) {
    const std::string id = "run:" + run.uid;
    Json activity{{"prov:startTime", base::utc_millis_text(run.started_unix_ns)}};
    if (run.status != store::RunStatus::kRunning) {
      activity["prov:endTime"] = base::utc_millis_text(ended_unix_ns(run));
    }
    activity["prov:type"] = qualified("assay:Run");
    activity["prov:label"] = title_of(run);
    activity["assay:command"] = recorded_command_text(run);
    activity["assay:directory"] = run.directory;
    if (run.exit_code) activity["assay:exitCode"] = *run.exit_code;
    activity["assay:complete"] = run.complete;
    if (const auto& git = run.context.git) {
      activity["assay:gitCommit"] = git->commit;
      activity["assay:gitDirty"] = git->dirty;
    }
    activities_[id] = std::move(activity);
    associate(run, id);

    std::set<std::string> producers;
    for (const store::Input& input : store::dependencies_for(run, artifact_)) {
      const Generation* generation = generation_of(input, run.id);
      used_[next("used", used_)] = {{"prov:activity", id},
                                    {"prov:entity", used_entity(run, input, generation)}};
      if (generation != nullptr) producers.insert(generation->activity);
    }
    for (const std::string& producer : producers) {
      informed_[next("informed", informed_)] = {{"prov:informed", id},
                                                {"prov:informant", producer}};
    }
    for (const store::Output& output : run.outputs) {
      if (!exists_after(output)) continue;
      const std::string file = generated_entity(run, output);
      generations_[{output.path, output.blake3}].emplace(run.id, Generation{file, id});
      generated_[next("generated", generated_)] = {
          {"prov:entity", file},
          {"prov:activity", id},
          {"prov:time", base::utc_millis_text(ended_unix_ns(run))}};
    }
  }

  void associate(const store::RunRecord& run, const std::string& id) {
    const std::string program = fmt::format("agent:assay-{}", base::version().release);
    agents_[program] = {{"prov:type", qualified("prov:SoftwareAgent")},
                        {"prov:label", fmt::format("assay {}", base::version().release)}};
    associated_[next("associated", associated_)] = {{"prov:activity", id}, {"prov:agent", program}};
    if (run.context.user.empty()) return;
    const std::string name = run.context.user + "@" + run.context.host;
    const std::string person =
        "agent:" + percent_encoded(name,
                                   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789-._");
    agents_[person] = {{"prov:type", qualified("prov:Person")}, {"prov:label", name}};
    associated_[next("associated", associated_)] = {{"prov:activity", id}, {"prov:agent", person}};
  }

  std::map<std::string, Entity> entities_;
  using Content = std::pair<std::string, std::optional<hash::Digest>>;  // at its path
  std::map<Content, std::map<store::RunId, Generation>> generations_;
  std::string artifact_;  // what is exported; empty: a run
  Json activities_ = Json::object();
  Json agents_ = Json::object();
  Json used_ = Json::object(), generated_ = Json::object(), associated_ = Json::object();
  Json informed_ = Json::object(), specialized_ = Json::object();
};

}  // namespace

Json export_prov(const ExportSubject& subject) {
  return ProvDocument(subject).json();
}

}  // namespace assay::lineage
