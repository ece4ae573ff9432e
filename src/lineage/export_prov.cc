// PROV-JSON (W3C Member Submission of 24 April 2013): entities are contents, activities are jobs,
// agents are the person and this program.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/version.h"
#include "lineage/dag_view.h"
#include "lineage/export.h"
#include "lineage/export_parts.h"

namespace assay::lineage {
namespace {

using base::Json;

class ProvDocument {
 public:
  explicit ProvDocument(const ExportSubject& subject) {
    for (const store::Job& job : subject.jobs) add(job);
  }

  [[nodiscard]] Json json() const {
    Json entities = Json::object();
    for (const auto& [id, entity] : entities_) entities[id] = entity_json(entity);
    Json document{{"prefix",
                   {{"assay", "urn:assay:term:"},
                    {"blake3", "urn:blake3:"},
                    {"job", "urn:assay:job:"},
                    {"agent", "urn:assay:agent:"},
                    {"xsd", "http://www.w3.org/2001/XMLSchema#"}}},
                  {"entity", std::move(entities)},
                  {"activity", activities_},
                  {"agent", agents_}};
    // An empty relation says nothing.
    const auto put = [&document](const char* name, const Json& relation) {
      if (!relation.empty()) document[name] = relation;
    };
    put("used", used_);
    put("wasGeneratedBy", generated_);
    put("wasAssociatedWith", associated_);
    put("wasInformedBy", informed_);
    return document;
  }

 private:
  struct Entity {
    std::set<std::string> paths;
    std::optional<std::int64_t> size;
    bool known = true;  // by content
  };

  static Json entity_json(const Entity& entity) {
    Json json{{"prov:type", "assay:File"}, {"prov:label", *entity.paths.begin()}};
    // One content may have had several places.
    json["prov:location"] =
        entity.paths.size() == 1 ? Json(*entity.paths.begin()) : Json(entity.paths);
    if (entity.size) json["assay:size"] = *entity.size;
    if (!entity.known) json["assay:content"] = "unknown";
    return json;
  }

  // A file whose content is not known is an entity of its job alone.
  std::string entity(const store::Job& job, const std::string& path,
                     const std::optional<hash::Digest>& digest, std::int64_t size) {
    const std::string id = digest ? "blake3:" + digest->hex()
                                  : fmt::format("assay:unknown-{}-{}", job.uid,
                                                percent_encoded(path,
                                                                "abcdefghijklmnopqrstuvwxyz"
                                                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                                "0123456789-._"));
    Entity& found = entities_[id];
    found.paths.insert(path);
    found.known = digest.has_value();
    if (digest) found.size = size;
    return id;
  }

  static std::string next(const char* name, const Json& relation) {
    return fmt::format("_:{}{}", name, relation.size() + 1);
  }

  void add(const store::Job& job) {
    const std::string id = "job:" + job.uid;
    Json activity{{"prov:startTime", base::utc_millis_text(job.started_unix_ns)}};
    if (job.status != store::JobStatus::kRunning) {
      activity["prov:endTime"] = base::utc_millis_text(ended_unix_ns(job));
    }
    activity["prov:type"] = "assay:Job";
    activity["prov:label"] = title_of(job);
    activity["assay:command"] = command_text(job);
    activity["assay:directory"] = job.directory;
    if (job.exit_code) activity["assay:exitCode"] = *job.exit_code;
    activity["assay:complete"] = job.complete;
    if (const auto& git = job.context.git) {
      activity["assay:gitCommit"] = git->commit;
      activity["assay:gitDirty"] = git->dirty;
    }
    activities_[id] = std::move(activity);
    associate(job, id);

    std::set<std::string> producers;
    for (const store::Input& input : job.inputs) {
      const std::string file = entity(job, input.path, input.blake3, input.size);
      used_[next("used", used_)] = {{"prov:activity", id}, {"prov:entity", file}};
      if (const auto producer = producer_.find(file); producer != producer_.end()) {
        producers.insert(producer->second);
      }
    }
    for (const std::string& producer : producers) {
      informed_[next("informed", informed_)] = {{"prov:informed", id},
                                                {"prov:informant", producer}};
    }
    for (const store::Output& output : job.outputs) {
      if (!is_left(output)) continue;
      const std::string file = entity(job, output.path, output.blake3, output.size);
      producer_.emplace(file, id);
      generated_[next("generated", generated_)] = {
          {"prov:entity", file},
          {"prov:activity", id},
          {"prov:time", base::utc_millis_text(ended_unix_ns(job))}};
    }
  }

  void associate(const store::Job& job, const std::string& id) {
    const std::string program = fmt::format("agent:assay-{}", base::version().release);
    agents_[program] = {{"prov:type", "prov:SoftwareAgent"},
                        {"prov:label", fmt::format("assay {}", base::version().release)}};
    associated_[next("associated", associated_)] = {{"prov:activity", id}, {"prov:agent", program}};
    if (job.context.user.empty()) return;
    const std::string name = job.context.user + "@" + job.context.host;
    const std::string person =
        "agent:" + percent_encoded(name,
                                   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789-._");
    agents_[person] = {{"prov:type", "prov:Person"}, {"prov:label", name}};
    associated_[next("associated", associated_)] = {{"prov:activity", id}, {"prov:agent", person}};
  }

  std::map<std::string, Entity> entities_;
  std::map<std::string, std::string> producer_;  // entity -> activity, the first
  Json activities_ = Json::object();
  Json agents_ = Json::object();
  Json used_ = Json::object(), generated_ = Json::object(), associated_ = Json::object();
  Json informed_ = Json::object();
};

}  // namespace

Json export_prov(const ExportSubject& subject) {
  return ProvDocument(subject).json();
}

}  // namespace assay::lineage
