// OpenLineage run events: START and COMPLETE, FAIL or ABORT of each run, with files as datasets.
// Its "job" is what runs repeat: a stage, or a command in a directory.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "base/version.h"
#include "hash/blake3.h"
#include "lineage/export/common.h"
#include "lineage/export/export.h"
#include "lineage/graph/dag_view.h"
#include "store/run_dependencies.h"

namespace assay::lineage {
namespace {

using base::Json;

constexpr const char* kEventSchema =
    "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";

// Every facet has its producer and schema.
Json facet(const char* schema, const Json& content) {
  Json json{{"_producer", producer_uri()},
            {"_schemaURL", fmt::format("https://openlineage.io/spec/facets/{}", schema)}};
  json.update(content);
  return json;
}

std::string files_namespace(const store::RunRecord& run) {
  return run.context.host.empty() ? "file" : "file://" + run.context.host;
}

Json dataset(const store::RunRecord& run, const std::string& path,
             const std::optional<hash::Digest>& digest, std::int64_t size) {
  Json json{
      {"namespace", files_namespace(run)}, {"name", text_path(path)}, {"facets", Json::object()}};
  if (digest) {
    json["facets"]["version"] =
        facet("1-0-0/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet",
              {{"datasetVersion", "blake3:" + digest->hex()}});
  }
  if (size < 0) return json;  // not known
  // The public facets have a size only together with a row count.
  Json file{{"_producer", producer_uri()}, {"_schemaURL", "urn:assay:facet:file:1"}};
  file["size"] = size;
  json["facets"]["assay_file"] = std::move(file);
  return json;
}

const char* state_change(store::OutputStatus status) {
  switch (status) {
    case store::OutputStatus::kModified:
      return "OVERWRITE";
    case store::OutputStatus::kRenamed:
      return "RENAME";
    case store::OutputStatus::kDeleted:
      return "DROP";
    case store::OutputStatus::kCreated:
    case store::OutputStatus::kLinked:
      break;
  }
  return "CREATE";
}

Json output_json(const store::RunRecord& run, const store::Output& output) {
  Json json = dataset(run, output.path, output.blake3, output.size);
  Json change{{"lifecycleStateChange", state_change(output.status)}};
  if (output.status == store::OutputStatus::kRenamed) {
    change["previousIdentifier"] = {{"namespace", files_namespace(run)},
                                    {"name", text_path(output.from)}};
  }
  json["facets"]["lifecycleStateChange"] =
      facet("1-0-0/LifecycleStateChangeDatasetFacet.json#/$defs/LifecycleStateChangeDatasetFacet",
            change);
  return json;
}

Json run_json(const store::RunRecord& run, bool ended) {
  Json facets{{"processing_engine",
               facet("1-1-0/ProcessingEngineRunFacet.json#/$defs/ProcessingEngineRunFacet",
                     {{"version", base::version().release}, {"name", "assay"}})}};
  if (ended && run.status != store::RunStatus::kDone) {
    facets["errorMessage"] =
        facet("1-0-0/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet",
              {{"message", failure_text(run)}, {"programmingLanguage", "UNKNOWN"}});
  }
  return {{"runId", uuid_of(run)}, {"facets", std::move(facets)}};
}

// The same name for every run of a job. A run without a stage is named by its command and
// directory, shortened for people, with a digest of both to keep the name unique.
std::string job_name(const ExportSubject& subject, const store::RunRecord& run) {
  if (!run.name.empty() || run.stage > 0) return title_of(run);
  std::string identity = shown_path(run.directory, subject.project_root);
  for (const std::string& word : run.command) identity += '\0' + word;
  const std::string digest = hash::blake3(std::as_bytes(std::span(identity))).hex();
  return fmt::format("{} [{}]", title_of(run), digest.substr(0, 8));
}

Json job_json(const ExportSubject& subject, const store::RunRecord& run) {
  Json facets{
      {"jobType",
       facet("2-0-2/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
             {{"processingType", "BATCH"}, {"integration", "ASSAY"}, {"jobType", "COMMAND"}})},
      {"documentation", facet("1-0-0/DocumentationJobFacet.json#/$defs/DocumentationJobFacet",
                              {{"description", recorded_command_text(run)}})}};
  const auto& git = run.context.git;
  if (git && !git->remote.empty()) {
    facets["sourceCodeLocation"] =
        facet("1-0-0/SourceCodeLocationJobFacet.json#/$defs/SourceCodeLocationJobFacet",
              {{"type", "git"},
               {"url", source_uri(*git)},
               {"repoUrl", source_uri(*git)},
               {"version", git->commit},
               {"branch", git->branch}});
  }
  return {{"namespace", "assay:" + subject.project_id},
          {"name", job_name(subject, run)},
          {"facets", std::move(facets)}};
}

Json event_json(const ExportSubject& subject, const store::RunRecord& run, const char* type,
                std::int64_t time_ns, bool ended) {
  Json inputs = Json::array(), outputs = Json::array();
  if (ended) {
    for (const store::Input& input : store::dependencies_for(run, subject.artifact_path)) {
      inputs.push_back(dataset(run, input.path, input.blake3, input.size));
    }
    for (const store::Output& output : run.outputs) outputs.push_back(output_json(run, output));
  }
  return {{"eventType", type},           {"eventTime", base::utc_millis_text(time_ns)},
          {"run", run_json(run, ended)}, {"job", job_json(subject, run)},
          {"inputs", std::move(inputs)}, {"outputs", std::move(outputs)},
          {"producer", producer_uri()},  {"schemaURL", kEventSchema}};
}

const char* end_type(store::RunStatus status) {
  if (status == store::RunStatus::kDone) return "COMPLETE";
  return status == store::RunStatus::kInterrupted ? "ABORT" : "FAIL";
}

}  // namespace

std::vector<Json> export_openlineage(const ExportSubject& subject) {
  std::vector<std::pair<std::int64_t, Json>> timed;
  for (const store::RunRecord& run : subject.runs) {
    timed.emplace_back(run.started_unix_ns,
                       event_json(subject, run, "START", run.started_unix_ns, false));
    if (run.status == store::RunStatus::kRunning) continue;
    const std::int64_t end = ended_unix_ns(run);
    timed.emplace_back(end, event_json(subject, run, end_type(run.status), end, true));
  }
  std::stable_sort(timed.begin(), timed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Json> events;
  for (auto& [time, event] : timed) events.push_back(std::move(event));
  return events;
}

}  // namespace assay::lineage
