// Table: the text output of every verb. Columns are aligned, numbers to the right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::base {

// Whether a cell is a number, so that columns of numbers are aligned to the right.
enum class CellKind {
  kNumber,  // "8,030,261,248", "-3.5", "$31.92", "57.8%", "8.03B", "80.0 GiB", "1.2e-5", "≤ 3 ms"
  kNeutral,  // nothing, or a sign for nothing: "", "—", "-", "n/a"
  kText,     // the rest: "H100", "2026-08-14", "1.2.3", "8xH100", "1,2", "7 of 8"
};

CellKind cell_kind(std::string_view cell);

enum class Align { kAuto, kLeft, kRight };  // kAuto: right when every cell of the column is numeric

class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  Table& align(std::size_t column, Align alignment);
  // As many cells as headers. Control characters are made visible, not sent to the terminal.
  Table& row(std::vector<std::string> cells);
  // A thin line, before rows that sum up those above.
  Table& rule();

  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // Two spaces between columns, a rule under the headers, no trailing spaces, a final newline. If
  // lines would be wider than `max_columns`, the widest texts are cut with an ellipsis.
  [[nodiscard]] std::string text(std::optional<std::size_t> max_columns = std::nullopt) const;

 private:
  std::vector<std::string> headers_;
  std::vector<Align> alignment_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace assay::base
