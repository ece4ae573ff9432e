#include "lineage/track/path_table.h"

#include <algorithm>

namespace assay::lineage {

PathTable::PathTable() {
  folders_.emplace_back();  // 0: none
}

FolderId PathTable::folder(std::string_view path) {
  const std::uint64_t hash = hash_of(path);
  const FolderId known =
      folder_index_.find(hash, [&](FolderId id) { return folders_[id].path == path; });
  if (known != 0) return known;
  folders_.push_back({.path = std::string(path)});
  const auto id = static_cast<FolderId>(folders_.size() - 1);
  folder_index_.insert(hash, id, [&](FolderId other) { return hash_of(folders_[other].path); });
  return id;
}

PathId PathTable::find(FolderId folder, std::string_view name) const {
  return path_index_.find(hash_of(name, folder), [&](PathId id) {
    return paths_[id].folder == folder && names_[paths_[id].name] == name;
  });
}

PathId PathTable::find_or_add(FolderId folder, std::string_view name) {
  if (const PathId known = find(folder, name)) return known;
  Path path;
  path.folder = folder;
  path.name = names_.add(name);
  path.next_in_folder = folders_[folder].first;
  const PathId id = paths_.add(path);
  folders_[folder].first = id;
  path_index_.insert(hash_of(name, folder), id, [&](PathId other) {
    return hash_of(names_[paths_[other].name], paths_[other].folder);
  });
  return id;
}

std::string PathTable::text(PathId id) const {
  const std::string& folder = folders_[paths_[id].folder].path;
  const std::string_view base = name(id);
  std::string text;
  text.reserve(folder.size() + 1 + base.size());
  text.append(folder).append(1, '/').append(base);
  return text;
}

bool PathTable::less(PathId a, PathId b) const {
  if (paths_[a].folder == paths_[b].folder) return name(a) < name(b);
  const std::string_view folder_a = folders_[paths_[a].folder].path;
  const std::string_view folder_b = folders_[paths_[b].folder].path;
  const std::size_t common = std::min(folder_a.size(), folder_b.size());
  const std::string_view head = folder_a.substr(0, common);
  if (const int order = head.compare(folder_b.substr(0, common))) return order < 0;
  // The rest character by character, as if folder, slash and name were one string; -1 at its end.
  const auto character = [common](std::string_view folder, std::string_view base, std::size_t at) {
    at += common;
    if (at < folder.size()) return int{static_cast<unsigned char>(folder[at])};
    if (at == folder.size()) return int{'/'};
    at -= folder.size() + 1;
    return at < base.size() ? int{static_cast<unsigned char>(base[at])} : -1;
  };
  for (std::size_t at = 0;; ++at) {
    const int char_a = character(folder_a, name(a), at);
    const int char_b = character(folder_b, name(b), at);
    if (char_a != char_b) return char_a < char_b;
    if (char_a < 0) return false;
  }
}

}  // namespace assay::lineage
