#include "base/csv.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::base {
namespace {

using Fields = std::vector<std::string>;

TEST(Csv, FollowsTheStandard) {
  const auto table = parse_csv(
      "\xef\xbb\xbfid,notes,x\r\n1,\"a, b\",2\r\n\n2,\"two\nlines\",\n3,\"say \"\"so\"\"\"tail,\r\n"
      "4,a\rb",
      "f.csv");
  ASSERT_TRUE(table.has_value()) << table.error().line();
  EXPECT_EQ(table->columns, (Fields{"id", "notes", "x"}));
  ASSERT_EQ(table->records.size(), 4U);
  EXPECT_EQ(table->records[0].fields, (Fields{"1", "a, b", "2"}));
  EXPECT_EQ(table->records[1].fields, (Fields{"2", "two\nlines", ""}));
  EXPECT_EQ(table->records[1].line, 4U);
  EXPECT_EQ(table->records[2].fields, (Fields{"3", "say \"so\"tail", ""}));
  EXPECT_EQ(table->records[2].line, 6U);
  EXPECT_EQ(table->records[3].fields, (Fields{"4", "a\rb"}));
  EXPECT_EQ(table->column("x"), 2U);
  EXPECT_FALSE(table->column("y").has_value());
}

TEST(Csv, RefusesWhatIsNoTable) {
  const auto line = [](std::string_view text) {
    const auto table = parse_csv(text, "f.csv");
    return table ? std::string() : table.error().line();
  };
  EXPECT_EQ(line(""), "f.csv: is empty; the first line names the columns");
  EXPECT_EQ(line("\n\n"), "f.csv: is empty; the first line names the columns");
  EXPECT_EQ(line("a,b,a\n"), "f.csv:1: two columns are called 'a'");
  EXPECT_EQ(line("a,\"b\nx\n"), "f.csv:1: a quote is not closed; end it with \"");
}

TEST(Csv, AQuoteThatIsNotClosedEndsWithItsLine) {
  const auto table = parse_csv("a,b\nw,\"x,\"\"y\r\n\"z\"\"\",2\n", "f.csv");
  ASSERT_TRUE(table.has_value()) << table.error().line();
  ASSERT_EQ(table->records.size(), 1U);  // the quote of the next line closes it
  const auto unclosed = parse_csv("a,b\nw,\"x,\"\"y\r\nz,\"\"\n1,2\n", "f.csv");
  ASSERT_TRUE(unclosed.has_value()) << unclosed.error().line();
  ASSERT_EQ(unclosed->records.size(), 3U);
  EXPECT_TRUE(unclosed->records[0].unclosed);
  EXPECT_EQ(unclosed->records[0].fields, (Fields{"w", "x,\"\"y"}));
  EXPECT_FALSE(unclosed->records[1].unclosed);
  EXPECT_EQ(unclosed->records[1].fields, (Fields{"z", ""}));
  EXPECT_EQ(unclosed->records[2].line, 4U);
}

RC_GTEST_PROP(Csv, WhatIsWrittenIsReadAgain, (const std::vector<Fields>& rows)) {
  std::string text = "only\n";
  std::vector<Fields> expected;
  for (const Fields& row : rows) {
    if (row.empty()) continue;
    Fields fields = row;
    fields.insert(fields.begin(), "x");  // an empty line is not a record
    for (std::size_t i = 0; i < fields.size(); ++i) {
      text += (i > 0 ? "," : "") + csv_field(fields[i]);
    }
    text += "\n";
    expected.push_back(std::move(fields));
  }
  const auto table = parse_csv(text, "f");
  RC_ASSERT(table.has_value());
  RC_ASSERT(table->records.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    RC_ASSERT(table->records[i].fields == expected[i]);
  }
}

}  // namespace
}  // namespace assay::base
