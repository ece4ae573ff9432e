// Passes each path to the package managers that may own it.
#include "lineage/packages/packages.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "lineage/packages/conda.h"
#include "lineage/packages/cuda_libraries.h"
#include "lineage/packages/dpkg.h"
#include "lineage/packages/python.h"

namespace assay::lineage {

struct PackageFinder::Parts {
  explicit Parts(const PackageOptions& options)
      : dpkg(options.root, options.cache), python(options.root), conda(options.root) {}

  DpkgPackages dpkg;
  PythonPackages python;
  CondaPackages conda;
  // CUDA's libraries that neither dpkg nor conda owns, and where the part below site-packages
  // begins.
  std::vector<std::pair<std::string, std::size_t>> cuda;
};

PackageFinder::PackageFinder(const PackageOptions& options)
    : parts_(std::make_unique<Parts>(options)) {}
PackageFinder::PackageFinder(PackageFinder&&) noexcept = default;
PackageFinder& PackageFinder::operator=(PackageFinder&&) noexcept = default;
PackageFinder::~PackageFinder() = default;

namespace {

// Positions in a path, found in one pass.
struct PathMarks {
  bool needs_normalizing = false;         // has "//", "/./" or "/../"
  std::size_t site = 0;                   // where the part below site-packages begins
  std::array<std::size_t, 8> prefixes{};  // lengths of the parts before /lib/ and the like
  std::size_t count = 0;
};

PathMarks marks_of(std::string_view path) {
  // The folders of an environment that programs load files from.
  static constexpr std::array<std::string_view, 5> kFolders = {"/lib/", "/bin/", "/share/", "/ssl/",
                                                               "/include/"};
  PathMarks marks;
  for (std::size_t at = 0; at != path.npos; at = path.find('/', at + 1)) {
    const std::string_view rest = path.substr(at);
    if (rest.size() < 2) break;
    switch (rest[1]) {
      case '.':
      case '/':
        marks.needs_normalizing = true;
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
          if (at > 0 && marks.count < marks.prefixes.size() && rest.starts_with(folder)) {
            marks.prefixes[marks.count++] = at;
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

void PackageFinder::add(std::string_view path) {
  static constexpr std::array<std::string_view, 3> kNoFiles = {"/proc/", "/sys/", "/dev/"};
  if (!path.starts_with('/')) return;
  for (const std::string_view folder : kNoFiles) {
    if (path.starts_with(folder)) return;
  }
  const PathMarks marks = marks_of(path);
  if (marks.needs_normalizing) {
    const std::string normal = std::filesystem::path(path).lexically_normal().string();
    if (normal != path) return add(normal);  // else a hidden file
  }
  const bool dpkg = may_be_of_dpkg(path);
  bool owned = dpkg && parts_->dpkg.add(path);
  // dist-packages below /usr belongs to dpkg; /opt may contain anything.
  if (!dpkg || path.starts_with("/opt/")) {
    parts_->python.add(path, marks.site);
    bool of_conda = false;
    for (std::size_t i = 0; i < marks.count && !of_conda; ++i) {
      of_conda = parts_->conda.add(path, marks.prefixes[i]);
    }
    owned = owned || of_conda;
  }
  if (!owned && is_cuda_library(path)) parts_->cuda.emplace_back(path, marks.site);
}

std::vector<store::Package> PackageFinder::packages() {
  std::vector<store::Package> all = parts_->dpkg.packages();
  for (store::Package& package : parts_->python.packages()) all.push_back(std::move(package));
  for (store::Package& package : parts_->conda.packages()) all.push_back(std::move(package));
  CudaLibraries cuda;
  for (const auto& [path, site] : parts_->cuda) {
    if (!parts_->python.owns(path, site)) cuda.add(path);
  }
  for (store::Package& package : cuda.packages()) all.push_back(std::move(package));
  const auto key = [](const store::Package& p) { return std::tie(p.manager, p.name, p.version); };
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  all.erase(std::unique(all.begin(), all.end(),
                        [&](const auto& a, const auto& b) { return key(a) == key(b); }),
            all.end());
  return all;
}

}  // namespace assay::lineage
