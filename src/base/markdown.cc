#include "base/markdown.h"

#include <algorithm>

#include "base/text.h"

namespace assay::base {
namespace {

std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (is_space(c)) c = ' ';
  }
  return printable(line);
}

std::size_t longest_run(std::string_view text, char wanted) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == wanted ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// Between more backticks than the text has in a row. A blank is removed from each end of code that
// begins and ends with one, unless it has nothing else.
std::string fenced(const std::string& line) {
  if (line.empty()) return {};
  const std::string fence(longest_run(line, '`') + 1, '`');
  const bool blanks = line.find_first_not_of(' ') == std::string::npos;
  const bool loses_blanks = !blanks && line.front() == ' ' && line.back() == ' ';
  const bool pad = loses_blanks || line.front() == '`' || line.back() == '`';
  return fence + (pad ? " " : "") + line + (pad ? " " : "") + fence;
}

}  // namespace

std::string markdown_text(std::string_view text) {
  constexpr std::string_view kSpecial = "\\`*_{}[]<>()#+!|~&$";
  std::string safe;
  for (const char c : printable(text)) {
    if (kSpecial.find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

std::string markdown_code(std::string_view text) {
  return fenced(one_line(text));
}

std::string markdown_code_cell(std::string_view text) {
  const std::string line = one_line(text);
  // Some programs take the first backslash of `\\|` for one that escapes the second, and end the
  // cell at the pipe. Text has no such case.
  if (line.find("\\|") != std::string::npos) return markdown_text(line);
  std::string cell;
  for (const char c : fenced(line)) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

void add_markdown_row(std::string& out, const std::vector<std::string>& cells) {
  out += '|';
  for (const std::string& cell : cells) out.append(" ").append(cell).append(" |");
  out += '\n';
}

}  // namespace assay::base
