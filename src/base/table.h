// Table: what every verb prints for people. Columns align, numbers stand to the right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::base {

enum class Align { kAuto, kLeft, kRight };  // kAuto: right when every cell of the column is numeric

class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  Table& align(std::size_t column, Align alignment);
  // As many cells as there are headers. Control characters are shown, not sent to the terminal.
  Table& row(std::vector<std::string> cells);
  // A thin line, then rows that sum up the ones above.
  Table& rule();

  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // Two spaces between columns, a rule under the headers, no trailing spaces, a final newline. The
  // widest texts are cut, with an ellipsis, where a line would be wider than `max_columns`.
  [[nodiscard]] std::string text(std::optional<std::size_t> max_columns = std::nullopt) const;

 private:
  std::vector<std::string> headers_;
  std::vector<Align> alignment_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace assay::base
