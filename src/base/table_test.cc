// Tables as they are printed, and which cells count as numbers.
#include "base/table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "base/text.h"
#include "base/units.h"

namespace assay::base {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Table, AlignsTextLeftAndNumbersRight) {
  Table table({"gpu", "memory", "price", "note"});
  table.row({"H100", "80.0 GiB", "$2.10", "spot"});
  table.row({"B200", "—", "$12.50", ""});
  table.rule();
  table.row({"total", "80.0 GiB", "$14.60", ""});
  EXPECT_EQ(table.text(),
            "gpu      memory   price  note\n"
            "─────  ────────  ──────  ────\n"
            "H100   80.0 GiB   $2.10  spot\n"
            "B200          —  $12.50\n"
            "─────  ────────  ──────  ────\n"
            "total  80.0 GiB  $14.60\n");
}

TEST(Table, OneTextMakesATextColumn) {
  Table table({"n", "m"});
  table.row({"1", "1"}).row({"12", "many"});
  EXPECT_EQ(table.text(),
            " n  m\n"
            "──  ────\n"
            " 1  1\n"
            "12  many\n");
}

TEST(Table, AColumnOfNothingStandsLeft) {
  Table table({"note", "n"});
  table.row({"—", "1"});
  EXPECT_EQ(table.text(),
            "note  n\n"
            "────  ─\n"
            "—     1\n");
}

TEST(Table, TheWidestTextsGiveWayToTheTerminal) {
  Table table({"name", "elements", "meaning"});
  table.row({"a long name of a thing", "1,234,567", "what it is for, at some length"});
  table.row({"é", "1", "short"});
  EXPECT_EQ(table.text(50),
            "name                  elements  meaning\n"
            "───────────────────  ─────────  ──────────────────\n"
            "a long name of a t…  1,234,567  what it is for, a…\n"
            "é                            1  short\n");
  EXPECT_EQ(table.text(200), table.text());
  EXPECT_EQ(table.text(1), table.text(37)) << "numbers whole, texts twelve columns";
}

TEST(Table, AlignmentCanBeForced) {
  Table table({"id", "name"});
  table.align(0, Align::kLeft).align(1, Align::kRight);
  table.row({"7", "a"}).row({"123", "bcdef"});
  EXPECT_EQ(table.text(),
            "id    name\n"
            "───  ─────\n"
            "7        a\n"
            "123  bcdef\n");
}

TEST(Table, WideCharactersTakeTwoColumns) {
  Table table({"name", "x"});
  table.row({"日本", "a"}).row({"abcde", "b"});
  EXPECT_EQ(table.text(),
            "name   x\n"
            "─────  ─\n"
            "日本   a\n"
            "abcde  b\n");
}

TEST(Table, ShowsControlCharactersOfCellsAndHeaders) {
  Table table({"pa\tth"});
  table.row({"a\n\x1b[2J"});
  EXPECT_EQ(table.text(),
            "pa\\x09th\n"
            "────────────\n"
            "a\\x0a\\x1b[2J\n");
}

TEST(Table, EmptyTableIsItsHeaders) {
  const Table table({"a", "bc"});
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.text(), "a  bc\n─  ──\n");
}

TEST(TableDeathTest, ChecksItsCaller) {
  EXPECT_DEATH(Table({}), "a table has columns");
  EXPECT_DEATH(Table({"a"}).row({"1", "2"}), "as many cells as there are headers");
  EXPECT_DEATH(Table({"a"}).align(1, Align::kLeft), "the column to align exists");
}

RC_GTEST_PROP(Table, EveryLineHasTheSameShape, ()) {
  const auto columns = *rc::gen::inRange<std::size_t>(1, 5);
  const auto row_count = *rc::gen::inRange<std::size_t>(0, 6);
  const auto cells = [&](const char* last) {
    auto row =
        *rc::gen::container<std::vector<std::string>>(columns, rc::gen::arbitrary<std::string>());
    row.emplace_back(last);  // so that no line ends in padding, which would be cut
    return row;
  };
  Table table(cells("end"));
  for (std::size_t i = 0; i < row_count; ++i) table.row(cells("1"));
  const auto lines = lines_of(table.text());
  RC_ASSERT(lines.size() == row_count + 2);
  for (const std::string& line : lines) {
    RC_ASSERT(line.back() != ' ');
    if (row_count > 0) RC_ASSERT(display_width(line) == display_width(lines[0]));
  }
}

TEST(NumericCell, WhatPeoplePrintAsNumbers) {
  for (const char* cell :
       {"0",          "910",     "8,030,261,248", "-3.5",   "+3.5",      "−3",
        "57.8%",      "57.8 %",  "8.03B",         "124M",   "80.0 GiB",  "4.80 TB/s",
        "989TFLOP/s", "15.0 µs", "$31.92",        "-$0.50", "$1,234.50", "$2.10/h",
        "31.92 EUR",  "1.2e-5",  "1e9",           "1.5x",   "1.5×",      "~3",
        "≤ 3 ms",     "< 1%",    "±0.4%",         "inf s",  "nan",       "512 tok/s",
        "8 GPUs",     " 7 "}) {
    EXPECT_EQ(cell_kind(cell), CellKind::kNumber) << cell;
  }
}

TEST(NumericCell, WhatIsNotANumber) {
  for (const char* cell : {"H100",
                           "8xH100",
                           "2026-08-14",
                           "2026-11-15T01:58:14Z",
                           "1.2.3",
                           "1,2",
                           "1,2,3",
                           "1234,567",
                           "12,34",
                           "7 of 8",
                           "70B-instruct",
                           "12ab34",
                           "0x1f",
                           "1.",
                           ".5",
                           "$",
                           "-x",
                           "yes",
                           "12:30",
                           "1/8",
                           "10 things too many",
                           "5 abcdefghijklmnopq",
                           "3abcdefghi",
                           "+",
                           "information"}) {
    EXPECT_EQ(cell_kind(cell), CellKind::kText) << cell;
  }
}

TEST(NumericCell, WhatIsEmpty) {
  for (const char* cell : {"", "  ", "—", "–", "-", "n/a", "?"}) {
    EXPECT_EQ(cell_kind(cell), CellKind::kNeutral) << cell;
  }
}

RC_GTEST_PROP(NumericCell, EveryQuantityWePrintIsANumber, (std::int64_t n, double x)) {
  RC_ASSERT(cell_kind(grouped(n)) == CellKind::kNumber);
  RC_ASSERT(cell_kind(short_count(n)) == CellKind::kNumber);
  RC_ASSERT(cell_kind(to_text(Bytes(n))) == CellKind::kNumber);
  RC_ASSERT(cell_kind(to_text(Seconds(x))) == CellKind::kNumber);
  RC_ASSERT(cell_kind(to_text(FlopsPerSecond(x))) == CellKind::kNumber);
}

}  // namespace
}  // namespace assay::base
