// PathTable: every path the run has to do with, and for each, which file stood there before the run
// and which stands there now. What the run did to names is the difference of the two.
//
// Folders are kept once, names in an arena: a path costs 28 bytes, its last component and a slot.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "lineage/track/chunks.h"
#include "lineage/track/id_index.h"
#include "lineage/track/name_arena.h"

namespace assay::lineage {

using FolderId = std::uint32_t;
using PathId = std::uint32_t;
using FileId = std::uint32_t;

namespace path_flag {
inline constexpr std::uint16_t kRead = 1;     // what stood here before the run was read by it
inline constexpr std::uint16_t kNamed = 2;    // a rename, link or removal was about this path
inline constexpr std::uint16_t kCarried = 4;  // what stood here before is elsewhere now
inline constexpr std::uint16_t kTaken = 8;    // some file was bound here at some time
inline constexpr std::uint16_t kLinked = 16;  // what stands here came by linking
inline constexpr std::uint16_t kSame = 32;    // what was opened for writing holds what it held
}  // namespace path_flag

struct Path {
  FolderId folder = 0;
  std::uint32_t name = 0;  // in the arena
  FileId before = 0;       // 0: nothing that we know of
  FileId now = 0;
  PathId from = 0;  // the path from which `now` came here by renaming or linking
  PathId next_in_folder = 0;
  std::uint16_t flags = 0;  // path_flag
  std::uint16_t rule = 0;   // of the filter
};
static_assert(sizeof(Path) == 28);

class PathTable {
 public:
  PathTable();

  // `path` is absolute and canonical; that of the root is "".
  FolderId folder(std::string_view path);
  [[nodiscard]] const std::string& folder_path(FolderId id) const { return folders_[id].path; }
  [[nodiscard]] FolderId folder_end() const { return static_cast<FolderId>(folders_.size()); }
  [[nodiscard]] PathId first_in(FolderId id) const { return folders_[id].first; }
  // What the filter says of the folder as a whole; kept here for whoever asked.
  [[nodiscard]] std::int32_t& verdict(FolderId id) { return folders_[id].verdict; }

  [[nodiscard]] PathId find(FolderId folder, std::string_view name) const;
  PathId find_or_add(FolderId folder, std::string_view name);

  Path& operator[](PathId id) { return paths_[id]; }
  const Path& operator[](PathId id) const { return paths_[id]; }
  [[nodiscard]] PathId end() const { return paths_.end(); }
  [[nodiscard]] std::string_view name(PathId id) const { return names_[paths_[id].name]; }
  [[nodiscard]] const char* name_text(PathId id) const { return names_.text(paths_[id].name); }
  [[nodiscard]] std::string text(PathId id) const;
  // The order of the texts, without making them.
  [[nodiscard]] bool less(PathId a, PathId b) const;

 private:
  struct Folder {
    std::string path;
    PathId first = 0;
    std::int32_t verdict = -1;
  };

  std::deque<Folder> folders_;  // addresses of the texts are given away
  IdIndex folder_index_;
  Chunks<Path> paths_;
  NameArena names_;
  IdIndex path_index_;
};

}  // namespace assay::lineage
