// Lays out a table once all its rows are known.
#include "base/table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/numeric_cell.h"
#include "base/text.h"

namespace assay::base {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kLine = "─";

std::string repeated(std::string_view piece, std::size_t count) {
  std::string text;
  text.reserve(piece.size() * count);
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

struct Column {
  std::size_t width = 0;
  bool right = false;
};

std::string line_of(const std::vector<std::string>& cells, const std::vector<Column>& columns) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += kGap;
    const std::string cell = shortened(cells[i], columns[i].width);
    const std::string padding(columns[i].width - display_width(cell), ' ');
    line += columns[i].right ? padding + cell : cell + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// Text narrower than this says nothing; the line may as well wrap.
constexpr std::size_t kNarrowest = 12;

// Takes columns away from the widest texts in turn until a line fits. Numbers are never cut.
void shrink(std::vector<Column>& columns, std::size_t max_columns) {
  std::size_t total = kGap.size() * (columns.size() - 1);
  for (const Column& column : columns) total += column.width;
  while (total > max_columns) {
    Column* widest = nullptr;
    for (Column& column : columns) {
      const bool text = !column.right && column.width > kNarrowest;
      if (text && (widest == nullptr || column.width >= widest->width)) widest = &column;
    }
    if (widest == nullptr) return;
    --widest->width;
    --total;
  }
}

}  // namespace

Table::Table(std::vector<std::string> headers)
    : headers_(std::move(headers)), alignment_(headers_.size(), Align::kAuto) {
  ASSAY_CHECK(!headers_.empty(), "a table has columns");
  for (std::string& header : headers_) header = printable(header);
}

Table& Table::align(std::size_t column, Align alignment) {
  ASSAY_CHECK(column < alignment_.size(), "the column to align exists");
  alignment_[column] = alignment;
  return *this;
}

Table& Table::row(std::vector<std::string> cells) {
  ASSAY_CHECK(cells.size() == headers_.size(), "a row has as many cells as there are headers");
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
  return *this;
}

Table& Table::rule() {
  rows_.emplace_back();
  return *this;
}

std::string Table::text(std::optional<std::size_t> max_columns) const {
  std::vector<Column> columns(headers_.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].width = display_width(headers_[i]);
    bool some_number = false;
    bool only_numbers = true;
    for (const auto& row : rows_) {
      if (row.empty()) continue;
      columns[i].width = std::max(columns[i].width, display_width(row[i]));
      const CellKind kind = cell_kind(row[i]);
      some_number |= kind == CellKind::kNumber;
      only_numbers &= kind != CellKind::kText;
    }
    columns[i].right = alignment_[i] == Align::kRight ||
                       (alignment_[i] == Align::kAuto && some_number && only_numbers);
  }

  if (max_columns) shrink(columns, *max_columns);

  std::vector<std::string> lines;
  for (const Column& column : columns) lines.push_back(repeated(kLine, column.width));
  const std::string rule = line_of(lines, columns);

  std::string text = line_of(headers_, columns) + rule;
  for (const auto& row : rows_) text += row.empty() ? rule : line_of(row, columns);
  return text;
}

}  // namespace assay::base
