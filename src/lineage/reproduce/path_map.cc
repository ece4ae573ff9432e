#include "lineage/reproduce/path_map.h"

namespace assay::lineage {
namespace {

bool is_path_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || static_cast<unsigned char>(c) >= 0x80;
}

// Whether a path can begin at `at`, and is not the end of a longer one. "-I/p" and "-L/p" are
// options with their value.
bool begins_path(std::string_view word, std::size_t at) {
  if (at == 0) return true;
  if (word[at - 1] == '/') return false;
  if (!is_path_char(word[at - 1])) return true;
  return at == 2 && word[0] == '-';
}

}  // namespace

bool PathMap::inside(std::string_view path) const {
  return path == from_ ||
         (path.size() > from_.size() && path.starts_with(from_) && path[from_.size()] == '/');
}

std::string PathMap::path(std::string_view path) const {
  if (!inside(path)) return std::string(path);
  return to_ + std::string(path.substr(from_.size()));
}

std::string PathMap::argument(std::string_view word) const {
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t found = word.find(from_, at);
    if (found == std::string_view::npos) break;
    const std::size_t end = found + from_.size();
    const bool whole = begins_path(word, found) && (end == word.size() || !is_path_char(word[end]));
    out += word.substr(at, found - at);
    out += whole ? std::string_view(to_) : std::string_view(from_);
    at = end;
  }
  out += word.substr(at);
  return out;
}

}  // namespace assay::lineage
