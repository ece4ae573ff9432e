// Runs three git processes at once: where the repository is, its configuration, what changed. If
// something changed, a fourth makes the diff, for which untracked files are added to a copy of the
// index.
#include "lineage/source/git.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/scratch_folder.h"
#include "base/units.h"
#include "lineage/redact/diff.h"
#include "lineage/redact/secret_pattern.h"
#include "lineage/source/git_program.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// Parsed output of `git status --porcelain=v2 --branch -z`.
struct GitStatus {
  std::string commit;                   // empty: none yet
  std::string branch;                   // empty: detached
  std::size_t changed = 0;              // tracked paths that differ, submodules among them
  std::vector<std::string> submodules;  // those that differ
  std::vector<std::string> untracked;   // a trailing slash: a repository inside this one
};

GitStatus parse_git_status(std::string_view text);

// The store has a .gitignore, but the first run reads the status while the store is being created.
bool is_in_store(std::string_view file) {
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
      if (!is_in_store(entry.substr(2))) status.untracked.emplace_back(entry.substr(2));
    } else if (entry.starts_with("1 ") || entry.starts_with("u ")) {
      ++status.changed;
      if (is_submodule(entry)) {
        status.submodules.emplace_back(after_fields(entry, entry[0] == '1' ? 8 : 10));
      }
    }
  }
  return status;
}

struct Checkout {
  fs::path root;
  fs::path index;
  fs::path objects;
  bool sha256 = false;
};

bool is_below_git_folder(const fs::path& directory) {
  std::error_code ignored;
  for (fs::path at = directory;; at = at.parent_path()) {
    if (fs::exists(fs::symlink_status(at / ".git", ignored))) return true;
    if (at == at.parent_path()) return false;
  }
}

bool is_in_tree(const fs::path& directory, const fs::path& tree) {
  std::error_code error;
  const fs::path from = fs::canonical(tree, error);
  if (error) return false;
  const fs::path relative = fs::canonical(directory, error).lexically_relative(from);
  return !error && *relative.begin() != "..";
}

// git for the repository that the directory is in. GIT_DIR is used only if no directory above has a
// .git and GIT_WORK_TREE contains the directory, which is how home directories are kept in git.
// Otherwise a hook has set it, and it names the hook's repository, not the project's.
std::optional<GitProgram> find_repository(const fs::path& directory,
                                          const std::vector<std::string>& environment,
                                          const GitLimits& limits) {
  GitProgram git(directory, environment, limits);
  if (is_below_git_folder(directory)) return git;  // saves a process for most other directories
  const base::Environment given(environment);
  const auto repository = given.get("GIT_DIR");
  const auto tree = given.get("GIT_WORK_TREE");
  if (!repository || !tree || !is_in_tree(directory, directory / *tree)) return std::nullopt;
  git.set("GIT_DIR", (directory / *repository).string());
  git.set("GIT_WORK_TREE", (directory / *tree).string());
  return git;
}

// The lines of rev-parse from the last: only the root may contain a newline, and it comes first.
std::optional<Checkout> parse_checkout(std::string_view text) {
  const auto take_last = [&text]() {
    if (text.ends_with('\n')) text.remove_suffix(1);
    const std::size_t at = text.rfind('\n');
    const std::string_view line = text.substr(at + 1);
    text = text.substr(0, at == std::string_view::npos ? 0 : at + 1);
    return line;
  };
  Checkout checkout;
  checkout.sha256 = take_last() == "sha256";
  checkout.objects = take_last();
  checkout.index = take_last();
  if (text.ends_with('\n')) text.remove_suffix(1);
  checkout.root = text;
  if (checkout.root.empty() || checkout.index.empty()) return std::nullopt;
  return checkout;
}

// "key\nvalue\0…"; later values win, as in git.
std::map<std::string, std::string> parse_config(std::string_view text) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t split = item.find('\n');
    if (split == std::string_view::npos) continue;
    values[std::string(item.substr(0, split))] = item.substr(split + 1);
  }
  return values;
}

// The remote the branch tracks, else origin, else the first one.
std::string remote_url(const std::map<std::string, std::string>& config,
                       const std::string& branch) {
  const auto url_of = [&](const std::string& remote) -> std::string {
    const auto found = config.find("remote." + remote + ".url");
    return found == config.end() ? std::string() : strip_credentials(found->second);
  };
  if (const auto followed = config.find("branch." + branch + ".remote"); followed != config.end()) {
    if (std::string url = url_of(followed->second); !url.empty()) return url;
  }
  if (std::string url = url_of("origin"); !url.empty()) return url;
  for (const auto& [key, value] : config) {
    if (key.starts_with("remote.")) return strip_credentials(value);
  }
  return {};
}

// Adds untracked files to a copy of the index, so that git writes their part of the diff. The copy
// and the one object this creates go to a scratch folder.
base::Result<void> add_untracked(GitProgram& git, const Checkout& checkout,
                                 const std::vector<std::string>& files, const fs::path& scratch) {
  std::error_code error;
  const fs::path index = scratch / "index";
  if (fs::exists(checkout.index, error)) {
    fs::copy_file(checkout.index, index, error);
    // git compares the content of files that are newer than the index. A copy with a newer time
    // would make it trust recorded sizes and times that it should not.
    struct stat status {};
    if (!error && ::stat(checkout.index.c_str(), &status) == 0) {
      const std::array times = {status.st_atim, status.st_mtim};
      ::utimensat(AT_FDCWD, index.c_str(), times.data(), 0);
    }
  }
  if (!error) fs::create_directory(scratch / "objects", error);
  if (error) {
    return base::fail(
        base::unfit_error(scratch.string(), "cannot copy the index: " + error.message()));
  }
  git.set("GIT_INDEX_FILE", index.string());
  git.set("GIT_OBJECT_DIRECTORY", (scratch / "objects").string());
  git.set("GIT_ALTERNATE_OBJECT_DIRECTORIES", checkout.objects.string());
  std::string list;
  for (const std::string& file : files) (list += file) += '\0';
  // Forced: what git listed as untracked may be ignored by now.
  ASSAY_TRY(const base::Captured added, git.run({"add", "--force", "--intent-to-add", "--sparse",
                                                 "--pathspec-from-file=-", "--pathspec-file-nul"},
                                                std::move(list)));
  if (!added.ok()) return base::fail(base::unfit_error("", failure_text(added)));
  return {};
}

base::Result<std::string> diff_against_commit(GitProgram git, const Checkout& checkout,
                                              const GitStatus& status,
                                              const std::vector<std::string>& untracked) {
  std::optional<base::ScratchFolder> scratch;  // git reads it below
  if (!untracked.empty()) {
    ASSAY_TRY(base::ScratchFolder made, base::ScratchFolder::make("assay-git-"));
    scratch.emplace(std::move(made));
    ASSAY_TRY_VOID(add_untracked(git, checkout, untracked, scratch->path()));
  }
  // git knows the empty tree even where no repository contains it.
  const std::string empty_tree =
      checkout.sha256 ? "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
                      : "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
  ASSAY_TRY(
      base::Captured diff,
      git.run({"diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv",
               "--no-renames", "--no-relative", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/",
               "--ignore-submodules=all", "--diff-algorithm=myers",
               status.commit.empty() ? empty_tree : status.commit, "--"}));
  if (!diff.ok()) return base::fail(base::unfit_error("", failure_text(diff)));
  return std::move(diff.output);
}

// The untracked files that go into the diff; the others are named in `left_out`.
std::vector<std::string> small_enough(const fs::path& root, const GitStatus& status,
                                      const GitLimits& limits, std::vector<std::string>& left_out) {
  std::vector<std::string> chosen;
  std::int64_t total = 0;
  for (const std::string& file : status.untracked) {
    const fs::path path = root / file;
    struct stat found {};
    if (file.ends_with('/')) {
      left_out.push_back(file + " (a repository of its own)");
    } else if (::lstat(path.c_str(), &found) != 0) {
      continue;  // removed since `git status`
    } else if (is_secret_file(file)) {
      left_out.push_back(file + " (it may hold secrets)");
    } else if (S_ISREG(found.st_mode) && ::access(path.c_str(), R_OK) != 0) {
      left_out.push_back(file + " (cannot be read)");
    } else if (found.st_size > limits.untracked_file ||
               total + found.st_size > limits.untracked_total) {
      left_out.push_back(fmt::format("{} ({})", file, to_text(base::Bytes(found.st_size))));
    } else {
      total += found.st_size;
      chosen.push_back(file);
    }
  }
  return chosen;
}

// Prints paths relative to the root, wherever in the tree git runs.
base::Result<base::CapturedProcess> start_status(const GitProgram& git,
                                                 const std::string& untracked) {
  return git.start({"status", "--porcelain=v2", "--branch", "-z", "--no-ahead-behind",
                    "--no-renames", "--ignore-submodules=none", untracked});
}

}  // namespace

GitState git_state(const fs::path& directory, const std::vector<std::string>& environment,
                   const GitLimits& limits) {
  std::optional<GitProgram> repository = find_repository(directory, environment, limits);
  if (!repository) return {};
  GitProgram& git = *repository;

  auto status_child = start_status(git, "--untracked-files=all");  // first: it takes longest
  auto location_child =
      git.start({"rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "index",
                 "--git-path", "objects", "--show-object-format"});
  auto config_child = git.start({"config", "-z", "--get-regexp",
                                 "^(remote\\..*\\.url|branch\\..*\\.remote|"
                                 "status\\.showuntrackedfiles)$"});
  if (!location_child || !config_child || !status_child)
    return {std::nullopt, "git is not installed"};
  const base::Captured location = location_child->finish();
  const std::optional<Checkout> checkout =
      location.ok() ? parse_checkout(location.output) : std::nullopt;
  if (!checkout) {
    // Inside a bare repository or inside .git: there is no working tree.
    if (location.errors.find("must be run in a work tree") != std::string::npos) return {};
    return {std::nullopt, failure_text(location)};
  }
  const auto config = parse_config(config_child->finish().output);
  // Users set this to "no" for home directories kept in git, where listing untracked files takes
  // minutes.
  const auto shown = config.find("status.showuntrackedfiles");
  const bool only_tracked = shown != config.end() && shown->second == "no";
  if (only_tracked) {
    status_child = start_status(git, "--untracked-files=no");
    if (!status_child) return {std::nullopt, status_child.error().what};
  }
  const base::Captured printed = status_child->finish();
  if (!printed.ok()) return {std::nullopt, failure_text(printed)};
  const GitStatus status = parse_git_status(printed.output);
  git.move_to(checkout->root);

  store::Git found{.root = checkout->root.string(),
                   .commit = status.commit,
                   .branch = status.branch,
                   .remote = remote_url(config, status.branch),
                   .dirty = status.changed > 0 || !status.untracked.empty()};
  if (only_tracked)
    found.left_out.emplace_back("untracked files (status.showUntrackedFiles is no)");
  for (const std::string& path : status.submodules) {
    found.left_out.push_back(path + " (a submodule that differs from its commit)");
  }
  const auto untracked = small_enough(checkout->root, status, limits, found.left_out);
  if (status.changed > status.submodules.size() || !untracked.empty()) {
    auto diff = diff_against_commit(git, *checkout, status, untracked);
    if (!diff) found.left_out.push_back("the diff (" + diff.error().what + ")");
    if (diff) found.diff = redact_diff(*std::move(diff), found.left_out);
  }
  if (found.diff.find("\n+version https://git-lfs.github.com/spec/") != std::string::npos) {
    found.left_out.emplace_back("contents of git-lfs files (the diff has their pointers)");
  }
  return {std::move(found), {}};
}

}  // namespace assay::lineage
