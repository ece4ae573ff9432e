#include "cli/number_option.h"

#include <gtest/gtest.h>

namespace assay::cli {
namespace {

template <class T>
std::string refusal(const base::Result<T>& result) {
  return result ? "accepted" : result.error().line();
}

TEST(NumberOption, ReturnsNumbersWithinTheBounds) {
  EXPECT_EQ(number_option<std::int64_t>("x", "1", 1, 8).value(), 1);
  EXPECT_EQ(number_option<std::int64_t>("x", "8", 1, 8).value(), 8);
  EXPECT_EQ(number_option<double>("x", "0.25", 0, 1).value(), 0.25);
  EXPECT_EQ(number_option<std::int64_t>("x", "9223372036854775807", 1).value(), INT64_MAX);
}

TEST(NumberOption, SaysWhatIsExpected) {
  for (const char* text : {"0", "9", "x", "", "1 ", "1.5", "99999999999999999999"}) {
    EXPECT_EQ(refusal(number_option<std::int64_t>("verb --count", text, 1, 8)),
              fmt::format("verb --count: '{}' is not a whole number from 1 to 8", text));
  }
  EXPECT_EQ(refusal(number_option<std::int64_t>("--step", "-1", 0)),
            "--step: '-1' is not a whole number of at least 0");
  EXPECT_EQ(refusal(number_option<std::int64_t>("--step", "99999999999999999999", 0)),
            "--step: '99999999999999999999' is not a whole number from 0 to "
            "9,223,372,036,854,775,807");
  EXPECT_EQ(refusal(number_option<double>("--price", "nan", 0, 1e7, "as in --price 3.5")),
            "--price: 'nan' is not a number from 0 to 10,000,000; as in --price 3.5");
  EXPECT_EQ(refusal(number_option<double>("--top-p", "2", 0.5, 1)),
            "--top-p: '2' is not a number from 0.5 to 1");
}

}  // namespace
}  // namespace assay::cli
