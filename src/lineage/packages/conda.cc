#include "lineage/packages/conda.h"

#include "base/file.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kLargestRecord{256 << 20};

// Calls `visit` with each string of the list "files". Scanned rather than parsed: a large
// environment has a hundred megabytes of these documents, nearly all of it other data.
template <class Visit>
void each_file(std::string_view document, const Visit& visit) {
  std::size_t at = document.find("\"files\"");
  if (at == document.npos) return;
  at = document.find('[', at);
  while (at != document.npos) {
    const std::size_t begin = document.find_first_of("\"]", at);
    if (begin == document.npos || document[begin] == ']') return;
    const std::size_t close = document.find('"', begin + 1);
    if (close == document.npos) return;
    if (!visit(document.substr(begin + 1, close - begin - 1))) return;
    at = close + 1;
  }
}

}  // namespace

store::Package conda_package(const fs::path& file) {
  std::string name = file.stem().string();
  store::Package package{.manager = "conda", .name = name, .version = ""};
  const std::size_t build = name.rfind('-');
  if (build == name.npos || build == 0) return package;
  const std::size_t version = name.rfind('-', build - 1);
  if (version == name.npos) return package;
  package.name = name.substr(0, version);
  package.version = name.substr(version + 1, build - version - 1);
  return package;
}

bool CondaPackages::add(std::string_view path, std::size_t prefix) {
  const std::string_view folder = path.substr(0, prefix);
  auto found = environments_.find(folder);
  if (found == environments_.end()) {
    std::error_code ignored;
    const bool exists =
        fs::is_directory(root_ / fs::path(folder.substr(1)) / "conda-meta", ignored);
    found = environments_.emplace(folder, Environment{exists, {}}).first;
  }
  if (found->second.exists)
    found->second.files.insert(std::hash<std::string_view>()(path.substr(prefix + 1)));
  return found->second.exists;
}

std::vector<store::Package> CondaPackages::packages() const {
  std::vector<store::Package> found;
  for (const auto& [prefix, environment] : environments_) {
    if (!environment.exists) continue;
    const auto& files = environment.files;
    std::error_code error;
    const fs::path meta = root_ / fs::path(prefix.substr(1)) / "conda-meta";
    for (fs::directory_iterator at(meta, error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() != ".json") continue;
      const auto document = base::read_file(at->path(), kLargestRecord);
      bool used = false;
      each_file(document.value_or(std::string()), [&](std::string_view file) {
        used = files.contains(std::hash<std::string_view>()(file));
        return !used;
      });
      if (used) found.push_back(conda_package(at->path()));
    }
  }
  return found;
}

}  // namespace assay::lineage
