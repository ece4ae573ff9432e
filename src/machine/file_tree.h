// FileTree: /proc, /sys and /etc of this machine, or of a fake one in a directory.
//
// What cannot be read is an unknown fact, not an error, so this returns optionals where
// base::read_file() returns errors.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::machine {

class FileTree {
 public:
  explicit FileTree(const std::string& root);

  // The first `limit` bytes of a regular file without surrounding blanks. It truncates on purpose:
  // /proc/cpuinfo of a large machine is slow to generate and repetitive.
  [[nodiscard]] std::optional<std::string> read(const std::string& path,
                                                std::size_t limit = 64 * 1024) const;
  // The file's text as an integer in [low, high].
  [[nodiscard]] std::optional<int> read_small(const std::string& path, int low, int high) const;

  // The names in a directory, sorted; empty when there is none.
  [[nodiscard]] std::vector<std::string> list(const std::string& path) const;
  [[nodiscard]] bool exists(const std::string& path) const;
  // The path with symbolic links resolved, absolute and including the root; empty if it does not
  // exist.
  [[nodiscard]] std::string resolve(const std::string& path) const;

 private:
  std::string root_;  // without the final slash
};

}  // namespace assay::machine
