#include "lineage/reproduce/source_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/process/capture.h"
#include "lineage/source/git_program.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// For `git apply --exclude`, where * ? [ and \ are special.
std::string literal_pattern(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// Moves files aside while git rewrites the tree, and back afterwards.
class SetAside {
 public:
  SetAside(const std::set<std::string>& files, fs::path folder) : folder_(std::move(folder)) {
    std::error_code ignored;
    fs::create_directories(folder_, ignored);
    for (const std::string& file : files) {
      if (!fs::exists(fs::symlink_status(file, ignored))) continue;
      const fs::path aside = folder_ / std::to_string(moved_.size());
      fs::rename(file, aside, ignored);
      if (!ignored) moved_.emplace_back(aside, file);
    }
  }
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;
  ~SetAside() {
    std::error_code ignored;
    for (const auto& [aside, file] : moved_) {
      fs::create_directories(file.parent_path(), ignored);
      fs::rename(aside, file, ignored);
    }
    fs::remove_all(folder_, ignored);
  }

 private:
  fs::path folder_;
  std::vector<std::pair<fs::path, fs::path>> moved_;
};

}  // namespace

SourceCopy::SourceCopy(const base::PathMap& map, std::set<std::string> not_from_source,
                       std::vector<std::string> environment)
    : map_(map),
      not_from_source_(std::move(not_from_source)),
      environment_(without_git_repository(std::move(environment))) {
  environment_.set("LC_ALL", "C");
}

base::Result<std::string> SourceCopy::run(const std::string& folder,
                                          const std::vector<std::string>& arguments,
                                          const std::string& input) const {
  base::CaptureOptions options{.arguments = {"git"},
                               .environment = environment_,
                               .directory = folder,
                               .input = input,
                               .timeout = std::chrono::hours(1)};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  ASSAY_TRY(base::Captured result, base::run_captured(std::move(options)));
  if (!result.ok()) {
    return base::fail(base::failed_error("git " + arguments[0], failure_text(result)));
  }
  return std::move(result.output);
}

// From the repository itself if it has the commit, else from its remote.
base::Result<void> SourceCopy::clone(const store::Git& git, const std::string& folder) {
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  if (git.commit.empty()) {
    ASSAY_TRY_VOID(run(folder, {"init", "--quiet"}));
    return {};
  }
  const bool local = fs::exists(git.root, ignored) &&
                     run(git.root, {"cat-file", "-e", git.commit + "^{commit}"}).has_value();
  if (!local && git.remote.empty()) {
    return base::fail(base::failed_error(
        git.root, fmt::format("no longer has commit {}, and no remote was recorded", git.commit)));
  }
  ASSAY_TRY_VOID(
      run(folder, {"clone", "--quiet", "--no-checkout", "--", local ? git.root : git.remote, "."}));
  // A commit that no branch reaches is not cloned; its objects are read from the original.
  if (local && !run(folder, {"cat-file", "-e", git.commit + "^{commit}"})) {
    ASSAY_TRY(std::string objects,
              run(git.root, {"rev-parse", "--path-format=absolute", "--git-path", "objects"}));
    std::ofstream(fs::path(folder) / ".git/objects/info/alternates") << objects;
  }
  return {};
}

base::Result<void> SourceCopy::apply(const store::Git& git, const std::string& folder) {
  if (git.diff.empty()) return {};
  std::vector<std::string> arguments = {"apply", "--whitespace=nowarn", "--allow-empty"};
  const base::PathMap here(git.root, "");
  for (const std::string& path : not_from_source_) {
    if (!here.inside(path) || path == git.root) continue;
    arguments.push_back("--exclude=" + literal_pattern(path.substr(git.root.size() + 1)) +
                        (path.ends_with('/') ? "*" : ""));
  }
  arguments.emplace_back("-");
  // Untracked files of an earlier state would conflict with those of this state.
  std::vector<std::string> listing = arguments;
  listing.insert(listing.begin() + 1, {"--numstat", "-z"});
  ASSAY_TRY(const std::string listed, run(folder, listing, git.diff));
  std::string_view rest = listed;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t name = line.rfind('\t');
    std::error_code ignored;
    if (name != line.npos) fs::remove(fs::path(folder) / line.substr(name + 1), ignored);
  }
  if (!git.commit.empty()) {
    ASSAY_TRY_VOID(run(folder, {"checkout", "--quiet", "--force", git.commit}));
  }
  ASSAY_TRY_VOID(run(folder, arguments, git.diff));
  return {};
}

base::Result<void> SourceCopy::check_out(const store::Git& git, const std::set<std::string>& made) {
  const std::string folder = map_.path(git.root);
  const auto at = at_.find(git.root);
  if (at != at_.end() && at->second.commit == git.commit && at->second.diff == git.diff) return {};
  if (at == at_.end()) ASSAY_TRY_VOID(clone(git, folder));
  const SetAside aside(made, fs::path(folder) / ".git/assay-made");
  if (!git.commit.empty()) {
    ASSAY_TRY_VOID(run(
        folder, {"-c", "advice.detachedHead=false", "checkout", "--quiet", "--force", git.commit}));
    std::error_code ignored;
    if (at == at_.end() && fs::exists(fs::path(folder) / ".gitmodules", ignored)) {
      // Best effort: missing files are reported as missing inputs.
      (void)run(folder, {"submodule", "--quiet", "update", "--init", "--recursive"});
    }
  }
  ASSAY_TRY_VOID(apply(git, folder));
  at_[git.root] = {git.commit, git.diff};
  return {};
}

}  // namespace assay::lineage
