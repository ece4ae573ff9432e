#include "lineage/packages/cuda_libraries.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// Prefixes of names: libcudnn_ops and the like have the same version as libcudnn.
constexpr std::array<std::string_view, 17> kLibraries = {
    "libcudart",   "libcublas",   "libcublasLt", "libcudnn",      "libcufft",     "libcurand",
    "libcusolver", "libcusparse", "libnccl",     "libnvrtc",      "libnvJitLink", "libcupti",
    "libcutensor", "libnvinfer",  "libcufile",   "libcusparseLt", "libcuda"};

struct NamedVersion {
  std::string_view name, version;
};

// "libcublas" and "12.4.5.8" of "libcublas.so.12.4.5.8".
std::optional<NamedVersion> parsed(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const std::size_t dot = file.find(".so.");
  if (dot == file.npos) return std::nullopt;
  const NamedVersion found{file.substr(0, dot), file.substr(dot + 4)};
  const bool known =
      std::find(kLibraries.begin(), kLibraries.end(), found.name) != kLibraries.end();
  const bool numbered = !found.version.empty() &&
                        found.version.find_first_not_of("0123456789.") == found.version.npos;
  return known && numbered ? std::optional(found) : std::nullopt;
}

}  // namespace

void CudaLibraries::add(std::string_view path) {
  if (const auto found = parsed(path)) {
    versions_.emplace(std::string(found->name), std::string(found->version));
  }
}

std::vector<store::Package> CudaLibraries::packages() const {
  std::vector<store::Package> list;
  for (const auto& [name, version] : versions_) list.push_back({"cuda", name, version});
  return list;
}

bool is_cuda_library(std::string_view path) {
  return parsed(path).has_value();
}

bool versions_agree(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '.');
}

std::optional<std::string> installed_cuda_library(const std::string& name,
                                                  const std::vector<fs::path>& prefixes) {
  std::vector<fs::path> folders;
  if (const char* given = std::getenv("LD_LIBRARY_PATH")) {
    base::for_each_part(given, ":", [&](std::string_view folder) { folders.emplace_back(folder); });
  }
  for (const fs::path& prefix : prefixes) {
    for (const char* folder : {"lib", "lib64"}) folders.push_back(prefix / folder);
  }
  for (const char* folder :
       {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib"}) {
    folders.emplace_back(folder);
  }
  for (const fs::path& folder : folders) {
    std::string longest;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string path = at->path().string();
      const auto found = parsed(path);
      if (!found || found->name != name || found->version.size() <= longest.size()) continue;
      longest = found->version;
    }
    if (!longest.empty()) return longest;
  }
  return std::nullopt;
}

}  // namespace assay::lineage
