// The single line that an error becomes, its exit code, and the macros that propagate it.
#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/result.h"
#include "base/text.h"

namespace assay::base {
namespace {

TEST(Error, LineJoinsThePartsThatAreThere) {
  EXPECT_EQ(usage_error("job.toml:12", "unknown key 'layer'", "did you mean 'layers'?").line(),
            "job.toml:12: unknown key 'layer'; did you mean 'layers'?");
  EXPECT_EQ(usage_error("", "unknown key").line(), "unknown key");
  EXPECT_EQ(usage_error("x", "bad").line(), "x: bad");
}

TEST(Error, LineIsOneLineWhateverThePathHolds) {
  EXPECT_EQ(failed_error("a\nb\x1b[2J", "bad\xff").line(), "a\\x0ab\\x1b[2J: bad\\xff");
}

TEST(Error, LongPartsAreShortenedButEachIsThere) {
  const std::string junk(1'000'000, 'x');
  const std::string line =
      usage_error("/" + junk + "/job.toml:12", "no preset '" + junk + "'", "did you mean 'x'?")
          .line();
  EXPECT_LT(display_width(line), 1000U);
  EXPECT_EQ(line.substr(0, 4), "/xxx");
  EXPECT_NE(line.find("/job.toml:12: no preset 'xxx"), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with("…; did you mean 'x'?")) << line;
  // Escapes take four columns where the byte took none.
  EXPECT_LT(usage_error("", std::string(100'000, '\x01'), std::string(9'000, '\n')).line().size(),
            1000U);
}

TEST(Error, CodesAreTheExitCodes) {
  EXPECT_EQ(static_cast<int>(usage_error("", "x").code), 64);
  EXPECT_EQ(static_cast<int>(unfit_error("", "x").code), 3);
  EXPECT_EQ(static_cast<int>(failed_error("", "x").code), 1);
}

TEST(Error, SystemErrorsHaveTheSystemsMessage) {
  const Error error = system_error("/x", "cannot open", EACCES, "run as root");
  EXPECT_EQ(error.line(), "/x: cannot open: Permission denied; run as root");
  EXPECT_EQ(error.code, ExitCode::kUnfit);
  EXPECT_EQ(system_error("/x", "cannot open", 123456).line(), "/x: cannot open: unknown error");
}

Result<int> half(int value) {
  if (value % 2 != 0) return fail(usage_error("half", "odd"));
  return value / 2;
}

Result<int> quarter(int value) {
  ASSAY_TRY(const int once, half(value));
  ASSAY_TRY(const int twice, half(once));
  return twice;
}

Result<void> must_be_even(int value) {
  ASSAY_TRY_VOID(half(value));
  return {};
}

TEST(Result, TryPassesValuesOnAndErrorsUp) {
  EXPECT_EQ(quarter(8), 2);
  EXPECT_EQ(quarter(6).error().line(), "half: odd");
  EXPECT_TRUE(must_be_even(2));
  EXPECT_EQ(must_be_even(3).error().line(), "half: odd");
}

}  // namespace
}  // namespace assay::base
