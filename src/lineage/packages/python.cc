#include "lineage/packages/python.h"

#include <algorithm>
#include <cctype>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kLargestMetadata{64 << 20};

std::string text_of(const fs::path& path) {
  return base::read_file(path, kLargestMetadata).value_or(std::string());
}

// "%20" -> " ".
std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string digits(text.substr(i + 1, 2));
    if (text[i] == '%' && digits.size() == 2 &&
        std::all_of(digits.begin(), digits.end(),
                    [](unsigned char c) { return std::isxdigit(c); })) {
      out += static_cast<char>(std::stoi(digits, nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool is_module(std::string_view path) {
  return path.ends_with(".py") || path.ends_with(".pyc") || path.ends_with(".so");
}

// The distribution that installed a module. The one with its name is tried first, then those that
// list it in top_level.txt: reading all file lists takes tens of milliseconds.
PythonDist* owner_of(const std::string& module, std::vector<PythonDist>& all) {
  const std::string first = module.substr(0, module.find('/'));
  const std::string name =
      normal_name(first.ends_with(".py") ? first.substr(0, first.size() - 3) : first);
  for (PythonDist& dist : all) {
    if (dist.is_named(name) && dist.has(module)) return &dist;
  }
  for (PythonDist& dist : all) {
    if (dist.lists(first) && dist.has(module)) return &dist;
  }
  for (PythonDist& dist : all) {
    if (dist.has(module)) return &dist;
  }
  // Created after the installation: compiled code, caches.
  PythonDist* only = nullptr;
  for (PythonDist& dist : all) {
    if (!dist.has(first)) continue;
    if (only != nullptr) return nullptr;  // shared by several
    only = &dist;
  }
  return only;
}

}  // namespace

std::string normal_name(std::string_view name) {
  std::string normal;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (separator && normal.ends_with('-')) continue;
    normal += separator ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return normal;
}

std::string module_of(std::string_view path) {
  const std::size_t slash = path.find('/');
  const std::string_view first = path.substr(0, slash);
  // Metadata is read by programs that look for plugins, too: it does not mean the distribution was
  // loaded.
  if (first.ends_with(".dist-info") || first.ends_with(".egg-info") || first.ends_with(".pth") ||
      first.empty() || first == "..") {
    return {};
  }
  if (slash == path.npos) return std::string(first);
  const std::string_view rest = path.substr(slash + 1);
  const std::string_view second = rest.substr(0, rest.find('/'));
  if (first == "__pycache__") return std::string(second.substr(0, second.find('.'))) + ".py";
  if (second == "__pycache__") {
    const std::string_view file = rest.substr(rest.find('/') + 1);
    return std::string(first) + "/" + std::string(file.substr(0, file.find('.'))) + ".py";
  }
  return std::string(first) + "/" + std::string(second);
}

std::vector<PythonDist> PythonDist::all_in(const fs::path& site) {
  std::vector<fs::path> infos;
  std::error_code error;
  for (fs::directory_iterator at(site, error), end; !error && at != end; at.increment(error)) {
    const std::string extension = at->path().extension().string();
    if (extension == ".dist-info" || extension == ".egg-info") infos.push_back(at->path());
  }
  std::sort(infos.begin(), infos.end());
  std::vector<PythonDist> all;
  for (fs::path& info : infos) all.emplace_back(std::move(info));
  return all;
}

PythonDist::PythonDist(fs::path info) : info_(std::move(info)) {
  const std::string name = info_.stem().string();
  name_ = normal_name(name.substr(0, name.find('-')));
}

bool PythonDist::lists(std::string_view first_part) {
  if (first_part.ends_with(".py")) first_part.remove_suffix(3);
  if (!top_level_) top_level_ = "\n" + text_of(info_ / "top_level.txt") + "\n";
  return top_level_->find("\n" + std::string(first_part) + "\n") != std::string::npos;
}

bool PythonDist::has(const std::string& module) {
  if (!read_) read_modules();
  return modules_.contains(module);
}

// pip and similar tools write RECORD; older ones installed-files.txt; Debian keeps top_level.txt or
// nothing.
void PythonDist::read_modules() {
  read_ = true;
  const auto add = [this](std::string_view path) {
    const std::string module = module_of(path);
    if (module.empty()) return;
    modules_.insert(module);
    modules_.insert(module.substr(0, module.find('/')));
  };
  base::for_each_line(text_of(info_ / "RECORD"), [&](std::string_view line) {
    const bool quoted = line.starts_with('"');
    add(quoted ? line.substr(1, line.find('"', 1) - 1) : line.substr(0, line.find(',')));
  });
  if (!modules_.empty()) return;
  base::for_each_line(text_of(info_ / "installed-files.txt"), [&](std::string_view line) {
    if (line.starts_with("../")) add(line.substr(3));
  });
  if (!modules_.empty()) return;
  base::for_each_line(text_of(info_ / "top_level.txt"), [&](std::string_view line) {
    modules_.insert(std::string(line));
    modules_.insert(std::string(line) + ".py");
  });
  if (!modules_.empty()) return;
  const std::string name = info_.stem().string();
  modules_.insert(name.substr(0, name.find('-')));
}

bool PythonDist::is_conda() const {
  return text_of(info_ / "INSTALLER").starts_with("conda");
}

std::optional<std::string> PythonDist::editable_source() const {
  const base::Json document = base::Json::parse(text_of(info_ / "direct_url.json"), nullptr, false);
  if (!document.is_object() || !document.contains("dir_info") || !document.contains("url")) {
    return std::nullopt;
  }
  const base::Json& info = document["dir_info"];
  const base::Json& url = document["url"];
  const bool editable =
      info.is_object() && info.contains("editable") && info["editable"] == base::Json(true);
  if (!editable || !url.is_string()) return std::nullopt;
  const auto text = url.get<std::string>();
  if (!text.starts_with("file://")) return std::nullopt;
  std::string folder = percent_decoded(std::string_view(text).substr(7));
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

store::Package PythonDist::package() const {
  store::Package package{.manager = "pip", .name = "", .version = ""};
  std::string text = text_of(info_ / "METADATA");
  if (text.empty()) text = text_of(info_ / "PKG-INFO");
  if (text.empty()) text = text_of(info_);  // old eggs are a file
  bool header = true;
  base::for_each_line(text, [&](std::string_view line) {
    header = header && !line.empty();
    if (header && package.name.empty() && line.starts_with("Name: ")) package.name = line.substr(6);
    if (header && package.version.empty() && line.starts_with("Version: ")) {
      package.version = line.substr(9);
    }
  });
  const std::string name = info_.stem().string();
  if (package.name.empty()) package.name = name.substr(0, name.find('-'));
  if (package.version.empty() && name.find('-') != name.npos) {
    const std::string rest = name.substr(name.find('-') + 1);
    package.version = rest.substr(0, rest.find('-'));
  }
  return package;
}

void PythonPackages::add(std::string_view path, std::size_t end) {
  if (end == 0) {
    if (!is_module(path)) return;
    const std::string_view folder = path.substr(0, path.rfind('/'));
    if (folder == last_folder_) return;
    last_folder_ = folder;
    folders_.insert(last_folder_);
    return;
  }
  // The first two components decide; deeper paths add nothing.
  std::size_t deep = path.find('/', end);
  if (deep != path.npos) deep = path.find('/', deep + 1);
  const bool cached = path.find("__pycache__", end) != path.npos;
  if (!seen_.insert(std::hash<std::string_view>()(cached ? path : path.substr(0, deep))).second)
    return;
  const std::string_view site = path.substr(0, end - 1);
  auto found = sites_.find(site);
  if (found == sites_.end()) found = sites_.emplace(site, std::set<std::string>()).first;
  if (std::string module = module_of(path.substr(end)); !module.empty()) {
    found->second.insert(std::move(module));
  }
}

bool PythonPackages::owns(std::string_view path, std::size_t end) const {
  return end > 0 && owned_.contains(std::string(path.substr(0, end)) + module_of(path.substr(end)));
}

std::vector<store::Package> PythonPackages::packages() {
  std::vector<store::Package> found;
  for (const auto& [site, modules] : sites_) {
    std::vector<PythonDist> all = PythonDist::all_in(root_ / site.substr(1));
    std::set<PythonDist*> used;
    for (const std::string& module : modules) {
      PythonDist* const owner = owner_of(module, all);
      if (owner == nullptr) continue;
      used.insert(owner);
      owned_.insert(site + "/" + module);
    }
    for (PythonDist& dist : all) {
      const auto source = dist.editable_source();
      if (!source) continue;
      const auto at = folders_.lower_bound(*source + "/");
      const bool inside =
          folders_.contains(*source) || (at != folders_.end() && at->starts_with(*source + "/"));
      if (inside) used.insert(&dist);
    }
    for (const PythonDist* dist : used) {
      if (!dist->is_conda()) found.push_back(dist->package());
    }
  }
  return found;
}

}  // namespace assay::lineage
