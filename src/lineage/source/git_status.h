// What `git status --porcelain=v2 --branch -z` says.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::lineage {

struct GitStatus {
  std::string commit;                   // empty: none yet
  std::string branch;                   // empty: detached
  std::size_t changed = 0;              // tracked paths that differ, submodules among them
  std::vector<std::string> submodules;  // those that differ
  std::vector<std::string> untracked;   // a trailing slash: a repository inside this one
};

GitStatus parse_git_status(std::string_view text);

}  // namespace assay::lineage
