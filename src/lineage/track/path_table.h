// PathTable: every path the run uses, with the file that was there before the run and the one that
// is there now. The difference between the two is what the run did to names.
//
// Folders are stored once and names in an arena: a path costs 28 bytes, its last component and a
// hash slot.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "lineage/track/containers.h"

namespace assay::lineage {

using FolderId = std::uint32_t;
using PathId = std::uint32_t;
using FileId = std::uint32_t;

namespace path_flag {
inline constexpr std::uint16_t kRead = 1;       // the run read the file that was here before
inline constexpr std::uint16_t kNamed = 2;      // renamed, linked or removed here
inline constexpr std::uint16_t kMovedAway = 4;  // the file that was here before has moved
inline constexpr std::uint16_t kTaken = 8;      // a file has been bound here at some time
inline constexpr std::uint16_t kLinked = 16;    // the file here came by linking
inline constexpr std::uint16_t kSame = 32;      // opened for writing, with unchanged content
inline constexpr std::uint16_t kGone = 64;  // created by the run, then removed or moved by others
}  // namespace path_flag

struct Path {
  FolderId folder = 0;
  std::uint32_t name = 0;  // in the arena
  FileId before = 0;       // 0: none known
  FileId now = 0;
  PathId from = 0;  // the path from which `now` was renamed or linked
  PathId next_in_folder = 0;
  std::uint16_t flags = 0;  // path_flag
  std::uint16_t rule = 0;   // of the filter
};
static_assert(sizeof(Path) == 28);

class PathTable {
 public:
  PathTable();

  // `path` is absolute and canonical; the root is "".
  FolderId folder(std::string_view path);
  [[nodiscard]] const std::string& folder_path(FolderId id) const { return folders_[id].path; }
  [[nodiscard]] FolderId folder_end() const { return static_cast<FolderId>(folders_.size()); }
  [[nodiscard]] PathId first_in(FolderId id) const { return folders_[id].first; }
  // Caches the filter's rule for the folder; -1: not known yet.
  [[nodiscard]] std::int32_t& folder_rule(FolderId id) { return folders_[id].rule; }

  [[nodiscard]] PathId find(FolderId folder, std::string_view name) const;
  PathId find_or_add(FolderId folder, std::string_view name);

  Path& operator[](PathId id) { return paths_[id]; }
  const Path& operator[](PathId id) const { return paths_[id]; }
  [[nodiscard]] PathId end() const { return paths_.end(); }
  [[nodiscard]] std::string_view name(PathId id) const { return names_[paths_[id].name]; }
  [[nodiscard]] const char* name_text(PathId id) const { return names_.text(paths_[id].name); }
  [[nodiscard]] std::string text(PathId id) const;
  // Compares as text(a) < text(b) would, without building the strings.
  [[nodiscard]] bool less(PathId a, PathId b) const;

 private:
  struct Folder {
    std::string path;
    PathId first = 0;
    std::int32_t rule = -1;
  };

  std::deque<Folder> folders_;  // callers keep references to the paths
  IdIndex folder_index_;
  Chunks<Path> paths_;
  NameArena names_;
  IdIndex path_index_;
};

}  // namespace assay::lineage
