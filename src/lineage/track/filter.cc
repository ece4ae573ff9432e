#include "lineage/track/filter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace assay::lineage {
namespace {

// The numbers of the rules that come with the program. The user's follow.
enum : RuleId {
  kProject,
  kData,
  kTemporary,
  kAssay,
  kGit,
  kBytecode,
  kPackages,
  kEnvironment,
  kCaches,
  kKernel,
  kLanguage,
  kSystem,
  kHome,
};

const std::vector<Rule>& own_rules() {
  static const std::vector<Rule> rules = {
      {"project", true, "it is inside the project"},
      {"data", true, "it is outside the project and nothing speaks against it"},
      {"temporary", true, "it is in a folder for temporary files and outlived the run"},
      {"assay", false, "it belongs to Assay itself"},
      {"git", false, "it belongs to git, whose state is recorded by commit and diff"},
      {"bytecode", false, "it is compiled Python, made again from its source"},
      {"packages", false,
       "it belongs to an installed package (of dpkg, pip and conda, name and version are "
       "recorded)"},
      {"environment", false,
       "it is inside a virtual environment (pyvenv.cfg or conda-meta is there)"},
      {"caches", false, "it is in a cache, which can be filled again"},
      {"kernel", false, "it is no file on a disk: the kernel makes it up"},
      {"language", false, "it belongs to an installed language"},
      {"system", false, "it belongs to the operating system"},
      {"home", false, "it is a setting, history or cache in the home folder"},
  };
  return rules;
}

constexpr std::array<std::string_view, 3> kPackageFolders = {"site-packages", "dist-packages",
                                                             "node_modules"};
constexpr std::array<std::string_view, 6> kCacheFolders = {
    ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints", ".tox"};
constexpr std::array<std::string_view, 4> kLanguageFolders = {".pyenv", ".rustup", ".nvm",
                                                              ".conda"};
constexpr std::array<std::string_view, 3> kTemporaryFolders = {"/tmp", "/var/tmp", "/dev/shm"};
constexpr std::array<std::string_view, 4> kKernelFolders = {"/proc", "/sys", "/dev", "/run"};
constexpr std::array<std::string_view, 17> kSystemFolders = {
    "/usr",       "/lib",     "/lib32",     "/lib64",   "/libx32", "/bin",
    "/sbin",      "/etc",     "/opt",       "/boot",    "/snap",   "/nix/store",
    "/gnu/store", "/var/lib", "/var/cache", "/var/log", "/var/run"};

bool is_in(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool is_in_any(std::string_view path, const auto& folders) {
  return std::ranges::any_of(folders, [&](std::string_view folder) { return is_in(path, folder); });
}

bool has_part(std::string_view path, std::string_view part) {
  for (std::size_t at = path.find(part); at != std::string_view::npos;
       at = path.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if ((at == 0 || path[at - 1] == '/') && (end == path.size() || path[end] == '/')) return true;
  }
  return false;
}

bool has_any_part(std::string_view path, const auto& parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return has_part(path, part); });
}

// …/lib/python3.11/… and …/lib64/python3/…
bool in_python(std::string_view path) {
  for (std::size_t at = path.find("/python"); at != std::string_view::npos;
       at = path.find("/python", at + 1)) {
    const std::string_view parent = path.substr(0, at);
    const std::string_view version = path.substr(at + 7).substr(0, 1);
    if ((parent.ends_with("/lib") || parent.ends_with("/lib64")) && version >= "2" &&
        version <= "9") {
      return true;
    }
  }
  return false;
}

std::string without_slash(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

Filter::Filter(const Options& options)
    : root_(without_slash(options.root.string())),
      home_(without_slash(options.home.string())),
      rules_(own_rules()) {
  for (const Choice& choice : options.choices) {
    const auto id = static_cast<RuleId>(rules_.size());
    // The pattern is part of the name: `--explain` lists files by name.
    rules_.push_back({fmt::format("{}:{}", choice.keep ? "keep" : "leave-out", choice.pattern),
                      choice.keep, fmt::format("your pattern {} says so", choice.pattern)});
    choices_.emplace_back(Glob(choice.pattern, root_, home_), id);
  }
}

RuleId Filter::judge(std::string_view path) {
  const std::size_t slash = std::min(path.rfind('/'), path.size());
  const std::string_view folder = path.substr(0, slash);
  return judge_name(judge_folder(folder), folder, path.substr(std::min(slash + 1, path.size())));
}

RuleId Filter::judge_folder(std::string_view folder) {
  const bool in_root = !root_.empty() && is_in(folder, root_);
  const RuleId rule = in_root ? inside(folder.substr(root_.size())) : outside(folder);
  // Asked last, because it looks at the disk, and only where it could change the answer.
  const bool kept = rules_[rule].keep || rule == kHome;
  if (kept && in_environment(folder, in_root ? root_.size() : 0)) return kEnvironment;
  return rule;
}

RuleId Filter::judge_name(RuleId folder_rule, std::string_view folder,
                          std::string_view name) const {
  if (!choices_.empty()) {
    const std::string path = std::string(folder) + "/" + std::string(name);
    for (auto choice = choices_.rbegin(); choice != choices_.rend(); ++choice) {
      if (choice->first.matches(path)) return choice->second;
    }
  }
  if (!rules_[folder_rule].keep) return folder_rule;
  if (name == "libassay-shim.so" || name == "libassay-gpu.so") return kAssay;
  // What processes share while they count and take turns (wire/gpu_region.h, wire/gpu_turns.h).
  if (folder == "/dev/shm" && name.starts_with("assay-gpu-")) return kAssay;
  if (name.ends_with(".pyc") || name.ends_with(".pyo")) return kBytecode;
  if (!home_.empty() && folder == home_ && name.starts_with('.') && folder_rule != kProject) {
    return kHome;
  }
  return folder_rule;
}

RuleId Filter::inside(std::string_view below_root) const {
  if (has_part(below_root, ".assay")) return kAssay;
  if (has_part(below_root, ".git")) return kGit;
  if (has_part(below_root, "__pycache__")) return kBytecode;
  if (has_any_part(below_root, kPackageFolders)) return kPackages;
  if (has_any_part(below_root, kCacheFolders)) return kCaches;
  return kProject;
}

RuleId Filter::outside(std::string_view folder) const {
  const bool temporary = is_in_any(folder, kTemporaryFolders);
  if (!temporary && is_in_any(folder, kKernelFolders)) return kKernel;
  // The names that are left out inside the project are so elsewhere.
  if (const RuleId rule = inside(folder); rule != kProject) return rule;
  if (in_python(folder) || has_any_part(folder, kLanguageFolders)) return kLanguage;
  if (!temporary && is_in_any(folder, kSystemFolders)) return kSystem;
  if (!home_.empty() && is_in(folder, home_) && folder.substr(home_.size()).starts_with("/.")) {
    return kHome;
  }
  return temporary ? kTemporary : kData;
}

// Whether the folder or one above it, down to `above` letters, is the top of an environment.
bool Filter::in_environment(std::string_view folder, std::size_t above) {
  if (folder.size() <= above) return false;
  std::string text(folder);
  if (const auto known = environments_.find(text); known != environments_.end()) {
    return known->second;
  }
  const bool is = ::access((text + "/pyvenv.cfg").c_str(), F_OK) == 0 ||
                  ::access((text + "/conda-meta").c_str(), F_OK) == 0 ||
                  in_environment(folder.substr(0, folder.rfind('/')), above);
  return environments_.emplace(std::move(text), is).first->second;
}

}  // namespace assay::lineage
