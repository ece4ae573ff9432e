#include "structure/layering.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

namespace assay::structure {
namespace {

namespace fs = std::filesystem;

struct Layers {
  std::vector<std::string> modules;                            // lowest first
  std::map<std::string, std::set<std::string>> uses;           // module -> modules it may include
  std::map<std::string, int> lines;                            // module or verb -> its line
  std::map<std::string, std::set<std::string>> verbs;          // "@report" -> verbs it may include
  std::map<std::string, std::set<std::string>> header_owners;  // "<sqlite3" -> folders
};

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::set<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

Layers read_layers(const fs::path& file, std::vector<std::string>& found) {
  Layers layers;
  std::ifstream stream(file);
  if (!stream) found.push_back(fmt::format("{}: cannot be read", file.string()));
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string> columns;
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, '|');) columns.push_back(trimmed(part));
    if (columns.size() < 2) {
      found.push_back(fmt::format("src/LAYERS:{}: expected MODULE | USES | PURPOSE", number));
    } else if (columns[0].front() == '<') {
      layers.header_owners[columns[0]] = words(columns[1]);
    } else if (columns[0].front() == '@') {
      layers.verbs[columns[0]] = words(columns[1]);
      layers.lines[columns[0]] = number;
    } else {
      for (const std::string& used : words(columns[1])) {
        if (!layers.uses.contains(used)) {
          found.push_back(fmt::format("src/LAYERS:{}: {} uses {}, which is not listed above it",
                                      number, columns[0], used));
        }
      }
      layers.modules.push_back(columns[0]);
      layers.lines[columns[0]] = number;
      layers.uses[columns[0]] = words(columns[1]);
    }
  }
  return layers;
}

// The listed folder that a path is in, longest first: "observe/wire" before "observe".
std::optional<std::string> module_of(const Layers& layers, const std::string& path) {
  std::optional<std::string> best;
  for (const std::string& module : layers.modules) {
    if (path.starts_with(module + "/") && (!best || module.size() > best->size())) best = module;
  }
  return best;
}

class Checker {
 public:
  Checker(const fs::path& root, const Layers& layers, std::vector<std::string>& found)
      : root_(root), layers_(layers), found_(found) {}

  void check_tree(const std::string& top) {
    if (!fs::exists(root_ / top)) return;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / top)) {
      static const std::set<std::string> kSources = {".cc", ".h", ".cu", ".cuh", ".c"};
      if (kSources.contains(entry.path().extension().string())) {
        check_file(fs::relative(entry.path(), root_).string());
      }
    }
  }

  // What a module may include and does not; its tests count. Those of reserved modules will.
  void check_uses() {
    for (const auto& [module, uses] : layers_.uses) {
      if (!fs::exists(root_ / "src" / module)) continue;
      for (const std::string& used : uses) {
        if (used_.contains({module, used})) continue;
        found_.push_back(fmt::format("src/LAYERS:{}: {} may use {}, but does not",
                                     layers_.lines.at(module), module, used));
      }
    }
    for (const auto& [verb, uses] : layers_.verbs) {
      for (const std::string& used : uses) {
        if (used_.contains({verb, used})) continue;
        found_.push_back(fmt::format("src/LAYERS:{}: {} may use {}, but does not",
                                     layers_.lines.at(verb), verb, used));
      }
    }
  }

 private:
  static bool is_test(const std::string& file) {
    return file.ends_with("_test.cc") || file.find("/testing/") != std::string::npos;
  }

  // The module whose CMakeLists.txt compiles this one's files.
  [[nodiscard]] std::string library_of(const std::string& module) const {
    fs::path folder = module;
    while (!folder.empty() && !fs::exists(root_ / "src" / folder / "CMakeLists.txt")) {
      folder = folder.parent_path();
    }
    return folder.string();
  }

  // What the test code of a library may include: all that any module of the library may.
  [[nodiscard]] bool may_use(const std::string& library, const std::string& target) const {
    if (library_of(target) == library) return true;
    return std::ranges::any_of(layers_.uses, [&](const auto& entry) {
      return library_of(entry.first) == library && entry.second.contains(target);
    });
  }

  void check_file(const std::string& file) {
    // "src/spec/x.cc" is in module spec; "apps/assay/x.cc" is in folder apps/assay.
    const bool in_src = file.starts_with("src/");
    const auto module = in_src ? module_of(layers_, file.substr(4)) : std::nullopt;
    const std::string folder = in_src ? module.value_or("") : fs::path(file).parent_path().string();
    if (in_src && !module) {
      found_.push_back(fmt::format("{}: in no module of src/LAYERS", file));
      return;
    }
    static const std::regex kInclude(R"re(^\s*#\s*include\s*(["<][^">]+)[">])re");
    std::ifstream stream(root_ / file);
    int number = 0;
    for (std::string line; std::getline(stream, line);) {
      ++number;
      if (line.find("include") == std::string::npos) continue;  // regular expressions are slow
      std::smatch match;
      if (!std::regex_search(line, match, kInclude)) continue;
      const std::string problem = check_include(file, folder, in_src, match[1].str());
      if (!problem.empty()) found_.push_back(fmt::format("{}:{}: {}", file, number, problem));
    }
  }

  // `include` starts with its quote or bracket.
  std::string check_include(const std::string& file, const std::string& folder, bool in_src,
                            const std::string& include) {
    const std::string name = in_src ? file.substr(4) : file;  // as owners are written
    for (const auto& [prefix, owners] : layers_.header_owners) {
      if (include.starts_with(prefix) && !owners.contains(folder) && !owners.contains(name)) {
        return fmt::format("{} must not include {}>; only {} may", folder, include,
                           fmt::join(owners, ", "));
      }
    }
    if (include.front() != '"') return "";
    const std::string path = include.substr(1);
    if (path.find("..") != std::string::npos) return fmt::format("climbs out with {}\"", include);
    if (!in_src) return check_verb(file, path);
    if (path.starts_with("apps/") || path.starts_with("tests/")) {
      return fmt::format("{} must not include {}\": src/ knows neither apps nor tests", folder,
                         include);
    }
    const auto target = module_of(layers_, path);
    if (!target)
      return fmt::format("{}\" is in no module; write the module's name in front", include);
    used_.insert({folder, *target});
    if (*target == folder || layers_.uses.at(folder).contains(*target)) return "";
    if (is_test(file) && may_use(library_of(folder), *target)) return "";
    return fmt::format("{} must not include {}\": src/LAYERS does not let {} use {}", folder,
                       include, folder, *target);
  }

  // apps/assay/VERB/…, and what is in apps/assay itself or shared, which know no verb.
  std::string check_verb(const std::string& file, const std::string& include) {
    static const std::regex kVerbFile("apps/assay/(?:([^/]+)/)?[^/]+");
    static const std::regex kVerbHeader("assay/([^/]+)/[^/]+");
    std::smatch from;
    std::smatch to;
    if (!std::regex_match(file, from, kVerbFile) || !std::regex_match(include, to, kVerbHeader)) {
      return "";
    }
    const std::string verb = from[1];
    const std::string other = to[1];
    if (other == verb || (other == kSharedByVerbs && !verb.empty())) return "";
    used_.insert({"@" + verb, other});
    const auto allowed = layers_.verbs.find("@" + verb);
    if (allowed != layers_.verbs.end() && allowed->second.contains(other)) return "";
    return fmt::format("{} must not include \"{}\": what several verbs use is in apps/assay/{}",
                       fs::path(file).parent_path().string(), include, kSharedByVerbs);
  }

  static constexpr const char* kSharedByVerbs = "shared";

  fs::path root_;
  const Layers& layers_;
  std::vector<std::string>& found_;
  std::set<std::pair<std::string, std::string>>
      used_;  // module, module that it includes; verbs likewise
};

}  // namespace

std::vector<std::string> problems(const std::filesystem::path& root) {
  std::vector<std::string> found;
  const Layers layers = read_layers(root / "src/LAYERS", found);
  Checker checker(root, layers, found);
  checker.check_tree("src");
  checker.check_tree("apps");
  checker.check_uses();
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace assay::structure
