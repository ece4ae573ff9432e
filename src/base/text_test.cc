// How arbitrary bytes are shown, and the columns they take.
#include "base/text.h"

#include <gtest/gtest.h>
#include <locale.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace assay::base {
namespace {

TEST(Printable, LeavesTextAlone) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("layers = 12 # für 日本 😀 \\ \""), "layers = 12 # für 日本 😀 \\ \"");
}

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(printable("a\nb\tc\r"), "a\\x0ab\\x09c\\x0d");
  EXPECT_EQ(printable("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\u0080\u009b\u009f\u00a0"), "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f\u00a0");
}

TEST(Printable, ShowsWhatReordersOrEndsTheLine) {
  EXPECT_EQ(printable("\u2027\u2028\u2029"), "\u2027\\xe2\\x80\\xa8\\xe2\\x80\\xa9");
  EXPECT_EQ(printable("\u202a\u202e\u202f"), "\\xe2\\x80\\xaa\\xe2\\x80\\xae\u202f");
  EXPECT_EQ(printable("\u2065\u2066\u2069\u206a"), "\u2065\\xe2\\x81\\xa6\\xe2\\x81\\xa9\u206a");
}

TEST(Printable, ShowsInvalidBytes) {
  EXPECT_EQ(printable("a\xff"
                      "b"),
            "a\\xffb");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");           // overlong NUL
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("caf\xc3"), "caf\\xc3");              // cut in the middle
}

RC_GTEST_PROP(Printable, IsSafeValidAndStable, (const std::string& text)) {
  const std::string shown = printable(text);
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    RC_ASSERT(byte >= 0x20 && byte != 0x7F);
  }
  RC_ASSERT(printable(shown) == shown);
  RC_ASSERT(nlohmann::json::parse(nlohmann::json(shown).dump()) == shown);  // throws when invalid
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("80.0 GiB"), 8U);
  EXPECT_EQ(display_width("é"), 1U);
  EXPECT_EQ(display_width("e\u0301"), 1U);  // combining accent
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(display_width("😀"), 2U);
  EXPECT_EQ(display_width("─—µ"), 3U);
  EXPECT_EQ(display_width("\xff\xfe"), 2U);  // two replacement characters
}

TEST(DisplayWidth, LeavesTheThreadsLocaleAlone) {
  const locale_t before = uselocale(locale_t{});
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(uselocale(locale_t{}), before);
}

RC_GTEST_PROP(DisplayWidth, OfAsciiIsItsLength, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::inRange<char>(0x20, 0x7F));
  RC_ASSERT(display_width(text) == text.size());
}

TEST(Shortened, KeepsTheBeginning) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 6), "abcde…");
  EXPECT_EQ(shortened("日本語", 5), "日本…");
  EXPECT_EQ(shortened("abc", 0), "");
}

TEST(Shortened, InTheMiddleKeepsBothEnds) {
  EXPECT_EQ(shortened_middle("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened_middle("abcdefghi", 6), "ab…ghi");
  EXPECT_EQ(shortened_middle("a" + std::string(100'000, '-') + "日:12", 9), "a---…:12");
  EXPECT_EQ(shortened_middle("abc", 0), "");
}

RC_GTEST_PROP(Shortened, FitsAndIsMadeOfTheEnds, (const std::string& raw)) {
  const std::string text = printable(raw);
  const auto columns = *rc::gen::inRange<std::size_t>(0, 30);
  const std::string shown = shortened_middle(text, columns);
  RC_ASSERT(display_width(shown) <= columns);
  RC_ASSERT(display_width(shortened(text, columns)) <= columns);
  const std::size_t gap = shown.find("…");
  if (gap == std::string::npos) return;
  RC_ASSERT(text.starts_with(shown.substr(0, gap)));
  RC_ASSERT(text.ends_with(shown.substr(gap + std::string("…").size())));
}

TEST(IsDigits, WantsDigitsAlone) {
  for (const char* digits : {"0", "007", "12345678901234567890"}) EXPECT_TRUE(is_digits(digits));
  for (const char* other : {"", " 1", "1 ", "-1", "+1", "1.0", "0x1", "1a", "\xd9\xa1", "\xb2"}) {
    EXPECT_FALSE(is_digits(other)) << other;
  }
  EXPECT_FALSE(is_digits(std::string_view("1\0", 2)));
}

TEST(ForEachPart, LeavesEmptyOnesOut) {
  const auto parts = [](std::string_view text, std::string_view separators) {
    std::vector<std::string> list;
    for_each_part(text, separators, [&](std::string_view part) { list.emplace_back(part); });
    return list;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(parts("/a:/b", ":"), (List{"/a", "/b"}));
  EXPECT_EQ(parts("::/a::/b;c:", ":"), (List{"/a", "/b;c"}));
  EXPECT_EQ(parts(";/a:/b;c:", ":;"), (List{"/a", "/b", "c"}));
  EXPECT_EQ(parts("", ":"), List{});
  EXPECT_EQ(parts(":", ":"), List{});
}

TEST(Trim, TakesSpaceFromBothEnds) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim("ab"), "ab");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(ShellQuoted, IsOneArgumentForTheShell) {
  EXPECT_EQ(shell_quoted("job.toml"), "job.toml");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("my job.toml"), "'my job.toml'");
  EXPECT_EQ(shell_quoted("it's $HOME"), "'it'\\''s $HOME'");
}

}  // namespace
}  // namespace assay::base
