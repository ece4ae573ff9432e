// Small text functions shared by errors, tables and the command line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::base {

// Classes of ASCII characters. Unlike <cctype>, they ignore the locale and accept any char.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
constexpr bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

// One digit or more, and nothing else.
constexpr bool is_digits(std::string_view text) {
  for (const char c : text) {
    if (!is_digit(c)) return false;
  }
  return !text.empty();
}

// Blanks, tabs and line ends.
constexpr bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The same text with control characters and invalid UTF-8 shown as \xNN, so that it is one line and
// cannot control a terminal.
std::string printable(std::string_view text);

// The columns that the text occupies on a terminal (UTF-8; handles wide and combining characters).
std::size_t display_width(std::string_view text);

// The text if it fits into `columns`, else shortened at the end, with an ellipsis.
std::string shortened(std::string_view text, std::size_t columns);
// The same with the ellipsis in the middle, for text whose end matters too: "/long/…/job.toml:12".
std::string shortened_middle(std::string_view text, std::size_t columns);

// Writes every byte not in `kept` as %NN, as in URIs. Any percent-decoder reverses this if `kept`
// has no '%'.
std::string percent_encoded(std::string_view text, std::string_view kept);

// Calls visit(line) for every line of `text`, without its line end (LF or CRLF).
template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : text.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line);
  }
}

// Calls visit(part) for what is between any of the `separators`, except where nothing is.
template <class Visit>
void for_each_part(std::string_view text, std::string_view separators, const Visit& visit) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find_first_of(separators));
    text.remove_prefix(part.size() < text.size() ? part.size() + 1 : text.size());
    if (!part.empty()) visit(part);
  }
}

std::string_view trim(std::string_view text);

// The text as one word of a shell command line: unchanged if that is safe, else quoted.
std::string shell_quoted(std::string_view text);
// The same for a path or name as an argument: one that begins with a dash would be an option.
std::string path_argument(std::string_view path);

}  // namespace assay::base
