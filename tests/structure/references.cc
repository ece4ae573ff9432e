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
constexpr const char* kFolders[] = {"apps",   "bench",   "cmake", "docs", "presets",
                                    "python", "scripts", "src",   "tests"};

// Whether `code` has the function of the name, which ends in "(".
bool has_function(std::string_view code, std::string_view name) {
  for (std::size_t at = code.find(name); at != std::string::npos; at = code.find(name, at + 1)) {
    const unsigned char before = at == 0 ? ' ' : static_cast<unsigned char>(code[at - 1]);
    if (std::isalnum(before) == 0 && before != '_') return true;
  }
  return false;
}

// Where a line's comment begins; npos: nowhere.
using CommentStart = std::size_t (*)(const std::string& line);
std::size_t after_slashes(const std::string& line) {
  return line.find("//");
}
std::size_t after_hash(const std::string& line) {
  static const std::regex kHash(R"((^|\s)#)");
  std::smatch match;
  return std::regex_search(line, match, kHash) ? static_cast<std::size_t>(match.position())
                                               : std::string::npos;
}
std::size_t at_once(const std::string&) {
  return 0;
}

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
      if (kSources.contains(extension)) check_comments(file, after_slashes);
      if (is_script(file)) check_comments(file, after_hash);
      if (file == "src/LAYERS") check_comments(file, at_once);  // owners of headers, too
      if (extension == ".md") check_page(file);
      if (file == "ARCHITECTURE.md") check_walks(file);
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

  // Names in examples, files of the system and of other projects (src/graph is NCCL's), and results
  // that scripts would write.
  static bool is_foreign(const std::string& name) {
    static const std::regex kForeign(
        R"((.*/)?(x|y|foo|bar|NAME|NNNN_\w+|job|suite|CASE)(_\w+)?\.\w+|src/graph/.*|linux/.*|asm/.*|unistd_.*|sqlite3\.h|six\.py|bench/results/.*|cuda\w*\.h|vmlinux\.h)");
    return std::regex_match(name, kForeign);
  }

  void check_name(const std::string& file, int line, const std::string& name) {
    if (exists(name) || is_foreign(name)) return;
    problems_.push_back(fmt::format("{}:{}: names {}, which does not exist", file, line, name));
  }

  // Whose comments begin with "#": scripts, by their name or their first line.
  [[nodiscard]] bool is_script(const std::string& file) const {
    static const std::set<std::string> kNames = {"CMakeLists.txt", "Makefile", "packages"};
    const fs::path path = file;
    if (path.extension() == ".cmake" || path.extension() == ".py") return true;
    if (kNames.contains(path.filename())) return true;
    if (path.has_extension()) return false;
    std::ifstream stream(root_ / file);
    return stream.get() == '#' && stream.get() == '!';
  }

  void check_comments(const std::string& file, CommentStart start_of_comment) {
    // Not <stdio.h>, nor what is part of a longer path, an address or a pattern.
    static const std::regex kName(
        R"((?:^|[^\w<*./-])([A-Za-z_][\w/-]*\.(?:h|cc|cu|cuh|md|cmake|inc|sql|py))\b(?!>))");
    each_line(file, [&](int number, const std::string& line) {
      const std::size_t start = start_of_comment(line);
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
        if (has_function(code_, (*at)[1].str() + "(")) continue;
        problems_.push_back(
            fmt::format("{}:{}: names {}(), which does not exist", file, number, (*at)[1].str()));
      }
    });
  }

  // The walks of ARCHITECTURE.md: a heading with the number of files, and numbered items that name
  // files and, beside them, what is to be found there.
  void check_walks(const std::string& page) {
    static const std::regex kHeading(R"(\*\*`[^`]*`\*\* \((\d+) files\))");
    static const std::regex kItem(R"(\d+\. .*)");
    Walk walk;
    each_line(page, [&](int number, const std::string& line) {
      std::smatch match;
      const bool heading = std::regex_match(line, match, kHeading);
      if (heading || line.starts_with("**") || line.starts_with("## ")) {
        finish(page, walk);
        walk = heading ? Walk{number, std::stoul(match[1])} : Walk{};
      } else if (walk.line > 0 && std::regex_match(line, kItem)) {
        check_item(page, number, line, walk);
      }
    });
    finish(page, walk);
  }

  struct Walk {
    int line = 0;           // of its heading; 0: none
    std::size_t files = 0;  // that it says it has
    std::vector<std::string> visited = {};
    std::set<std::string> counted = {};  // of these, what is no leaf
  };

  void finish(const std::string& page, const Walk& walk) {
    if (walk.line == 0 || walk.counted.size() == walk.files) return;
    problems_.push_back(fmt::format("{}:{}: says {} files, its walk has {}", page, walk.line,
                                    walk.files, walk.counted.size()));
  }

  // A function is in the file named before it or, at the beginning of an item, in the one after.
  void check_item(const std::string& page, int line, const std::string& item, Walk& walk) {
    static const std::regex kNamed(R"(`([\w./-]+\.(?:cc|h))`|`(\w+)\(\)`)");
    std::string current;
    std::vector<std::string> waiting;
    int brackets = 0;
    std::size_t read = 0;
    for (std::sregex_iterator at(item.begin(), item.end(), kNamed), end; at != end; ++at) {
      const auto begin = static_cast<std::size_t>(at->position());
      const std::string between = item.substr(read, begin - read);
      read = begin + static_cast<std::size_t>(at->length());
      brackets += static_cast<int>(std::ranges::count(between, '(')) -
                  static_cast<int>(std::ranges::count(between, ')'));
      if ((*at)[2].matched) {
        if (current.empty()) {
          waiting.push_back((*at)[2]);
        } else {
          check_function(page, line, current, (*at)[2]);
        }
        continue;
      }
      const std::string file = walked(walk, (*at)[1]);
      if (file.empty()) {
        problems_.push_back(
            fmt::format("{}:{}: {} is not one file of the repository", page, line, (*at)[1].str()));
        continue;
      }
      current = file;
      walk.visited.push_back(file);
      if (brackets == 0 && between != " or ") walk.counted.insert(file);
      for (const std::string& function : waiting) check_function(page, line, current, function);
      waiting.clear();
    }
  }

  void check_function(const std::string& page, int line, const std::string& file,
                      const std::string& function) {
    std::string code;
    each_line(file, [&](int, const std::string& text) {
      code.append(text, 0, after_slashes(text)).push_back('\n');
    });
    if (has_function(code, function + "(")) return;
    problems_.push_back(fmt::format("{}:{}: {}() is not in {}", page, line, function, file));
  }

  // The file that a walk means: the whole path, or the end of a file that was visited, is beside
  // the last one, or has this name alone. Empty if there is none.
  [[nodiscard]] std::string walked(const Walk& walk, const std::string& name) const {
    if (files_.contains(name)) return name;
    const auto is_meant = [&](const std::string& file) { return file.ends_with("/" + name); };
    const auto visited = std::ranges::find_if(walk.visited, is_meant);
    if (visited != walk.visited.end()) return *visited;
    if (!walk.visited.empty()) {
      const std::string beside = fs::path(walk.visited.back()).replace_filename(name).string();
      if (files_.contains(beside)) return beside;
    }
    std::vector<std::string> meant;
    std::ranges::copy_if(files_, std::back_inserter(meant), is_meant);
    return meant.size() == 1 ? meant.front() : "";
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
