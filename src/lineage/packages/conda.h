// Packages of conda environments. A folder is an environment if it has conda-meta, which lists the
// files of each package.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

class CondaPackages {
 public:
  explicit CondaPackages(std::filesystem::path root) : root_(std::move(root)) {}

  // The first `prefix` bytes of the path, before /lib/, /bin/ and the like, may be an environment.
  // Returns whether they are.
  bool add(std::string_view path, std::size_t prefix);
  [[nodiscard]] std::vector<store::Package> packages() const;

 private:
  struct Environment {
    bool exists = false;
    std::unordered_set<std::uint64_t> files;  // hashes of paths relative to it
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  // Every folder that was checked, environment or not.
  std::unordered_map<std::string, Environment, TextHash, std::equal_to<>> environments_;
  std::filesystem::path root_;
};

// The package of conda-meta/NAME-VERSION-BUILD.json; only the name may contain a hyphen.
store::Package conda_package(const std::filesystem::path& file);

}  // namespace assay::lineage
