// Places: turns the paths of events, which may go through symbolic links, "." and "..", into a
// canonical folder and a name in it. The last component is taken as it is: whether it is followed
// depends on the call.
//
// Folders are resolved once and remembered. What is remembered can become wrong when a link or a
// folder is replaced; whoever finds a file that should not be there calls forget().
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "lineage/track/path_table.h"

namespace assay::lineage {

struct Place {
  FolderId folder = 0;
  std::string_view name;  // inside the path that was asked for
};

class Places {
 public:
  explicit Places(PathTable& paths) : paths_(paths) {}

  // Folder 0 where the path names no file (it is relative, or ends with "/", "." or "..").
  Place of(std::string_view path);
  // The same, asked of the file system again: a link on the way may lead elsewhere by now.
  Place again(std::string_view path);
  // Of a path whose folder is known to hold no links.
  Place of_canonical(std::string_view path);
  void forget();

 private:
  FolderId resolve(const std::string& folder);

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return hash_of(text); }
  };

  PathTable& paths_;
  std::unordered_map<std::string, FolderId, Hash, std::equal_to<>> known_;
  const std::pair<const std::string, FolderId>* last_ = nullptr;  // in known_
};

// If `path` is a symbolic link: where it leads, whether or not something is there.
bool link_target(std::string_view path, std::string& target);

// Without "//", "." and, as far as text can tell, "..": for folders that are no more.
std::string tidied(std::string_view folder);

}  // namespace assay::lineage
