// See packages.h: passes each path to those who may know it.
#include "lineage/packages/packages.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <tuple>

#include "lineage/packages/conda.h"
#include "lineage/packages/dpkg.h"
#include "lineage/packages/python.h"

namespace assay::lineage {

struct PackageFinder::Parts {
  explicit Parts(const PackageOptions& options)
      : dpkg(options.root, options.cache), python(options.root), conda(options.root) {}

  DpkgPackages dpkg;
  PythonPackages python;
  CondaPackages conda;
};

PackageFinder::PackageFinder(PackageOptions options) : parts_(std::make_unique<Parts>(options)) {}
PackageFinder::PackageFinder(PackageFinder&&) noexcept = default;
PackageFinder& PackageFinder::operator=(PackageFinder&&) noexcept = default;
PackageFinder::~PackageFinder() = default;

namespace {

// What the slashes of a path tell, in one pass over it.
struct Marks {
  bool odd = false;                      // has "//", "/./" or "/../"
  std::size_t site = 0;                  // where the part below site-packages begins
  std::array<std::size_t, 8> folders{};  // before /lib/ and the like
  std::size_t count = 0;
};

Marks marks_of(std::string_view path) {
  // What programs load from lies in these folders of an environment.
  static constexpr std::array<std::string_view, 5> kFolders = {"/lib/", "/bin/", "/share/", "/ssl/",
                                                               "/include/"};
  Marks marks;
  for (std::size_t at = 0; at != path.npos; at = path.find('/', at + 1)) {
    const std::string_view rest = path.substr(at);
    if (rest.size() < 2) break;
    switch (rest[1]) {
      case '.':
      case '/':
        marks.odd = true;
        break;
      case 'd':
      case 's':
        if (rest.starts_with("/site-packages/") || rest.starts_with("/dist-packages/")) {
          marks.site = at + 15;
        }
        [[fallthrough]];
      case 'l':
      case 'b':
      case 'i':
        for (const std::string_view folder : kFolders) {
          if (at > 0 && marks.count < marks.folders.size() && rest.starts_with(folder)) {
            marks.folders[marks.count++] = at;
          }
        }
        break;
      default:
        break;
    }
  }
  return marks;
}

}  // namespace

void PackageFinder::saw(std::string_view path) {
  static constexpr std::array<std::string_view, 3> kNoFiles = {"/proc/", "/sys/", "/dev/"};
  if (!path.starts_with('/')) return;
  for (const std::string_view folder : kNoFiles) {
    if (path.starts_with(folder)) return;
  }
  const Marks marks = marks_of(path);
  if (marks.odd) {
    const std::string normal = std::filesystem::path(path).lexically_normal().string();
    if (normal != path) return saw(normal);  // else a hidden file
  }
  const bool distribution = is_of_distribution(path);
  if (distribution) parts_->dpkg.saw(path);
  // What dpkg installs into its own dist-packages is dpkg's; /opt may hold anything.
  if (distribution && !path.starts_with("/opt/")) return;
  parts_->python.saw(path, marks.site);
  for (std::size_t i = 0; i < marks.count; ++i) {
    if (parts_->conda.saw(path, marks.folders[i])) return;
  }
}

std::vector<store::Package> PackageFinder::packages() {
  std::vector<store::Package> all = parts_->dpkg.packages();
  for (store::Package& package : parts_->python.packages()) all.push_back(std::move(package));
  for (store::Package& package : parts_->conda.packages()) all.push_back(std::move(package));
  const auto key = [](const store::Package& p) { return std::tie(p.manager, p.name, p.version); };
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  all.erase(std::unique(all.begin(), all.end(),
                        [&](const auto& a, const auto& b) { return key(a) == key(b); }),
            all.end());
  return all;
}

std::filesystem::path user_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::filesystem::path(cache) / "assay";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::filesystem::path(home) / ".cache/assay";
  return {};
}

}  // namespace assay::lineage
