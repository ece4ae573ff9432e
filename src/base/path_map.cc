#include "base/path_map.h"

#include <algorithm>

namespace assay::base {
namespace {

bool is_path_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || static_cast<unsigned char>(c) >= 0x80;
}

// Whether a path can begin at `at`, and is not the end of a longer one. "-I/p" and "-L/p" are
// options with their value, "file:///p" is a URL.
bool begins_path(std::string_view word, std::size_t at) {
  if (at == 0) return true;
  if (word[at - 1] == '/') return word.substr(0, at).ends_with("://");
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

namespace {

// Length of the first of the paths that `text` begins with; 0: with none.
std::size_t leading_path(std::string_view text, const std::set<std::string, std::less<>>& paths) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    if (end < text.size() && is_path_char(text[end])) continue;
    const std::string_view begin = text.substr(0, end);
    const auto next = paths.lower_bound(begin);
    if (next == paths.end() || !next->starts_with(begin)) return 0;
    if (*next == begin) return end;
  }
  return 0;
}

}  // namespace

std::string with_prefix(std::string_view argument, const std::set<std::string, std::less<>>& paths,
                        std::string_view prefix) {
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = argument.find('/'); at != std::string_view::npos;
       at = argument.find('/', at)) {
    const std::size_t length =
        begins_path(argument, at) ? leading_path(argument.substr(at), paths) : 0;
    if (length > 0) {
      out += argument.substr(copied, at - copied);
      out += prefix;
      copied = at;
    }
    at += std::max<std::size_t>(length, 1);
  }
  out += argument.substr(copied);
  return out;
}

}  // namespace assay::base
