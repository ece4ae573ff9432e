#include "lineage/filter/glob.h"

#include <algorithm>
#include <optional>

namespace assay::lineage {
namespace {

template <class Take>
void for_each_part(std::string_view path, Take take) {
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) take(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
}

}  // namespace

bool is_inside(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool matches_component(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  // Where to resume when the last star has to match one more character.
  std::optional<std::size_t> star;
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star) {
      p = *star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(),
                     [](char c) { return c == '*'; });
}

Glob::Glob(std::string_view pattern, std::string_view root, std::string_view home) {
  folder_only_ = pattern.ends_with('/');
  while (pattern.ends_with('/')) pattern.remove_suffix(1);
  if (pattern.empty()) return;  // matches nothing
  const auto add = [this](std::string_view part) { parts_.emplace_back(part); };
  if (pattern.starts_with("~/")) {
    for_each_part(home, add);
    pattern.remove_prefix(2);
  } else if (pattern.starts_with("./")) {
    for_each_part(root, add);
    pattern.remove_prefix(2);
  } else if (pattern.find('/') == std::string_view::npos) {
    add("**");
  } else if (!pattern.starts_with('/')) {
    for_each_part(root, add);
  }
  for_each_part(pattern, add);
}

// The same algorithm as in matches_component, with components instead of characters and "**" for
// the star. If the pattern ends before the path does, it matches a folder above.
bool Glob::matches(std::string_view path) const {
  std::vector<std::string_view> parts;
  for_each_part(path, [&](std::string_view part) { parts.push_back(part); });
  std::size_t p = 0;
  std::size_t t = 0;
  std::optional<std::size_t> star;
  std::size_t retry = 0;
  while (true) {
    if (p == parts_.size() && !parts_.empty() && (t < parts.size() || !folder_only_)) return true;
    if (p < parts_.size() && parts_[p] == "**") {
      star = p++;
      retry = t;
      // At the end of the pattern it needs at least one component.
      if (p == parts_.size()) return t < parts.size();
    } else if (p < parts_.size() && t < parts.size() && matches_component(parts_[p], parts[t])) {
      ++p;
      ++t;
    } else if (star && retry < parts.size()) {
      p = *star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
}

}  // namespace assay::lineage
