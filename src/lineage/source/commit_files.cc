#include "lineage/source/commit_files.h"

#include <algorithm>
#include <string_view>

#include "base/process/environment.h"
#include "lineage/source/git_program.h"

namespace assay::lineage {
namespace {

// Empty for a path that is not in the repository.
std::string relative_to(const store::Git& git, const std::string& path) {
  const bool inside = path.size() > git.root.size() + 1 && path.starts_with(git.root) &&
                      path[git.root.size()] == '/';
  return inside ? path.substr(git.root.size() + 1) : "";
}

// Searches for the header line of the file's section. git appends a tab to names with blanks, and
// quotes unusual ones.
bool in_diff(const store::Git& git, const std::string& relative) {
  const std::string name = "b/" + relative;
  for (std::size_t at = git.diff.find(name); at != std::string::npos;
       at = git.diff.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at > 0 && (git.diff[at - 1] == ' ' || git.diff[at - 1] == '"');
    const bool ends = end < git.diff.size() &&
                      std::string_view("\n\t\"").find(git.diff[end]) != std::string_view::npos;
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace

CommitFiles::CommitFiles(const std::map<std::string, std::string>& environment)
    : environment_(base::Environment::from_values(environment).entries()) {}

bool CommitFiles::has(const store::Git& git, const std::string& path) {
  const std::string relative = relative_to(git, path);
  return !relative.empty() && (in_diff(git, relative) || files_of(git).contains(relative));
}

bool CommitFiles::in_commit(const store::Git& git, const std::string& path) {
  const std::string relative = relative_to(git, path);
  return !relative.empty() && files_of(git).contains(relative);
}

bool CommitFiles::has_unchanged(const store::Git& git, const std::string& path) {
  const std::string relative = relative_to(git, path);
  return !relative.empty() && !in_diff(git, relative) && files_of(git).contains(relative);
}

const std::set<std::string>& CommitFiles::files_of(const store::Git& git) {
  const auto [found, added] = files_.try_emplace(git.root + "@" + git.commit);
  if (!added || git.commit.empty()) return found->second;
  const GitProgram program(git.root, environment_, {});
  const auto listed =
      program.run({"ls-tree", "-r", "-z", "--name-only", "--full-tree", git.commit});
  if (!listed || !listed->ok()) return found->second;
  std::string_view text = listed->output;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find('\0'));
    found->second.emplace(name);
    text.remove_prefix(std::min(name.size() + 1, text.size()));
  }
  return found->second;
}

}  // namespace assay::lineage
