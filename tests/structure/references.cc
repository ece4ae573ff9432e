#include "structure/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string_view>

namespace assay::structure {
namespace {

namespace fs = std::filesystem;

// Folders of the repository; build trees and what git ignores are not among them.
constexpr const char* kFolders[] = {"apps",    "bench",   "cmake", "docs",
                                    "presets", "scripts", "src",   "tests"};

class References {
 public:
  explicit References(fs::path root) : root_(std::move(root)) {
    for (const auto& entry : fs::directory_iterator(root_)) {
      if (entry.is_regular_file()) add(entry.path());
    }
    for (const char* folder : kFolders) {
      if (!fs::exists(root_ / folder)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root_ / folder)) {
        if (entry.is_regular_file()) add(entry.path());
      }
    }
  }

  std::vector<std::string> check() {
    static const std::set<std::string> kSources = {".cc", ".h", ".cu", ".cuh", ".c", ".inc"};
    for (const std::string& file : files_) {
      if (!kSources.contains(fs::path(file).extension()) || file.starts_with("tests/")) continue;
      std::ifstream stream(root_ / file);
      code_.append(std::istreambuf_iterator<char>(stream), {}).push_back('\n');
    }
    for (const std::string& file : files_) {
      if (file.starts_with("bench/results/") || file == "CHANGELOG.md") continue;  // history
      if (file == "tests/structure/references_test.cc") continue;  // its examples dangle
      const std::string extension = fs::path(file).extension();
      if (kSources.contains(extension)) check_comments(file);
      if (extension == ".md") check_page(file);
    }
    return problems_;
  }

 private:
  void add(const fs::path& path) {
    const std::string file = fs::relative(path, root_).string();
    files_.insert(file);
    by_name_[path.filename()].push_back(file);
  }

  // Whether a path, or the end of one, is a file of the repository.
  [[nodiscard]] bool exists(const std::string& name) const {
    const auto found = by_name_.find(fs::path(name).filename());
    if (found == by_name_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(), [&](const std::string& file) {
      return file == name || file.ends_with("/" + name);
    });
  }

  // Names in examples, and files of the system and of other projects (src/graph is NCCL's).
  static bool is_foreign(const std::string& name) {
    static const std::regex kForeign(
        R"((.*/)?(x|y|foo|bar|NAME|NNNN_\w+|job|suite|CASE)(_\w+)?\.\w+|src/graph/.*|linux/.*|asm/.*|unistd_.*|sqlite3\.h|cuda\w*\.h|vmlinux\.h)");
    return std::regex_match(name, kForeign);
  }

  void check_name(const std::string& file, int line, const std::string& name) {
    if (exists(name) || is_foreign(name)) return;
    problems_.push_back(fmt::format("{}:{}: names {}, which does not exist", file, line, name));
  }

  void check_comments(const std::string& file) {
    // Not <stdio.h>, nor what is part of a longer path or an address.
    static const std::regex kName(
        R"((?:^|[^\w<./-])([A-Za-z_][\w/-]*\.(?:h|cc|cu|cuh|md|cmake|inc|sql))\b(?!>))");
    each_line(file, [&](int number, const std::string& line) {
      const std::size_t start = line.find("//");
      if (start == std::string::npos || line.find('.', start) == std::string::npos) return;
      const std::string comment = line.substr(start);
      for (std::sregex_iterator at(comment.begin(), comment.end(), kName), end; at != end; ++at) {
        check_name(file, number, (*at)[1]);
      }
    });
  }

  void check_page(const std::string& file) {
    static const std::regex kLink(R"(\]\(([^)#\s]+)(#[^)]*)?\))");
    static const std::regex kName(R"(`([A-Za-z_][\w/-]*\.(?:h|cc|cu|cuh|cmake|inc))`)");
    static const std::regex kFunction(R"(`(?:\w+::)*([a-z]\w*_\w+)\(\)`)");
    // Files and folders, in text and tables too; not patterns such as apps/assay/<verb>/.
    static const std::regex kPath(
        R"((?:^|[^\w./<-])((?:src|apps|tests)/[\w./-]*\w)(?![\w*<{]|/[\w*<{]|/?\xe2\x80\xa6))");
    each_line(file, [&](int number, const std::string& line) {
      for (std::sregex_iterator at(line.begin(), line.end(), kLink), end; at != end; ++at) {
        const std::string target = (*at)[1];
        if (target.find("://") != std::string::npos) continue;
        if (!fs::exists(root_ / fs::path(file).parent_path() / target)) {
          problems_.push_back(
              fmt::format("{}:{}: links to {}, which does not exist", file, number, target));
        }
      }
      for (std::sregex_iterator at(line.begin(), line.end(), kName), end; at != end; ++at) {
        check_name(file, number, (*at)[1]);
      }
      for (std::sregex_iterator at(line.begin(), line.end(), kPath), end; at != end; ++at) {
        check_path(file, number, (*at)[1]);
      }
      for (std::sregex_iterator at(line.begin(), line.end(), kFunction), end; at != end; ++at) {
        if (is_called((*at)[1].str() + "(")) continue;
        problems_.push_back(
            fmt::format("{}:{}: names {}(), which does not exist", file, number, (*at)[1].str()));
      }
    });
  }

  // Whether the code has a function of the name, which ends in "(".
  [[nodiscard]] bool is_called(std::string_view name) const {
    for (std::size_t at = code_.find(name); at != std::string::npos;
         at = code_.find(name, at + 1)) {
      const unsigned char before = at == 0 ? ' ' : static_cast<unsigned char>(code_[at - 1]);
      if (std::isalnum(before) == 0 && before != '_') return true;
    }
    return false;
  }

  // A file, a folder, or both files of a pair: src/plot/axis.
  void check_path(const std::string& file, int line, const std::string& path) {
    static const std::regex kPlaceholder("[A-Z]+");  // apps/assay/NAME
    if (fs::exists(root_ / path) || fs::exists(root_ / (path + ".h")) || is_foreign(path)) return;
    if (std::regex_match(fs::path(path).filename().string(), kPlaceholder)) return;
    problems_.push_back(fmt::format("{}:{}: names {}, which does not exist", file, line, path));
  }

  template <class Visit>
  void each_line(const std::string& file, const Visit& visit) const {
    std::ifstream stream(root_ / file);
    int number = 0;
    for (std::string line; std::getline(stream, line);) visit(++number, line);
  }

  fs::path root_;
  std::set<std::string> files_;
  std::string code_;                                         // of all sources but those of tests/
  std::map<std::string, std::vector<std::string>> by_name_;  // file name -> paths that end in it
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> dangling_references(const fs::path& root) {
  return References(root).check();
}

}  // namespace assay::structure
