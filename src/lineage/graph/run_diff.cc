#include "lineage/graph/run_diff.h"

#include <fmt/format.h>

#include <map>

#include "hash/blake3.h"
#include "lineage/graph/dag_view.h"
#include "lineage/packages/interpreter.h"

namespace assay::lineage {
namespace {

using Facts = std::map<std::string, std::string>;

void compare(std::vector<RunDifference>& found, const std::string& section, const Facts& before,
             const Facts& after) {
  for (const auto& [key, value] : before) {
    const auto other = after.find(key);
    if (other == after.end()) {
      found.push_back({section, key, value, ""});
    } else if (other->second != value) {
      found.push_back({section, key, value, other->second});
    }
  }
  for (const auto& [key, value] : after) {
    if (!before.contains(key)) found.push_back({section, key, "", value});
  }
}

std::string short_digest(const std::optional<hash::Digest>& digest) {
  return digest ? digest->hex().substr(0, 16) : "not hashed";
}

Facts inputs_of(const store::RunRecord& run) {
  Facts facts;
  for (const store::Input& input : run.inputs) facts[input.path] = short_digest(input.blake3);
  return facts;
}

Facts outputs_of(const store::RunRecord& run) {
  Facts facts;
  for (const store::Output& output : run.outputs) {
    const bool deleted = output.status == store::OutputStatus::kDeleted;
    facts[output.path] = deleted ? "deleted" : short_digest(output.blake3);
  }
  return facts;
}

Facts interpreters_of(const store::RunRecord& run) {
  Facts facts;
  for (const store::PathFact& fact : run.facts) {
    if (const auto one = interpreter_of(fact)) facts[one->started] = to_text(*one);
  }
  return facts;
}

// If several versions of a package were used, all are listed.
Facts packages_of(const store::RunRecord& run) {
  Facts facts;
  for (const store::Package& package : run.context.packages) {
    std::string& versions = facts[fmt::format("{} ({})", package.name, package.manager)];
    versions += (versions.empty() ? "" : ", ") + package.version;
  }
  return facts;
}

Facts git_of(const store::RunRecord& run) {
  Facts facts;
  if (!run.context.git) return facts;
  const store::Git& git = *run.context.git;
  facts["commit"] = git.commit;
  facts["branch"] = git.branch;
  facts["remote"] = git.remote;
  if (!git.diff.empty()) {
    const auto bytes = std::as_bytes(std::span(git.diff.data(), git.diff.size()));
    facts["uncommitted changes"] =
        fmt::format("{} bytes, {}", git.diff.size(), hash::blake3(bytes).hex().substr(0, 16));
  }
  return facts;
}

// Every leaf of a document, by its path in it.
void flatten(const base::Json& json, const std::string& path, Facts& facts) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      flatten(value, path.empty() ? key : path + "." + key, facts);
    }
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i)
      flatten(json[i], fmt::format("{}[{}]", path, i), facts);
  } else {
    facts[path] = json.is_string()
                      ? json.get<std::string>()
                      : json.dump(-1, ' ', false, base::Json::error_handler_t::replace);
  }
}

Facts machine_of(const store::RunRecord& run) {
  Facts facts;
  if (!run.context.machine.is_null()) flatten(run.context.machine, "", facts);
  facts["host"] = run.context.host;
  facts["user"] = run.context.user;
  return facts;
}

Facts outcome_of(const store::RunRecord& run) {
  return {{"status", std::string(store::name_of(run.status))},
          {"exit code", run.exit_code ? std::to_string(*run.exit_code) : ""}};
}

}  // namespace

std::vector<RunDifference> reported_diff(const ReportedValues& before,
                                         const ReportedValues& after) {
  std::vector<RunDifference> found;
  compare(found, "parameter", before.parameters, after.parameters);
  compare(found, "metric", before.metrics, after.metrics);
  return found;
}

std::vector<RunDifference> run_diff(const store::RunRecord& before, const store::RunRecord& after) {
  std::vector<RunDifference> found;
  compare(found, "command",
          {{"arguments", recorded_command_text(before)}, {"directory", before.directory}},
          {{"arguments", recorded_command_text(after)}, {"directory", after.directory}});
  compare(found, "outcome", outcome_of(before), outcome_of(after));
  compare(found, "input", inputs_of(before), inputs_of(after));
  compare(found, "output", outputs_of(before), outputs_of(after));
  compare(found, "interpreter", interpreters_of(before), interpreters_of(after));
  compare(found, "package", packages_of(before), packages_of(after));
  const auto& variables = before.context.environment;
  const auto& others = after.context.environment;
  compare(found, "environment", Facts(variables.begin(), variables.end()),
          Facts(others.begin(), others.end()));
  compare(found, "git", git_of(before), git_of(after));
  compare(found, "machine", machine_of(before), machine_of(after));
  return found;
}

}  // namespace assay::lineage
