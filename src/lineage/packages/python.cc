#include "lineage/packages/python.h"

#include <algorithm>

#include "lineage/packages/python_dist.h"

namespace assay::lineage {
namespace {

bool is_module(std::string_view path) {
  return path.ends_with(".py") || path.ends_with(".pyc") || path.ends_with(".so");
}

// The distribution that installed a module. The one with its name is tried first, then those that
// list it in top_level.txt: reading all file lists takes tens of milliseconds.
PythonDist* owner_of(const std::string& module, std::vector<PythonDist>& all) {
  const std::string first = module.substr(0, module.find('/'));
  const std::string name =
      normal_name(first.ends_with(".py") ? first.substr(0, first.size() - 3) : first);
  for (PythonDist& dist : all) {
    if (dist.is_named(name) && dist.has(module)) return &dist;
  }
  for (PythonDist& dist : all) {
    if (dist.lists(first) && dist.has(module)) return &dist;
  }
  for (PythonDist& dist : all) {
    if (dist.has(module)) return &dist;
  }
  // Created after the installation: compiled code, caches.
  PythonDist* only = nullptr;
  for (PythonDist& dist : all) {
    if (!dist.has(first)) continue;
    if (only != nullptr) return nullptr;  // shared by several
    only = &dist;
  }
  return only;
}

}  // namespace

void PythonPackages::add(std::string_view path, std::size_t end) {
  if (end == 0) {
    if (!is_module(path)) return;
    const std::string_view folder = path.substr(0, path.rfind('/'));
    if (folder == last_folder_) return;
    last_folder_ = folder;
    folders_.insert(last_folder_);
    return;
  }
  // The first two components decide; deeper paths add nothing.
  std::size_t deep = path.find('/', end);
  if (deep != path.npos) deep = path.find('/', deep + 1);
  const bool cached = path.find("__pycache__", end) != path.npos;
  if (!seen_.insert(std::hash<std::string_view>()(cached ? path : path.substr(0, deep))).second)
    return;
  const std::string_view site = path.substr(0, end - 1);
  auto found = sites_.find(site);
  if (found == sites_.end()) found = sites_.emplace(site, std::set<std::string>()).first;
  if (std::string module = module_of(path.substr(end)); !module.empty()) {
    found->second.insert(std::move(module));
  }
}

bool PythonPackages::owns(std::string_view path, std::size_t end) const {
  return end > 0 && owned_.contains(std::string(path.substr(0, end)) + module_of(path.substr(end)));
}

std::vector<store::Package> PythonPackages::packages() {
  std::vector<store::Package> found;
  for (const auto& [site, modules] : sites_) {
    std::vector<PythonDist> all = PythonDist::all_in(root_ / site.substr(1));
    std::set<PythonDist*> used;
    for (const std::string& module : modules) {
      PythonDist* const owner = owner_of(module, all);
      if (owner == nullptr) continue;
      used.insert(owner);
      owned_.insert(site + "/" + module);
    }
    for (PythonDist& dist : all) {
      const auto source = dist.editable_source();
      if (!source) continue;
      const auto at = folders_.lower_bound(*source + "/");
      const bool inside =
          folders_.contains(*source) || (at != folders_.end() && at->starts_with(*source + "/"));
      if (inside) used.insert(&dist);
    }
    for (const PythonDist* dist : used) {
      if (!dist->is_conda()) found.push_back(dist->package());
    }
  }
  return found;
}

}  // namespace assay::lineage
