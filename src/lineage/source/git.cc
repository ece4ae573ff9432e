// See git.h. Three calls of git at once: where the repository is, how it is set up, what changed.
// Only if something did, one more for the difference, before which untracked files are entered into
// a copy of the index.
#include "lineage/source/git.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>
#include <string_view>

#include "base/units.h"
#include "lineage/redact/secret_diff.h"
#include "lineage/redact/secret_shape.h"
#include "lineage/source/git_program.h"
#include "lineage/source/git_status.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

struct Checkout {
  fs::path root;
  fs::path index;
  fs::path objects;
  bool sha256 = false;
};

// Asking git costs a process; most directories that are no checkout can be told without.
bool may_be_checkout(const fs::path& directory, const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    if (entry.starts_with("GIT_DIR=")) return true;
  }
  std::error_code ignored;
  for (fs::path at = directory;; at = at.parent_path()) {
    if (fs::exists(fs::symlink_status(at / ".git", ignored))) return true;
    if (at == at.parent_path()) return false;
  }
}

// The lines of rev-parse in reverse: only the root may hold a newline, and it comes first.
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

// The remote the branch follows, else origin, else the only one there is.
std::string remote_url(const std::map<std::string, std::string>& config,
                       const std::string& branch) {
  const auto url_of = [&](const std::string& remote) -> std::string {
    const auto found = config.find("remote." + remote + ".url");
    return found == config.end() ? std::string() : without_credentials(found->second);
  };
  if (const auto followed = config.find("branch." + branch + ".remote"); followed != config.end()) {
    if (std::string url = url_of(followed->second); !url.empty()) return url;
  }
  if (std::string url = url_of("origin"); !url.empty()) return url;
  for (const auto& [key, value] : config) {
    if (key.starts_with("remote.")) return without_credentials(value);
  }
  return {};
}

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path(ignored_) / "assay-git-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    if (!path_.empty()) fs::remove_all(path_, ignored_);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  std::error_code ignored_;
  fs::path path_;
};

// Enters untracked files into a copy of the index, so that git itself writes their part of the
// difference. The copy and the one object that this makes go to a folder of ours.
base::Result<void> enter_untracked(GitProgram& git, const Checkout& checkout,
                                   const std::vector<std::string>& files, const fs::path& scratch) {
  std::error_code error;
  const fs::path index = scratch / "index";
  if (fs::exists(checkout.index, error)) {
    fs::copy_file(checkout.index, index, error);
    // git takes a file that is newer than the index for one that may have changed unseen, and looks
    // at its content. A copy with a time of its own would make it trust what it should not.
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
  git.set("GIT_INDEX_FILE=" + index.string());
  git.set("GIT_OBJECT_DIRECTORY=" + (scratch / "objects").string());
  git.set("GIT_ALTERNATE_OBJECT_DIRECTORIES=" + checkout.objects.string());
  std::string list;
  for (const std::string& file : files) (list += file) += '\0';
  // Forced: what git itself listed as untracked may have come to be ignored since.
  ASSAY_TRY(const base::Captured added, git.run({"add", "--force", "--intent-to-add", "--sparse",
                                                 "--pathspec-from-file=-", "--pathspec-file-nul"},
                                                std::move(list)));
  if (!added.ok()) return base::fail(base::unfit_error("", failure_text(added)));
  return {};
}

base::Result<std::string> difference(GitProgram git, const Checkout& checkout,
                                     const GitStatus& status,
                                     const std::vector<std::string>& untracked) {
  const ScratchFolder scratch;
  if (!untracked.empty()) {
    if (scratch.path().empty()) {
      return base::fail(base::unfit_error("", "no folder for temporary files"));
    }
    ASSAY_TRY_VOID(enter_untracked(git, checkout, untracked, scratch.path()));
  }
  // The empty tree is known to every git without being in any repository.
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

// Those that go into the difference; the others are named in `left_out`.
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
      continue;  // gone since git looked
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

// Paths come relative to the root, wherever in the tree git is run.
base::Result<base::CapturedProcess> start_status(const GitProgram& git,
                                                 const std::string& untracked) {
  return git.start({"status", "--porcelain=v2", "--branch", "-z", "--no-ahead-behind",
                    "--no-renames", "--ignore-submodules=none", untracked});
}

}  // namespace

GitState git_state(const fs::path& directory, const std::vector<std::string>& environment,
                   const GitLimits& limits) {
  if (!may_be_checkout(directory, environment)) return {};
  GitProgram git(directory, environment, limits);

  auto status_asked = start_status(git, "--untracked-files=all");  // first: it takes longest
  auto place_asked =
      git.start({"rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "index",
                 "--git-path", "objects", "--show-object-format"});
  auto config_asked = git.start({"config", "-z", "--get-regexp",
                                 "^(remote\\..*\\.url|branch\\..*\\.remote|"
                                 "status\\.showuntrackedfiles)$"});
  if (!place_asked || !config_asked || !status_asked) return {std::nullopt, "git is not installed"};
  const base::Captured place_told = place_asked->finish();
  const std::optional<Checkout> checkout =
      place_told.ok() ? parse_checkout(place_told.output) : std::nullopt;
  if (!checkout) {
    // Inside a bare repository, or inside .git: there is no tree whose state could matter.
    if (place_told.errors.find("must be run in a work tree") != std::string::npos) return {};
    return {std::nullopt, failure_text(place_told)};
  }
  const auto config = parse_config(config_asked->finish().output);
  // A home directory kept in git says "no" because looking through it takes minutes.
  const auto shown = config.find("status.showuntrackedfiles");
  const bool only_tracked = shown != config.end() && shown->second == "no";
  if (only_tracked) {
    status_asked = start_status(git, "--untracked-files=no");
    if (!status_asked) return {std::nullopt, status_asked.error().what};
  }
  const base::Captured told = status_asked->finish();
  if (!told.ok()) return {std::nullopt, failure_text(told)};
  const GitStatus status = parse_git_status(told.output);
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
    auto diff = difference(git, *checkout, status, untracked);
    if (!diff) found.left_out.push_back("the difference (" + diff.error().what + ")");
    if (diff) found.diff = without_secrets_in_diff(*std::move(diff), found.left_out);
  }
  if (found.diff.find("\n+version https://git-lfs.github.com/spec/") != std::string::npos) {
    found.left_out.emplace_back("contents that git-lfs keeps (the difference has its pointers)");
  }
  return {std::move(found), {}};
}

}  // namespace assay::lineage
