// PathMap: where a file of the original project is in its copy, and a command's words with the
// project's folder replaced by the copy's. Pure.
#pragma once

#include <string>
#include <string_view>

namespace assay::lineage {

class PathMap {
 public:
  // Both absolute, without a trailing slash.
  PathMap(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  [[nodiscard]] const std::string& from() const { return from_; }
  [[nodiscard]] const std::string& to() const { return to_; }
  [[nodiscard]] bool inside(std::string_view path) const;
  // A path outside is where it was.
  [[nodiscard]] std::string path(std::string_view path) const;
  // Every place where the folder stands as a whole path: "--data=/p/x", "/p/a:/p/b",
  // "-I/p/include", but not "/mnt/p" or "/p2".
  [[nodiscard]] std::string word(std::string_view word) const;

 private:
  std::string from_, to_;
};

}  // namespace assay::lineage
