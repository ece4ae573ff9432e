// Which dots join names, found by our lexer: it against hand-made cases, and against toml++ for
// random text.
#include "spec/toml.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "spec/toml.h"

namespace assay::spec {
namespace {

std::string repeat(const std::string& piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

// `parts` names with dots between them.
std::string dotted(const std::string& part, int parts) {
  return part + repeat("." + part, parts - 1);
}

class AnyPart : public ::testing::TestWithParam<const char*> {};

TEST_P(AnyPart, SixteenPartsAreAllowedAndSeventeenAreNot) {
  const std::string part = GetParam();
  EXPECT_EQ(line_of_deep_name(dotted(part, 16) + " = 1"), 0);
  EXPECT_EQ(line_of_deep_name(dotted(part, 17) + " = 1"), 1);
  EXPECT_EQ(line_of_deep_name("\n[" + dotted(part, 17) + "]"), 2);
  EXPECT_EQ(line_of_deep_name("a = {b = 1, " + dotted(part, 17) + " = 1}"), 1);
}

INSTANTIATE_TEST_SUITE_P(Nesting, AnyPart,
                         ::testing::Values("a", "\"a\"", "'a'", "\"!\"", "\"=\"", "\"a b\"", "\"\"",
                                           "''", "'\\'", "\"\\\"\"", "\"\\\\\"", "\"\\n\"", "\"[\"",
                                           "\"#\"", "'\"'", "\"'\"", " a ", "\t\"}\" ", "\"é\""));

TEST(Nesting, DotsInStringsAndCommentsAreText) {
  const std::string dots = repeat("a.", 40);
  for (const std::string& text :
       {"a = \"" + dots + "\"", "a = '" + dots + "'", "a = \"\"\"" + dots + "\n" + dots + "\"\"\"",
        "a = '''" + dots + "'''", "# " + dots + "\na = 1 # " + dots, "\"" + dots + "\" = 1",
        "a = \"\\\"" + dots + "\"", "a = \"\"\"\\\"\"\"" + dots + "\"\"\""}) {
    EXPECT_EQ(line_of_deep_name(text), 0) << text;
    EXPECT_TRUE(parse_toml(text, "f").has_value()) << text;
  }
}

TEST(Nesting, AStringEndsWhereItEnds) {
  const std::string deep = "\n" + dotted("a", 17) + " = 1";
  for (const std::string text :
       {"a = \"\"", "a = ''", "a = \"\"\"\"\"\"", "a = \"\"\"x\"\"\"\"", "a = \"\"\"x\"\"\"\"\"",
        "a = '''x'''''", "a = \"\"\"x\"\" \"\"\"", "a = '\\'", "a = \"\\\\\"", "a = '''\\'''",
        "a = \"\"\" \\\\\"\"\"", "a = \"'\" # '"}) {
    EXPECT_TRUE(parse_toml(text, "f").has_value()) << text;
    EXPECT_EQ(line_of_deep_name(text + deep), 2) << text;
  }
  EXPECT_EQ(line_of_deep_name("a = \"\"\"\n\\\n\n\"\"\"" + deep), 5) << "lines inside are counted";
}

TEST(Nesting, ListsAndTablesStartAnew) {
  const std::string values = repeat("1.5, ", 100);
  EXPECT_EQ(line_of_deep_name("a = [" + values + "]"), 0);
  EXPECT_EQ(line_of_deep_name(repeat("a.b.c = 1.5\n", 100)), 0);
  EXPECT_EQ(line_of_deep_name(repeat("[a.b.c]\n", 100)), 0);
}

int depth(const Value& value) {
  int deepest = 0;
  if (const auto* table = value.get<Value::Table>()) {
    for (const auto& entry : *table) deepest = std::max(deepest, 1 + depth(entry.second));
  }
  return deepest;
}

// toml++ is the oracle: a name it splits into more than 16 tables must have been noticed.
RC_GTEST_PROP(NestingProperty, NoDeepNameIsMissed, ()) {
  const auto piece = rc::gen::elementOf(std::vector<std::string>{
      "a", "b1", "\"!\"", "'='", "\"\\\"\"", "\"\\\\\"", "''", "\"a.b\"", "' # '", " a", "\"[\" "});
  const std::string before = *rc::gen::elementOf(std::vector<std::string>{
      "", "# it's\n", "x = \"\"\"a\"\"\"\"\"\n", "x = '''\n'''\n", "x = 'a\\'\n", "x = 1 # \"\n",
      "x = [1.0, '\"', \"'\"]\n", "x = {y = \"}\"}\n"});
  std::string name = *piece;
  const int parts = *rc::gen::inRange(1, 24);
  for (int i = 1; i < parts; ++i) name += "." + *piece;
  const std::string text = before + name + " = 1\n";
  const bool noticed = line_of_deep_name(text) != 0;
  RC_ASSERT(noticed == (parts > kMaxNameParts));
  if (noticed) return;
  const auto parsed = parse_toml(text, "f");
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(depth(*parsed) == std::max(parts, depth(*parse_toml(before, "f"))));
}

}  // namespace
}  // namespace assay::spec
