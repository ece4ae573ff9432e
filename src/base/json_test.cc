// What --json promises: order, final newline, and never a throw.
#include "base/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "base/units.h"

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

TEST(Json, ALineIsOneLine) {
  EXPECT_EQ(json_line(Json{{"zebra", 1}, {"ant", {1, 2}}}), "{\"zebra\":1,\"ant\":[1,2]}\n");
  EXPECT_EQ(json_line(Json{{"a", "\n\xff"}}), "{\"a\":\"\\n\uFFFD\",\"a_escaped\":\"%0A%FF\"}\n");
}

TEST(Json, InvalidUtf8BecomesTheReplacementCharacter) {
  EXPECT_EQ(json_text(Json("a\xff"
                           "b")),
            "\"a\uFFFDb\"\n");
}

TEST(Json, WhatIsNotUtf8FollowsInFull) {
  // The decoder of Python's urllib.parse.unquote_to_bytes gives "/tmp/caf\xe9 100%" back.
  EXPECT_EQ(json_text(Json{{"path", "/tmp/caf\xe9 100%"}, {"size", 1}}),
            "{\n"
            "  \"path\": \"/tmp/caf\uFFFD 100%\",\n"
            "  \"path_escaped\": \"/tmp/caf%E9 100%25\",\n"
            "  \"size\": 1\n"
            "}\n");
}

TEST(Json, WhatIsUtf8StandsAlone) {
  const Json document = {{"path", "/tmp/café 100%"}, {"list", {"ü", "%FF"}}};
  EXPECT_EQ(Json::parse(json_text(document)), document);
}

TEST(Json, EveryBytePathIsUniqueAndRestored) {
  std::set<std::string> escaped_names;
  for (int first = 1; first < 256; ++first) {
    for (const int second : {0x61, 0x80, 0xbf, 0xc3, 0xff}) {
      const std::string path = {static_cast<char>(first), static_cast<char>(second)};
      const Json read = Json::parse(json_text(Json{{"p", path}}));
      if (!read.contains("p_escaped")) {
        EXPECT_EQ(read["p"], path);
        continue;
      }
      const std::string escaped = read["p_escaped"];
      EXPECT_TRUE(escaped_names.insert(escaped).second) << escaped;
      std::string decoded;
      for (std::size_t i = 0; i < escaped.size(); ++i) {
        const bool encoded = escaped[i] == '%';
        decoded += encoded ? static_cast<char>(std::stoi(escaped.substr(i + 1, 2), nullptr, 16))
                           : escaped[i];
        if (encoded) i += 2;
      }
      EXPECT_EQ(decoded, path);
    }
  }
}

TEST(Json, ListsAndNestedObjectsHaveTheirs) {
  const Json read = Json::parse(
      json_text(Json{{"files", {{{"path", "\xff"}}, {{"path", "b"}}}}, {"words", {"ls", "\xfe"}}}));
  EXPECT_EQ(read, Json::parse(R"({"files": [{"path": "\uFFFD", "path_escaped": "%FF"},
                                            {"path": "b"}],
                                  "words": ["ls", "\uFFFD"], "words_escaped": ["ls", "%FE"]})"));
}

TEST(Json, NumbersThatAreNotFiniteBecomeNull) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(json_text(Json(infinity)), "null\n");
  EXPECT_EQ(json_text(Json(-infinity)), "null\n");
  EXPECT_EQ(json_text(Json(std::numeric_limits<double>::quiet_NaN())), "null\n");
}

TEST(Json, WhatIsNotThereIsNull) {
  EXPECT_EQ(or_null(std::optional<int>()), Json(nullptr));
  EXPECT_EQ(or_null(std::optional(0)), Json(0));
  EXPECT_EQ(or_null(std::optional(false)), Json(false));
  EXPECT_EQ(or_null(std::optional(Bytes(7))), Json(7));
  EXPECT_EQ(or_null(""), Json(nullptr));
  EXPECT_EQ(or_null("a"), Json("a"));
}

TEST(Json, ControlCharactersAreEscaped) {
  EXPECT_EQ(json_text(Json("a\n\x1b")), "\"a\\n\\u001b\"\n");
}

}  // namespace
}  // namespace assay::base
