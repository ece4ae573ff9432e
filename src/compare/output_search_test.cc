#include "compare/output_search.h"

#include <gtest/gtest.h>

namespace assay::compare {
namespace {

std::string documents_of(std::string_view text) {
  std::string found;
  EXPECT_TRUE(each_document(text, SearchLimit(),
                            [&](const base::Json& document) { found += document.dump() + ";"; }));
  return found;
}

TEST(Documents, BeginALineAndEndOne) {
  EXPECT_EQ(documents_of("{\"a\":1}"), "{\"a\":1};");
  EXPECT_EQ(documents_of("log\n{\n  \"a\": [\n    1\n  ]\n}\nlog\n [2] \r\n{}"),
            "{\"a\":[1]};[2];{};");
  EXPECT_EQ(documents_of("[INFO] {\"a\":1}\n[1] done\nx {\"b\":1}\n"), "");
  EXPECT_EQ(documents_of("[epoch 1\n{\"a\": \"}\\\"{\"}\n"), "{\"a\":\"}\\\"{\"};");
  EXPECT_EQ(documents_of(""), "");
  EXPECT_EQ(documents_of("\n\n"), "");
}

TEST(Documents, HostileTextEnds) {
  std::string brackets;
  for (int i = 0; i < 200'000; ++i) brackets += "[\n";
  EXPECT_EQ(documents_of(brackets), "");
  EXPECT_EQ(documents_of(brackets + "]\n{\"a\":\"\n}\n{\"b\":2}"), "[];{\"b\":2};");
  EXPECT_EQ(documents_of(std::string(100'000, '{')), "");
  EXPECT_EQ(documents_of("{\"a"), "");
  EXPECT_EQ(documents_of("{\"a\\"), "");
}

TEST(Documents, AnInterruptEndsTheSearch) {
  const SearchLimit none([] { return true; });
  EXPECT_FALSE(each_document("{}\n{}", none, [](const base::Json&) { FAIL(); }));
}

}  // namespace
}  // namespace assay::compare
