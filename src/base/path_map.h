// PathMap: maps paths below one folder to another one, also inside command-line arguments: for a
// project that was moved, or that has a copy. Pure.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace assay::base {

class PathMap {
 public:
  // Both absolute, without a trailing slash.
  PathMap(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  [[nodiscard]] const std::string& from() const { return from_; }
  [[nodiscard]] const std::string& to() const { return to_; }
  [[nodiscard]] bool inside(std::string_view path) const;
  // A path outside the project is not changed.
  [[nodiscard]] std::string path(std::string_view path) const;
  // Replaces every occurrence of the folder as a whole path: "--data=/p/x", "/p/a:/p/b",
  // "-I/p/include", "file:///p/x", "cd /p && true", but not "/mnt/p", "/p2", "/p@v1/x" or, where
  // the argument or the value of the option is a path and no script, "/p 2/x".
  [[nodiscard]] std::string argument(std::string_view argument) const;

 private:
  std::string from_, to_;
};

// The argument with `prefix` inserted before every whole path in it that is one of `paths` or below
// one. The same as PathMap(path, prefix + path).argument() for each, but in one pass.
std::string with_prefix(std::string_view argument, const std::set<std::string, std::less<>>& paths,
                        std::string_view prefix);

}  // namespace assay::base
