// Markdown, in which untrusted text is text: it can neither become markup nor leave its table cell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::base {

// One line in which every character that Markdown interprets is escaped.
std::string markdown_text(std::string_view text);

// One line shown as code. Line ends and tabs become blanks.
std::string markdown_code(std::string_view text);
// The same for the cell of a table, in which pipes are escaped in code too.
std::string markdown_code_cell(std::string_view text);

// A row of a table. The cells are Markdown.
void add_markdown_row(std::string& out, const std::vector<std::string>& cells);

}  // namespace assay::base
