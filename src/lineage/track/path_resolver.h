// PathResolver: turns the paths of events, which may contain symbolic links, "." and "..", into a
// canonical folder and a name in it. The last component is not resolved: whether it is followed
// depends on the system call.
//
// Folders are resolved once and cached. The cache becomes stale when a link or a folder is
// replaced; a caller that finds an unexpected file calls forget() or resolve_again().
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "lineage/track/path_table.h"

namespace assay::lineage {

struct ResolvedPath {
  FolderId folder = 0;    // 0: the path cannot name a file
  std::string_view name;  // a part of the path that was passed
};

class PathResolver {
 public:
  explicit PathResolver(PathTable& paths) : paths_(paths) {}

  // Folder 0 if the path is relative or ends with "/", "." or "..".
  ResolvedPath resolve(std::string_view path);
  // The same without the cache.
  ResolvedPath resolve_again(std::string_view path);
  // For a path whose folder contains no links.
  ResolvedPath from_canonical(std::string_view path);
  void forget();

 private:
  FolderId resolve_folder(const std::string& folder);

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return hash_of(text); }
  };

  PathTable& paths_;
  std::unordered_map<std::string, FolderId, Hash, std::equal_to<>> known_;
  const std::pair<const std::string, FolderId>* last_ = nullptr;  // in known_
};

// If `path` is a symbolic link: its target, whether or not that exists.
bool link_target(std::string_view path, std::string& target);

// Without "//", "." and "..", by text alone: for folders that no longer exist.
std::string normalized(std::string_view folder);

}  // namespace assay::lineage
