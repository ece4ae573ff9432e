// The style sheet: nothing from outside, and text that can be read upon every colour.
#include "plot/style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace assay::plot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a sheet, or the part of it for dark screens, says a variable is: 0xRRGGBB.
unsigned long colour_in(std::string_view sheet, const std::string& name) {
  const std::size_t at = sheet.find("--" + name + ":#");
  if (at == std::string_view::npos) {
    ADD_FAILURE() << name;
    return 0;
  }
  return std::strtoul(std::string(sheet.substr(at + name.size() + 4, 6)).c_str(), nullptr, 16);
}

double luminance(unsigned long colour) {
  const auto channel = [&](int shift) {
    const double share = static_cast<double>((colour >> shift) & 0xFF) / 255;
    return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(16) + 0.7152 * channel(8) + 0.0722 * channel(0);
}

// The contrast ratio of WCAG 2.
double contrast(unsigned long a, unsigned long b) {
  const double brighter = std::max(luminance(a), luminance(b));
  const double darker = std::min(luminance(a), luminance(b));
  return (brighter + 0.05) / (darker + 0.05);
}

TEST(Style, TextIsReadableInLightAndInDark) {
  constexpr double kReadable = 4.5;  // WCAG's level AA
  EXPECT_NEAR(contrast(0x000000, 0xFFFFFF), 21, 1e-9);
  const std::string_view sheet = style_sheet();
  const std::size_t dark = sheet.find("@media screen and (prefers-color-scheme:dark)");
  ASSERT_NE(dark, std::string_view::npos);
  for (const std::string_view part : {sheet, sheet.substr(dark)}) {
    for (const char* text : {"ink", "soft"}) {
      EXPECT_GE(contrast(colour_in(part, text), colour_in(part, "paper")), kReadable) << text;
    }
    for (std::size_t i = 0; i < kColours; ++i) {
      const std::string name = "c" + std::to_string(i);
      EXPECT_GE(contrast(colour_in(part, "on-" + name), colour_in(part, name)), kReadable) << name;
    }
  }
}

TEST(Style, NeedsNothingFromOutsideAndTouchesNothingThere) {
  const std::string& sheet = style_sheet();
  EXPECT_THAT(sheet, Not(HasSubstr("url(")));
  EXPECT_THAT(sheet, Not(HasSubstr("@import")));
  EXPECT_THAT(sheet, Not(HasSubstr("<")));
  EXPECT_THAT(sheet, Not(HasSubstr("&")));
  for (std::size_t at = sheet.find("\n."); at != std::string::npos;
       at = sheet.find("\n.", at + 1)) {
    EXPECT_EQ(sheet.compare(at + 2, kDrawingClass.size(), kDrawingClass), 0)
        << sheet.substr(at, 40);
  }
}

}  // namespace
}  // namespace assay::plot
