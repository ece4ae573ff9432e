// The oracle is a reader of the part of GitHub's Markdown that is written here: rows, cells, code
// and escaped characters.
#include "base/markdown.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "base/text.h"

namespace assay::base {
namespace {

// The text of a row's cells; pipes after a backslash do not end one.
std::vector<std::string> cells_of(std::string_view row) {
  std::vector<std::string> cells;
  std::string cell;
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i] == '\\' && i + 1 < row.size()) {
      cell += row[i];
      cell += row[++i];
    } else if (row[i] == '|') {
      cells.emplace_back(trim(cell));
      cell.clear();
    } else {
      cell += row[i];
    }
  }
  EXPECT_EQ(cell, "\n");
  return cells;
}

// In a cell, escaped pipes are resolved before anything else is read.
std::string without_escaped_pipes(std::string_view cell) {
  std::string text;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    if (cell[i] == '\\' && i + 1 < cell.size() && cell[i + 1] == '|') ++i;
    text += cell[i];
  }
  return text;
}

// What is shown of Markdown that is a single code span, or text with escaped characters.
std::optional<std::string> shown(std::string_view markdown) {
  const std::size_t fence = std::min(markdown.find_first_not_of('`'), markdown.size());
  if (fence > 0) {
    markdown.remove_prefix(fence);
    // The first run of as many backticks ends it.
    for (std::size_t at = 0; at < markdown.size();) {
      if (markdown[at] != '`') {
        ++at;
        continue;
      }
      const std::size_t end = std::min(markdown.find_first_not_of('`', at), markdown.size());
      if (end - at == fence) {
        if (end != markdown.size()) return std::nullopt;
        std::string_view code = markdown.substr(0, at);
        const bool blank = code.find_first_not_of(' ') == std::string_view::npos;
        if (!blank && code.starts_with(' ') && code.ends_with(' ')) {
          code = code.substr(1, code.size() - 2);
        }
        return std::string(code);
      }
      at = end;
    }
    return std::nullopt;
  }
  std::string text;
  for (std::size_t i = 0; i < markdown.size(); ++i) {
    if (markdown[i] == '\\' && i + 1 < markdown.size()) {
      ++i;
    } else if (std::string_view("`*_[]<>~&$").find(markdown[i]) != std::string_view::npos) {
      return std::nullopt;
    }
    text += markdown[i];
  }
  return text;
}

TEST(MarkdownText, EscapesWhatWouldBeMarkup) {
  EXPECT_EQ(markdown_text("a plain line, 10 % of it: ok."), "a plain line, 10 % of it: ok.");
  EXPECT_EQ(markdown_text("*a* <b> [c](d) | e_f"), "\\*a\\* \\<b\\> \\[c\\]\\(d\\) \\| e\\_f");
  EXPECT_EQ(markdown_text("a\nb"), "a\\\\x0ab") << "stays one line";
}

TEST(MarkdownCode, HasAFenceLongerThanItsBackticks) {
  EXPECT_EQ(markdown_code("sh a.sh 1"), "`sh a.sh 1`");
  EXPECT_EQ(markdown_code("a | b"), "`a | b`");
  EXPECT_EQ(markdown_code("echo `date` x"), "``echo `date` x``");
  EXPECT_EQ(markdown_code("echo `date`"), "`` echo `date` ``");
  EXPECT_EQ(markdown_code("``"), "``` `` ```");
  EXPECT_EQ(markdown_code(" a "), "`  a  `");
  EXPECT_EQ(markdown_code("a\r\n\tb"), "`a   b`");
  EXPECT_EQ(markdown_code(""), "");
}

TEST(MarkdownCodeCell, EscapesPipes) {
  EXPECT_EQ(markdown_code_cell("cat x | wc"), "`cat x \\| wc`");
  EXPECT_EQ(markdown_code_cell("grep 'a\\|b'"), "grep 'a\\\\\\|b'");
}

std::string line_of_code() {
  std::string text;
  for (const char c : *rc::gen::container<std::string>(
           rc::gen::element('a', ' ', '`', '|', '\\', '*', '<', '\'', '_'))) {
    text += c;
  }
  return text;
}

RC_GTEST_PROP(Markdown, ARowShowsItsCells, ()) {
  const std::vector<std::string> texts = {line_of_code(), line_of_code(), line_of_code()};
  std::string row;
  add_markdown_row(row, {markdown_code_cell(texts[0]), markdown_text(std::string(trim(texts[1]))),
                         markdown_code_cell(texts[2])});
  const auto cells = cells_of(row);
  RC_ASSERT(cells.size() == texts.size());
  RC_ASSERT(shown(without_escaped_pipes(cells[1])) == std::string(trim(texts[1])));
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    const auto code = shown(without_escaped_pipes(cells[i]));
    RC_ASSERT(code.has_value());
    RC_ASSERT(trim(*code) == trim(texts[i]));
  }
}

RC_GTEST_PROP(Markdown, CodeIsShownAsItIs, ()) {
  const std::string text = line_of_code();
  RC_ASSERT(shown(markdown_code(text)) == text);
}

}  // namespace
}  // namespace assay::base
