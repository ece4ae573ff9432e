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

bool is_quote(char c) {
  return c == '\'' || c == '"';
}

// What separates words in a shell script. A file's name may contain each of them, too.
bool separates_words(char c) {
  return std::string_view(" \t\n;&|<>()[]{}`").find(c) != std::string_view::npos;
}

// Whether the path at `at` is the whole word, the value of an option, a part of a list in one of
// these, a URL's, or in quotes, so that blanks belong to it. In any other place it is a word of a
// script.
bool is_by_itself(std::string_view word, std::size_t at) {
  std::string_view before = word.substr(0, at);
  if (before.empty() || is_quote(before.back())) return true;
  if (std::any_of(before.begin(), before.end(), separates_words)) return false;
  if (before.front() == '-') {
    if (at == 2) return true;
    const std::size_t equals = before.find('=');
    if (equals == std::string_view::npos) return false;
    before.remove_prefix(equals + 1);
  }
  return before.empty() || before.back() == ':' || before.ends_with("://");
}

// Whether the path that begins at `at` can end at `end`, and is not the begin of a longer one: a
// folder beside it may be called "/p@v1" or "/p 2".
bool ends_path(std::string_view word, std::size_t at, std::size_t end) {
  if (end == word.size()) return true;
  const char next = word[end];
  if (next == '/' || next == ':' || is_quote(next)) return true;
  if (next == ',') return word.substr(end + 1).starts_with('/');  // "--all=/p,/q"
  return separates_words(next) && !is_by_itself(word, at);
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
    const bool whole = begins_path(word, found) && ends_path(word, found, end);
    out += word.substr(at, found - at);
    out += whole ? std::string_view(to_) : std::string_view(from_);
    at = end;
  }
  out += word.substr(at);
  return out;
}

namespace {

// Length of the first of the paths that begins at `at`; 0: none.
std::size_t path_at(std::string_view word, std::size_t at,
                    const std::set<std::string, std::less<>>& paths) {
  const std::string_view text = word.substr(at);
  for (std::size_t end = 1; end <= text.size(); ++end) {
    if (end < text.size() && is_path_char(text[end])) continue;
    const std::string_view begin = text.substr(0, end);
    const auto next = paths.lower_bound(begin);
    if (next == paths.end() || !next->starts_with(begin)) return 0;
    if (*next == begin && ends_path(word, at, at + end)) return end;
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
    const std::size_t length = begins_path(argument, at) ? path_at(argument, at, paths) : 0;
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
