// Path patterns, a subset of .gitignore's:
//
//   *          any characters within one component     ?   one character within a component
//   **         as a component: any number of them
//   name       without a slash: any component with that name, at any depth
//   a/b ./a    with a slash inside: from the project's folder
//   /a ~/a     from the root, from the home folder
//   name/      only as a folder
//
// A pattern that matches a folder matches everything below it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::lineage {

class Glob {
 public:
  // `root` and `home` are absolute.
  Glob(std::string_view pattern, std::string_view root, std::string_view home);

  // `path` is absolute and canonical.
  [[nodiscard]] bool matches(std::string_view path) const;

 private:
  std::vector<std::string> parts_;
  bool folder_only_ = false;
};

// Whether `path` is `folder` or below it.
bool is_inside(std::string_view path, std::string_view folder);

// One component against one component of a pattern.
bool matches_component(std::string_view pattern, std::string_view text);

}  // namespace assay::lineage
