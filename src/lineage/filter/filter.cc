#include "lineage/filter/filter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/file.h"
#include "lineage/filter/tool_files.h"

namespace assay::lineage {
namespace {

// Ids of the built-in rules. The user's follow.
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
  kTools,
  kModels,
};

const std::vector<FilterRule>& builtin_rules() {
  static const std::vector<FilterRule> rules = {
      {"project", true, "it is inside the project"},
      {"data", true, "it is outside the project and no rule leaves it out"},
      {"temporary", true, "it is in a folder for temporary files and outlived the run"},
      {"assay", false, "it belongs to Assay itself"},
      {"git", false, "it belongs to git, whose state is recorded by commit and diff"},
      {"bytecode", false, "it is compiled Python, which is regenerated from its source"},
      {"packages", false,
       "it belongs to an installed package (for dpkg, pip and conda, name and version are "
       "recorded)"},
      {"environment", false,
       "it is inside a virtual environment (pyvenv.cfg or conda-meta is there)"},
      {"caches", false, "it is in a cache, which can be rebuilt"},
      {"kernel", false, "it is not stored on disk: the kernel generates it"},
      {"language", false, "it belongs to an installed language runtime"},
      {"system", false, "it belongs to the operating system"},
      {"home", false, "it is a setting, history or cache in the home folder"},
      {"tools", false,
       "it is a lock, temporary or cache file of a known tool (!PATTERN in .assayignore keeps it)"},
      {"models", true, "it is a model or data set in a cache of the home folder"},
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

bool is_in_any(std::string_view path, const auto& folders) {
  return std::ranges::any_of(folders,
                             [&](std::string_view folder) { return is_inside(path, folder); });
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

// Folders in which libraries keep downloaded models and data. Other files beside these are
// settings, including access tokens.
bool is_model_cache(std::string_view folder) {
  constexpr std::array<std::string_view, 6> kCaches = {
      "/.cache/huggingface/hub", "/.cache/huggingface/datasets",
      "/.cache/torch/hub",       "/.cache/kagglehub",
      "/.cache/whisper",         "/.cache/modelscope/hub"};
  return std::ranges::any_of(kCaches, [&](std::string_view cache) {
    const std::size_t at = folder.find(cache);
    const std::size_t end = at + cache.size();
    return at != folder.npos && (end == folder.size() || folder[end] == '/');
  });
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
      rules_(builtin_rules()) {
  for (const UserRule& rule : options.user_rules) {
    const auto id = static_cast<RuleId>(rules_.size());
    // The pattern is part of the name: `--explain` lists files by name.
    rules_.push_back({fmt::format("{}:{}", rule.keep ? "keep" : "leave-out", rule.pattern),
                      rule.keep, fmt::format("it matches your pattern {}", rule.pattern)});
    user_rules_.emplace_back(Glob(rule.pattern, root_, home_), id);
  }
}

RuleId Filter::rule_for(std::string_view path) {
  const std::size_t slash = std::min(path.rfind('/'), path.size());
  const std::string_view folder = path.substr(0, slash);
  return rule_for_name(rule_for_folder(folder), folder,
                       path.substr(std::min(slash + 1, path.size())));
}

RuleId Filter::rule_for_folder(std::string_view folder) {
  const bool in_root = !root_.empty() && is_inside(folder, root_);
  const RuleId rule = in_root ? inside(folder.substr(root_.size())) : outside(folder);
  // Last, because it reads the disk, and only where it could change the result.
  const bool kept = rules_[rule].keep || rule == kHome;
  if (kept && in_environment(folder, in_root ? root_.size() : 0)) return kEnvironment;
  return rule;
}

RuleId Filter::rule_for_name(RuleId folder_rule, std::string_view folder,
                             std::string_view name) const {
  if (!user_rules_.empty()) {
    const std::string path = std::string(folder) + "/" + std::string(name);
    for (auto rule = user_rules_.rbegin(); rule != user_rules_.rend(); ++rule) {
      if (rule->first.matches(path)) return rule->second;
    }
  }
  if (!rules_[folder_rule].keep) return folder_rule;
  if (name == "libassay-shim.so" || name == "libassay-gpu.so") return kAssay;
  // Shared memory of the GPU shim (wire/gpu_region.h, shim/gpu/pace/turn_file.h).
  if (folder == "/dev/shm" && name.starts_with("assay-gpu-")) return kAssay;
  if (name.ends_with(".pyc") || name.ends_with(".pyo")) return kBytecode;
  if (ToolFiles::known().has_name(name)) return kTools;
  if (!home_.empty() && folder == home_ && name.starts_with('.') && folder_rule != kProject) {
    return kHome;
  }
  return folder_rule;
}

bool Filter::is_downloaded(RuleId id) const {
  return id == kModels;
}

RuleId Filter::inside(std::string_view below_root) const {
  if (has_part(below_root, ".assay")) return kAssay;
  if (has_part(below_root, ".git")) return kGit;
  if (has_part(below_root, "__pycache__")) return kBytecode;
  if (has_any_part(below_root, kPackageFolders)) return kPackages;
  if (has_any_part(below_root, kCacheFolders)) return kCaches;
  if (ToolFiles::known().has_folder(below_root)) return kTools;
  return kProject;
}

RuleId Filter::outside(std::string_view folder) const {
  const bool temporary = is_in_any(folder, kTemporaryFolders);
  if (!temporary && is_in_any(folder, kKernelFolders)) return kKernel;
  if (is_model_cache(folder)) return ToolFiles::known().has_folder(folder) ? kTools : kModels;
  // The names that are left out inside the project are left out elsewhere, too.
  if (const RuleId rule = inside(folder); rule != kProject) return rule;
  if (in_python(folder) || has_any_part(folder, kLanguageFolders)) return kLanguage;
  if (!temporary && is_in_any(folder, kSystemFolders)) return kSystem;
  if (!home_.empty() && is_inside(folder, home_) && folder.substr(home_.size()).starts_with("/.")) {
    return kHome;
  }
  return temporary ? kTemporary : kData;
}

// Whether the folder, or one above it longer than `above`, is the top of an environment.
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

namespace {

constexpr base::Bytes kMostFilter{1 << 20};

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) {
    line.remove_suffix(1);
  }
  return line;
}

// As in git, a leading slash is relative to the file's folder; two slashes are absolute.
std::string absolute_pattern(std::string_view pattern) {
  if (pattern.starts_with("//")) return std::string(pattern.substr(1));
  if (pattern.starts_with('/')) return "." + std::string(pattern);
  return std::string(pattern);
}

}  // namespace

base::Result<std::vector<Filter::UserRule>> read_filter_file(const std::filesystem::path& project) {
  const std::filesystem::path path = project / kFilterFile;
  std::error_code error;
  std::vector<Filter::UserRule> out;
  if (!std::filesystem::exists(path, error)) return out;
  ASSAY_TRY(const std::string text, base::read_file(path, kMostFilter));
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.front() == '#') continue;
    const bool keep = line.front() == '!';
    if (keep) line.remove_prefix(1);
    if (line.starts_with("\\#") || line.starts_with("\\!")) line.remove_prefix(1);
    if (!line.empty()) out.push_back({absolute_pattern(line), keep});
  }
  return out;
}

}  // namespace assay::lineage
