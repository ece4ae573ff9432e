// in-toto Statement v1 with the predicate SLSA Provenance v1. One statement about the last run:
// provenance is not transitive, each earlier run has a separate statement. It is not signed; the
// publisher puts it into an envelope.
#include <fmt/format.h>

#include <cctype>

#include "base/clock.h"
#include "base/version.h"
#include "lineage/export/common.h"
#include "lineage/export/export.h"
#include "store/run_dependencies.h"

namespace assay::lineage {
namespace {

using base::Json;

// A package URL: pkg:deb/debian/libc6@2.36-9
std::string package_url(const store::Package& package) {
  constexpr std::string_view kKept =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:";
  std::string type = package.manager, name = package.name;
  if (package.manager == "dpkg") type = "deb/debian";
  if (package.manager == "cuda") type = "generic";  // the standard's type for what has no registry
  if (package.manager == "pip") {
    type = "pypi";
    // Names are case-insensitive and "_" equals "-"; the URL uses one spelling.
    for (char& c : name) {
      c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return fmt::format("pkg:{}/{}@{}", type, percent_encoded(name, kKept),
                     percent_encoded(package.version, kKept));
}

Json dependencies(const store::RunRecord& run, const std::string& artifact) {
  Json list = Json::array();
  if (const auto& git = run.context.git; git && !git->commit.empty()) {
    Json source{{"uri", "git+" + source_uri(*git)}, {"digest", {{"gitCommit", git->commit}}}};
    if (git->dirty) source["annotations"] = {{"dirty", true}};
    list.push_back(std::move(source));
  }
  for (const store::Input& input : store::dependencies_for(run, artifact)) {
    Json file{{"name", text_path(input.path)}, {"uri", file_uri(input.path)}};
    if (input.blake3) file["digest"] = {{"blake3", input.blake3->hex()}};
    list.push_back(std::move(file));
  }
  for (const store::Package& package : run.context.packages) {
    list.push_back({{"name", package.name}, {"uri", package_url(package)}});
  }
  return list;
}

Json missed(const store::RunRecord& run) {
  Json list = Json::array();
  for (const store::Missed& one : run.missed) {
    list.push_back({{"what", one.what}, {"text", one.text}});
  }
  return list;
}

}  // namespace

base::Result<Json> export_in_toto(const ExportSubject& subject) {
  if (subject.runs.empty()) return base::fail(base::usage_error("export", "no run to export"));
  const store::RunRecord& run = subject.runs.back();
  Json files = Json::array();
  for (const store::Output& output : run.outputs) {
    if (!exists_after(output) || !output.blake3) continue;
    if (!subject.artifact_path.empty() && output.path != subject.artifact_path &&
        !output.path.starts_with(subject.artifact_path + "/")) {
      continue;
    }
    files.push_back({{"name", text_path(output.path)},
                     {"uri", file_uri(output.path)},
                     {"digest", {{"blake3", output.blake3->hex()}}}});
  }
  if (files.empty()) {
    return base::fail(base::usage_error(fmt::format("run {}", run.id),
                                        "has no output, and an attestation needs one",
                                        "choose a run with outputs, or another format"));
  }
  Json parameters{{"status", store::name_of(run.status)},
                  {"tracer", run.tracer},
                  {"complete", run.complete},
                  {"dropped", run.dropped},
                  {"missed", missed(run)}};
  if (run.exit_code) parameters["exit_code"] = *run.exit_code;
  if (run.signal) parameters["signal"] = *run.signal;
  Json metadata{{"invocationId", "urn:uuid:" + uuid_of(run)},
                {"startedOn", base::utc_text(run.started_unix_ns)}};
  if (run.status != store::RunStatus::kRunning) {
    metadata["finishedOn"] = base::utc_text(ended_unix_ns(run));
  }
  return Json{{"_type", "https://in-toto.io/Statement/v1"},
              {"subject", std::move(files)},
              {"predicateType", "https://slsa.dev/provenance/v1"},
              {"predicate",
               {{"buildDefinition",
                 {{"buildType", "urn:assay:run:1"},
                  {"externalParameters", {{"command", run.command}, {"directory", run.directory}}},
                  {"internalParameters", std::move(parameters)},
                  {"resolvedDependencies", dependencies(run, subject.artifact_path)}}},
                {"runDetails",
                 {{"builder",
                   {{"id", "urn:assay:builder:" + subject.project_id},
                    {"version", {{"assay", base::version().release}}}}},
                  {"metadata", std::move(metadata)}}}}}};
}

}  // namespace assay::lineage
