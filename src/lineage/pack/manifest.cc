#include "lineage/pack/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/path_map.h"
#include "base/utf8.h"
#include "base/version.h"
#include "lineage/record/redirects.h"
#include "store/labels.h"

namespace assay::lineage {
namespace {

using base::Json;
using store::OutputStatus;

constexpr int kPackVersion = 1;
constexpr std::size_t kLongestPath = 4095;

Json packed_digest_json(const std::optional<hash::Digest>& digest) {
  return digest ? Json(digest->hex()) : Json();
}

Json packed_run_json(const store::RunRecord& run) {
  Json inputs = Json::array();
  for (const store::Input& input : run.inputs) {
    inputs.push_back(
        {{"path", input.path}, {"blake3", packed_digest_json(input.blake3)}, {"size", input.size}});
  }
  Json outputs = Json::array();
  for (const store::Output& output : run.outputs) {
    outputs.push_back({{"path", output.path},
                       {"blake3", packed_digest_json(output.blake3)},
                       {"size", output.size},
                       {"status", name_of(output.status)},
                       {"from", output.from},
                       {"before", packed_digest_json(output.before)}});
  }
  Json made_folders = Json::array();
  for (const store::PathFact& fact : run.facts) {
    if (fact.kind == store::PathFact::Kind::kMadeFolder) made_folders.push_back(fact.path);
  }
  Json packages = Json::array();
  for (const store::Package& package : run.context.packages) {
    packages.push_back(
        {{"manager", package.manager}, {"name", package.name}, {"version", package.version}});
  }
  Json git;
  if (const auto& source = run.context.git) {
    git = {{"remote", source->remote}, {"commit", source->commit}, {"branch", source->branch},
           {"dirty", source->dirty},   {"diff", source->diff},     {"left_out", source->left_out}};
  }
  return {{"uid", run.uid},
          {"command", run.command},
          {"directory", run.directory},
          {"redirects", run.redirects},
          {"options", run.options},
          {"name", run.name},
          {"build", run.build},
          {"exit_code", base::or_null(run.exit_code)},
          {"tracer", run.tracer},
          {"complete", run.complete},
          {"read_a_pipe", store::read_a_pipe(run)},
          {"started_unix_ns", run.started_unix_ns},
          {"duration_s", run.duration_s},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)},
          {"made_folders", std::move(made_folders)},
          {"environment", run.context.environment},
          {"machine", run.context.machine},
          {"packages", std::move(packages)},
          {"git", std::move(git)}};
}

}  // namespace

bool is_reserved(const std::string& path, const std::string& project) {
  const base::PathMap below(project, "");
  const std::filesystem::path relative = below.path(path);
  return std::any_of(relative.begin(), relative.end(), [](const std::filesystem::path& part) {
    return part == ".git" || part == ".assay";
  });
}

namespace {

// Thrown inside parse_manifest() only, as nlohmann's own exceptions are.
struct BadManifest {
  std::string what;
};

hash::Digest parsed_digest(const Json& json) {
  const auto digest = hash::parse_digest(json.get<std::string>());
  if (!digest) throw BadManifest{"has an invalid digest"};
  return *digest;
}

std::optional<hash::Digest> parsed_optional_digest(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(parsed_digest(json));
}

std::string parsed_path(const Json& json) {
  std::string path = json.get<std::string>();
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  if (!path.starts_with('/') || path.size() > kLongestPath || normal.native() != path ||
      path.find('\0') != std::string::npos) {
    throw BadManifest{fmt::format("has a path that is not allowed, '{}'", path)};
  }
  return path;
}

std::int64_t parsed_size(const Json& json) {
  const auto size = json.get<std::int64_t>();
  if (size < -1) throw BadManifest{"has a negative size"};
  return size;
}

OutputStatus parsed_status(const std::string& name) {
  for (const OutputStatus status :
       {OutputStatus::kCreated, OutputStatus::kModified, OutputStatus::kRenamed,
        OutputStatus::kLinked, OutputStatus::kDeleted}) {
    if (name == name_of(status)) return status;
  }
  throw BadManifest{fmt::format("has an unknown status, '{}'", name)};
}

store::Git parsed_git(const Json& json) {
  store::Git git;
  git.remote = json.at("remote").get<std::string>();
  git.commit = json.at("commit").get<std::string>();
  git.branch = json.at("branch").get<std::string>();
  git.dirty = json.at("dirty").get<bool>();
  git.diff = json.at("diff").get<std::string>();
  if (!git.diff.empty()) parsed_digest(json.at("diff"));
  git.left_out = json.at("left_out").get<std::vector<std::string>>();
  return git;
}

store::RunRecord parsed_run(const Json& json) {
  store::RunRecord run;
  run.uid = json.at("uid").get<std::string>();
  if (run.uid.size() != 16 || run.uid.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw BadManifest{"has a run without a uid"};
  }
  run.command = json.at("command").get<std::vector<std::string>>();
  if (run.command.empty()) throw BadManifest{"has a run without a command"};
  run.directory = parsed_path(json.at("directory"));
  run.redirects = json.at("redirects").get<std::vector<std::string>>();
  for (const std::string& text : run.redirects) {
    const auto redirect = parse_redirect(text);
    if (!redirect) throw BadManifest{fmt::format("has an invalid redirect, '{}'", text)};
    parsed_path(redirect->path);
  }
  run.options = json.at("options").get<std::vector<std::string>>();
  run.name = json.at("name").get<std::string>();
  if (!run.name.empty() && !store::check_label(run.name)) {
    throw BadManifest{fmt::format("has a run with a name that is not allowed, '{}'", run.name)};
  }
  run.build = json.at("build").get<bool>();
  if (!json.at("exit_code").is_null()) run.exit_code = json.at("exit_code").get<int>();
  run.tracer = json.at("tracer").get<std::string>();
  run.complete = json.at("complete").get<bool>();
  if (json.value("read_a_pipe", false)) run.missed.push_back(store::missed_stdin());
  run.started_unix_ns = json.at("started_unix_ns").get<std::int64_t>();
  run.duration_s = json.at("duration_s").get<double>();
  for (const Json& input : json.at("inputs")) {
    run.inputs.push_back({parsed_path(input.at("path")), parsed_optional_digest(input.at("blake3")),
                          parsed_size(input.at("size"))});
  }
  for (const Json& output : json.at("outputs")) {
    const std::string from = output.at("from").get<std::string>();
    run.outputs.push_back(
        {parsed_path(output.at("path")), parsed_optional_digest(output.at("blake3")),
         parsed_size(output.at("size")), parsed_status(output.at("status").get<std::string>()),
         from.empty() ? from : parsed_path(output.at("from")),
         parsed_optional_digest(output.at("before"))});
  }
  for (const Json& folder : json.at("made_folders")) {
    run.facts.push_back({store::PathFact::Kind::kMadeFolder, parsed_path(folder)});
  }
  run.context.environment = json.at("environment").get<std::map<std::string, std::string>>();
  run.context.machine = json.at("machine");
  if (!run.context.machine.is_object() && !run.context.machine.is_null()) {
    throw BadManifest{"has an invalid machine description"};
  }
  for (const Json& package : json.at("packages")) {
    run.context.packages.push_back({package.at("manager").get<std::string>(),
                                    package.at("name").get<std::string>(),
                                    package.at("version").get<std::string>()});
  }
  if (!json.at("git").is_null()) run.context.git = parsed_git(json.at("git"));
  return run;
}

PackManifest parsed_manifest(const Json& json) {
  if (!json.is_object() || json.value("format", "") != "assay-pack") {
    throw BadManifest{"is not an assay pack"};
  }
  if (json.at("version").get<int>() != kPackVersion) {
    throw BadManifest{fmt::format("has version {}, but this assay reads version {}",
                                  json.at("version").get<int>(), kPackVersion)};
  }
  PackManifest manifest;
  manifest.project = parsed_path(json.at("project"));
  const Json& artifact = json.at("artifact");
  if (!artifact.is_null()) {
    manifest.artifact_path = parsed_path(artifact.at("path"));
    manifest.artifact = parsed_optional_digest(artifact.at("blake3"));
  }
  std::set<std::string> uids;
  for (const Json& json_run : json.at("runs")) {
    store::RunRecord run = parsed_run(json_run);
    if (!uids.insert(run.uid).second) {
      throw BadManifest{fmt::format("has the run {} twice", run.uid)};
    }
    const auto check = [&](const std::string& path) {
      if (!is_reserved(path, manifest.project)) return;
      throw BadManifest{fmt::format("has a path that is not allowed, '{}'", path)};
    };
    for (const store::Input& input : run.inputs) check(input.path);
    for (const store::Output& output : run.outputs) {
      check(output.path);
      check(output.from);
    }
    for (const store::PathFact& fact : run.facts) check(fact.path);
    check(run.directory);
    for (const Redirect& redirect : parse_redirects(run.redirects)) check(redirect.path);
    manifest.runs.push_back(std::move(run));
  }
  if (manifest.runs.empty()) throw BadManifest{"has no runs"};
  for (const Json& content : json.at("contents")) {
    const PackedContent packed{content.at("size").get<std::int64_t>(),
                               content.at("executable").get<bool>()};
    if (packed.size < 0) throw BadManifest{"has a negative size"};
    manifest.contents[parsed_digest(content.at("blake3"))] = packed;
  }
  for (const Json& one : json.at("left_out")) {
    manifest.left_out.push_back(
        {one.at("path").get<std::string>(), one.at("why").get<std::string>()});
  }
  return manifest;
}

// Rejects values with which a hostile manifest could do harm later: nesting so deep that recursion
// overflows, and strings with NULs, which truncate strings in system calls.
bool refuse_odd_values(int depth, Json::parse_event_t, Json& value) {
  constexpr int kDeepest = 64;
  if (depth > kDeepest) throw BadManifest{"has a manifest that is nested too deeply"};
  if (value.is_string() && value.get_ref<const std::string&>().find('\0') != std::string::npos) {
    throw BadManifest{"has a string with a NUL"};
  }
  return true;
}

// The first string, at any depth, that is not UTF-8.
std::optional<std::string> not_utf8(const Json& json) {
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    return base::is_utf8(text) ? std::nullopt : std::optional(text);
  }
  if (!json.is_structured()) return std::nullopt;
  for (const auto& [key, value] : json.items()) {
    if (!base::is_utf8(key)) return key;
    if (auto found = not_utf8(value)) return found;
  }
  return std::nullopt;
}

}  // namespace

base::Result<std::string> manifest_text(const PackManifest& manifest) {
  Json runs = Json::array();
  for (const store::RunRecord& run : manifest.runs) runs.push_back(packed_run_json(run));
  Json contents = Json::array();
  for (const auto& [digest, content] : manifest.contents) {
    contents.push_back(
        {{"blake3", digest.hex()}, {"size", content.size}, {"executable", content.executable}});
  }
  Json left_out = Json::array();
  for (const LeftOutFile& one : manifest.left_out) {
    left_out.push_back({{"path", one.path}, {"why", one.why}});
  }
  Json artifact;
  if (!manifest.artifact_path.empty()) {
    artifact = {{"path", manifest.artifact_path},
                {"blake3", packed_digest_json(manifest.artifact)}};
  }
  const Json json = {{"format", "assay-pack"},
                     {"version", kPackVersion},
                     {"made_by", fmt::format("assay {}", base::version().release)},
                     {"project", manifest.project},
                     {"artifact", std::move(artifact)},
                     {"runs", std::move(runs)},
                     {"contents", std::move(contents)},
                     {"left_out", std::move(left_out)}};
  if (const auto bytes = not_utf8(json)) {
    return base::fail(base::unfit_error(fmt::format("'{}'", *bytes),
                                        "is not UTF-8, which a pack requires", "rename it"));
  }
  return base::json_text(json);
}

base::Result<PackManifest> parse_manifest(const std::string& text, const std::string& where) {
  std::string what;
  try {
    return parsed_manifest(Json::parse(text, refuse_odd_values));
  } catch (const BadManifest& bad) {
    what = bad.what;
  } catch (const Json::exception&) {
    what = "has a damaged manifest, or is not a pack";
  }
  return base::fail(base::usage_error(where, what, "make it again with `assay pack`"));
}

}  // namespace assay::lineage
