// What --json promises: order, final newline, and never a throw.
#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace assay::base {
namespace {

TEST(Json, KeepsTheOrderOfKeysAndEndsWithANewline) {
  EXPECT_EQ(json_text(Json{{"zebra", 1}, {"ant", {1, 2}}}),
            "{\n"
            "  \"zebra\": 1,\n"
            "  \"ant\": [\n"
            "    1,\n"
            "    2\n"
            "  ]\n"
            "}\n");
}

TEST(Json, InvalidUtf8BecomesTheReplacementCharacter) {
  EXPECT_EQ(json_text(Json("a\xff"
                           "b")),
            "\"a\uFFFDb\"\n");
}

TEST(Json, NumbersThatAreNotFiniteBecomeNull) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(json_text(Json(infinity)), "null\n");
  EXPECT_EQ(json_text(Json(-infinity)), "null\n");
  EXPECT_EQ(json_text(Json(std::numeric_limits<double>::quiet_NaN())), "null\n");
}

TEST(Json, ControlCharactersAreEscaped) {
  EXPECT_EQ(json_text(Json("a\n\x1b")), "\"a\\n\\u001b\"\n");
}

}  // namespace
}  // namespace assay::base
