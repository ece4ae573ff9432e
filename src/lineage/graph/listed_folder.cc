#include "lineage/graph/listed_folder.h"

#include <algorithm>
#include <optional>
#include <set>

namespace assay::lineage {
namespace {

bool means_nothing(std::string_view name) {
  return name.starts_with('.') || name == "__pycache__/";
}

bool is_python(std::string_view kind) {
  return kind == ".py" || kind == ".pyc" || kind == ".pyi";
}

// The first name that was in a listed folder and is gone, except names that stages write or remove.
std::optional<std::string> gone_name(const LiveStages& stages, const store::PathFact& fact,
                                     const std::vector<std::string>& names_now) {
  const std::set<std::string_view> now(names_now.begin(), names_now.end());
  const std::string folder = fact.path + "/";
  for (const std::string& name : fact.names) {
    if (now.contains(name) || means_nothing(name)) continue;
    if (name.ends_with('/')) {
      if (!stages.is_written_below(folder + name.substr(0, name.size() - 1))) return name;
    } else if (!is_python(extension_of(name)) && !stages.owner(folder + name)) {
      return name;
    }
  }
  return std::nullopt;
}

}  // namespace

void check_listed(const LiveStages& stages, std::size_t stage, const store::PathFact& fact,
                  const DiskQueries& disk, std::vector<Reason>& reasons) {
  const auto now = disk.names(fact.path);
  if (!now) {
    // A missing folder of outputs is reported as missing outputs.
    if (disk.exists && !disk.exists(fact.path) && !stages.is_written_below(fact.path)) {
      reasons.push_back({Cause::kListedGone, fact.path});
    }
    return;
  }
  const std::set<std::string_view> then(fact.names.begin(), fact.names.end());
  const LiveStages::FolderReads& reads = stages.reads_in(stage, fact.path);
  const std::string folder = fact.path + "/";
  // Interpreters list such folders, and the working directory, to find modules, so a new name there
  // is no reason by itself.
  const bool importable =
      fact.path == stages.runs()[stage].directory ||
      std::any_of(fact.names.begin(), fact.names.end(),
                  [](const std::string& name) { return name.ends_with(".py"); });
  const bool reads_below = reads.below && !importable;
  const bool any = reads.kinds.empty() && !reads_below && !importable;
  for (const std::string& name : *now) {
    if (then.contains(name) || means_nothing(name)) continue;
    bool counts = false;
    if (name.ends_with('/')) {
      counts = (any || reads_below) &&
               !stages.is_written_below(folder + name.substr(0, name.size() - 1));
    } else {
      const std::string_view kind = extension_of(name);
      counts =
          (any || reads.kinds.contains(kind)) && !is_python(kind) && !stages.owner(folder + name);
    }
    if (!counts) continue;
    reasons.push_back({Cause::kListedMore, folder + name});
    break;
  }
  if (!any) return;
  if (const auto name = gone_name(stages, fact, *now)) {
    reasons.push_back({Cause::kListedGone, folder + *name});
  }
}

}  // namespace assay::lineage
