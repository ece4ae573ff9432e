#include "lineage/source/git_status.h"

#include <algorithm>

namespace assay::lineage {
namespace {

// The store ignores itself, but the first run looks while it is being made.
bool is_of_our_store(std::string_view file) {
  return file.starts_with(".assay/") || file.find("/.assay/") != std::string_view::npos;
}

// What follows the first `count` fields, which are separated by single spaces: the path, whatever
// it contains.
std::string_view after_fields(std::string_view entry, int count) {
  for (int i = 0; i < count; ++i) {
    const std::size_t space = entry.find(' ');
    if (space == std::string_view::npos) return {};
    entry.remove_prefix(space + 1);
  }
  return entry;
}

// "1 XY S... " against "1 XY N... "
bool is_submodule(std::string_view entry) {
  return after_fields(entry, 2).starts_with('S');
}

}  // namespace

GitStatus parse_git_status(std::string_view text) {
  GitStatus status;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    if (entry.starts_with("# branch.oid ")) {
      const std::string_view commit = entry.substr(13);
      if (commit != "(initial)") status.commit = commit;
    } else if (entry.starts_with("# branch.head ")) {
      const std::string_view branch = entry.substr(14);
      if (branch != "(detached)") status.branch = branch;
    } else if (entry.starts_with("? ")) {
      if (!is_of_our_store(entry.substr(2))) status.untracked.emplace_back(entry.substr(2));
    } else if (entry.starts_with("1 ") || entry.starts_with("u ")) {
      ++status.changed;
      if (is_submodule(entry)) {
        status.submodules.emplace_back(after_fields(entry, entry[0] == '1' ? 8 : 10));
      }
    }
  }
  return status;
}

}  // namespace assay::lineage
