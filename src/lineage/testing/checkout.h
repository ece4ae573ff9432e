// Checkout: a git repository for one test; and the bytes of a tree of files, for comparing two.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/process/capture.h"
#include "base/testing/temp_dir.h"
#include "lineage/source/git_program.h"

namespace assay::lineage::testing {

namespace fs = std::filesystem;

inline std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Path -> kind, permission and content, of everything but .git.
inline std::map<std::string, std::string> tree_of(const fs::path& root) {
  std::map<std::string, std::string> tree;
  for (fs::recursive_directory_iterator at(root), end; at != end; ++at) {
    if (at->path().filename() == ".git") {
      at.disable_recursion_pending();
      continue;
    }
    const std::string name = at->path().lexically_relative(root).string();
    struct stat status {};
    ::lstat(at->path().c_str(), &status);
    if (S_ISLNK(status.st_mode)) {
      tree[name] = "link " + fs::read_symlink(at->path()).string();
    } else if (S_ISREG(status.st_mode)) {
      tree[name] = ((status.st_mode & 0100) != 0 ? "program " : "file ") + content_of(at->path());
    }  // git knows no directories
  }
  return tree;
}

class Checkout {
 public:
  explicit Checkout(const fs::path& at)
      : path_(at), environment_(without_git_repository(base::Environment::from_current())) {
    fs::create_directories(at);
    // Independent of the machine's git configuration, and of a git hook that runs the tests.
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"GIT_CONFIG_GLOBAL", "/dev/null"},
                                            {"GIT_CONFIG_SYSTEM", "/dev/null"},
                                            {"GIT_AUTHOR_NAME", "a"},
                                            {"GIT_AUTHOR_EMAIL", "a@b"},
                                            {"GIT_COMMITTER_NAME", "a"},
                                            {"GIT_COMMITTER_EMAIL", "a@b"},
                                            {"GIT_CONFIG_COUNT", "2"},
                                            {"GIT_CONFIG_KEY_0", "protocol.file.allow"},
                                            {"GIT_CONFIG_VALUE_0", "always"},
                                            {"GIT_CONFIG_KEY_1", "core.fsync"},
                                            {"GIT_CONFIG_VALUE_1", "none"}}) {
      environment_.set(name, value);
    }
  }
  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] const std::vector<std::string>& environment() const {
    return environment_.entries();
  }

  std::string git(std::vector<std::string> arguments, const std::string& input = {}) const {
    arguments.insert(arguments.begin(), "git");
    const auto result = base::run_captured(
        {.arguments = arguments, .environment = environment_, .directory = path_, .input = input});
    EXPECT_TRUE(result && result->ok()) << arguments[1] << ": " << (result ? result->errors : "");
    return result ? result->output : std::string();
  }
  void init() const { git({"init", "-q", "-b", "main"}); }
  void commit(const std::string& message = "x") const {
    git({"add", "-A"});
    git({"commit", "-q", "--allow-empty", "-m", message});
  }
  void write(const std::string& name, const std::string& content) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary | std::ios::trunc) << content;
  }

 private:
  fs::path path_;
  base::Environment environment_;
};

}  // namespace assay::lineage::testing
