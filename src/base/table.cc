// Lays out a table once all its rows are known.
#include "base/table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace assay::base {
namespace {

// Units are short words. Past these lengths a cell that starts with a digit is an id or a sentence.
constexpr std::size_t kLongestJoinedUnit = 8;  // "TFLOP/s", and "µs" takes three bytes
constexpr std::size_t kLongestSpacedUnit = 16;

// Takes the first of `choices` that `text` starts with, if any.
template <std::size_t N>
bool take(std::string_view& text, const std::array<std::string_view, N>& choices) {
  for (const std::string_view choice : choices) {
    if (!text.starts_with(choice)) continue;
    text.remove_prefix(choice.size());
    return true;
  }
  return false;
}

std::size_t take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

// 8030, 8,030 or 8,030,261: commas only where they group thousands, so that "1,2" is a list.
bool take_whole_number(std::string_view& text) {
  const std::size_t lead = take_digits(text);
  if (lead == 0) return false;
  while (text.starts_with(',')) {
    text.remove_prefix(1);
    if (lead > 3 || take_digits(text) != 3) return false;
  }
  return true;
}

bool take_number(std::string_view& text) {
  constexpr std::array<std::string_view, 2> kNotFinite = {"inf", "nan"};
  if (take(text, kNotFinite)) return text.empty() || text.front() == ' ';
  if (!take_whole_number(text)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (take_digits(text) == 0) return false;
  }
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) {
    std::string_view exponent = text.substr(1);
    if (exponent[0] == '+' || exponent[0] == '-') exponent.remove_prefix(1);
    if (take_digits(exponent) > 0) text = exponent;
  }
  return true;
}

// One word of letters, slashes, percent and non-ASCII signs (µ, ×, °). A digit in it ("8xH100",
// "12ab34") or a second word ("7 of 8") makes the cell text.
bool is_unit(std::string_view text) {
  const bool spaced = text.starts_with(' ');
  if (spaced) text.remove_prefix(1);
  if (text.empty()) return !spaced;
  if (text.size() > (spaced ? kLongestSpacedUnit : kLongestJoinedUnit)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool non_ascii = static_cast<unsigned char>(c) >= 0x80;
    return letter || non_ascii || c == '/' || c == '%';
  });
}

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

// Text shorter than this would be useless; the line is allowed to wrap instead.
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

CellKind cell_kind(std::string_view cell) {
  constexpr std::array<std::string_view, 6> kNothing = {"", "—", "–", "-", "n/a", "?"};
  constexpr std::array<std::string_view, 7> kRelations = {"~", "≈", "<", ">", "≤", "≥", "±"};
  constexpr std::array<std::string_view, 3> kSigns = {"+", "-", "−"};
  constexpr std::array<std::string_view, 4> kCurrencies = {"$", "€", "£", "¥"};

  std::string_view rest = trim(cell);
  if (std::find(kNothing.begin(), kNothing.end(), rest) != kNothing.end()) {
    return CellKind::kNeutral;
  }
  if (take(rest, kRelations)) rest = trim(rest);
  take(rest, kSigns);
  take(rest, kCurrencies);
  return take_number(rest) && is_unit(rest) ? CellKind::kNumber : CellKind::kText;
}

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
