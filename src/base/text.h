// Small text tools that errors, tables and the command line share.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::base {

// The same text with control characters and invalid UTF-8 shown as \xNN, so that it is one line and
// cannot drive a terminal.
std::string printable(std::string_view text);

// Columns the text takes on a terminal (UTF-8; wide and combining characters counted as such).
std::size_t display_width(std::string_view text);

// The text if it fits into `columns`, else its beginning with an ellipsis.
std::string shortened(std::string_view text, std::size_t columns);
// The same with the ellipsis in the middle, for text whose end matters too: "/long/…/job.toml:12".
std::string shortened_middle(std::string_view text, std::size_t columns);

// Fewest single-character insertions, deletions, substitutions and adjacent swaps from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate a person most likely meant by `name`, if any is close enough to be worth saying.
// A name that is a candidate itself was not misspelt, and nothing is near it.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

// "did you mean 'x'?" for Error::hint: the nearest candidate, or all of them when none is near and
// there are few, or nothing.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

// Every byte that is not one of `kept` as %NN, as in URIs. Undone by any percent-decoder if `kept`
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

std::string_view trim(std::string_view text);

// The text as one word of a shell command line: as it is when that is safe, else in quotes.
std::string shell_quoted(std::string_view text);

}  // namespace assay::base
