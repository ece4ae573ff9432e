#include "lineage/pack/relocation.h"

#include <fmt/format.h>

#include <set>
#include <system_error>

#include "lineage/record/redirects.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// The names of files and folders at the top of the project.
std::set<std::string> top_names(const PackManifest& manifest) {
  std::set<std::string> names;
  const std::string top = manifest.project + "/";
  const auto add = [&](const std::string& path) {
    if (!path.starts_with(top)) return;
    names.insert(path.substr(top.size(), path.find('/', top.size()) - top.size()));
  };
  for (const store::RunRecord& run : manifest.runs) {
    for (const store::Input& input : run.inputs) add(input.path);
    for (const store::Output& output : run.outputs) add(output.path);
    for (const store::PathFact& fact : run.facts) add(fact.path);
    for (const Redirect& redirect : parse_redirects(run.redirects)) add(redirect.path);
    add(run.directory);
  }
  return names;
}

std::string outside_name(const PackManifest& manifest) {
  const std::set<std::string> taken = top_names(manifest);
  std::string name = "outside-the-project";
  for (int number = 2; taken.contains(name); ++number) {
    name = fmt::format("outside-the-project-{}", number);
  }
  return name;
}

}  // namespace

Relocation::Relocation(const PackManifest& manifest, const fs::path& folder)
    : project_(manifest.project, folder.string()),
      outside_((folder / outside_name(manifest)).string()) {}

std::string Relocation::path(const std::string& path) const {
  return project_.inside(path) ? project_.path(path) : outside_ + path;
}

void Relocation::apply(store::RunRecord& run) const {
  std::set<std::string, std::less<>> outside;
  const auto move = [&](std::string& moved) {
    if (!project_.inside(moved)) outside.insert(moved);
    moved = path(moved);
  };
  for (store::Input& input : run.inputs) move(input.path);
  for (store::Output& output : run.outputs) {
    move(output.path);
    if (!output.from.empty()) move(output.from);
  }
  for (store::PathFact& fact : run.facts) move(fact.path);
  for (std::string& text : run.redirects) {
    auto redirect = *parse_redirect(text);
    move(redirect.path);
    text = to_text(redirect);
  }
  run.directory = path(run.directory);
  std::error_code ignored;
  fs::create_directories(run.directory, ignored);
  const auto replace = [&](std::string& text) {
    text = base::with_prefix(project_.argument(text), outside, outside_);
  };
  for (std::string& word : run.command) replace(word);
  for (auto& [name, value] : run.context.environment) replace(value);
  run.context.git.reset();
  run.status = run.exit_code == 0 ? store::RunStatus::kDone : store::RunStatus::kFailed;
}

}  // namespace assay::lineage
