// Cells that are numbers, words, or nothing.
#include "base/numeric_cell.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/units.h"

namespace assay::base {
namespace {

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

TEST(NumericCell, WhatSaysNothing) {
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
