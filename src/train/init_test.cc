#include "train/init.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <vector>

#include "train/normal_draw.h"

namespace assay::train {
namespace {

TEST(Philox, GivesThePublishedNumbers) {
  // The known answers of Random123 for Philox4x32-10.
  const auto zeros = philox(0, {0, 0});
  EXPECT_EQ(zeros, (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint64_t ones = ~std::uint64_t{0};
  const auto all = philox(ones, {ones, ones});
  EXPECT_EQ(all, (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(InitialValues, DoNotDependOnTheRange) {
  step::Parameter p{.name = "layers.0.qkv", .rows = 8, .cols = 33, .init_std = 0.02};
  std::vector<float> whole(264);
  initial_values(p, 3, 0, whole);
  for (std::size_t first = 0; first < whole.size(); first += 7) {
    std::vector<float> part(std::min<std::size_t>(7, whole.size() - first));
    initial_values(p, 3, static_cast<std::int64_t>(first), part);
    for (std::size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], whole[first + i]);
  }
  double square = 0;
  for (const float value : whole) square += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(std::sqrt(square / 264), 0.02, 0.003);
}

// Models the differences of a device's libraries: a double that is off by up to kDrawError rounds
// to the same float where rounds_safely() says so, and only there.
TEST(RoundsSafely, IsFalseNextToTheMiddleOfTwoFloats) {
  constexpr auto kError = static_cast<std::int64_t>(kDrawError);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const auto words = philox(11, {i, 0});
    // Any float of the magnitude of a weight, of either sign, and the midpoint between it and the
    // next.
    const std::uint32_t some = (words[0] & 0x80ffffffU) + 0x3b000000U;
    const auto middle =
        (std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(some)))) +
        (std::uint64_t{1} << 28U);
    const std::int64_t away = static_cast<std::int64_t>(words[1] % 260) - 130;
    const std::uint64_t bits = middle + static_cast<std::uint64_t>(away);
    EXPECT_EQ(rounds_safely(bits), std::abs(away) > kError) << away;
    if (!rounds_safely(bits)) continue;
    const auto rounded = [&](std::int64_t off) {
      return static_cast<float>(std::bit_cast<double>(bits + static_cast<std::uint64_t>(off)));
    };
    EXPECT_EQ(rounded(-kError), rounded(0));
    EXPECT_EQ(rounded(kError), rounded(0));
  }
  EXPECT_FALSE(rounds_safely(std::bit_cast<std::uint64_t>(0.0)));
  EXPECT_FALSE(rounds_safely(std::bit_cast<std::uint64_t>(-1e-42)));
  EXPECT_TRUE(rounds_safely(std::bit_cast<std::uint64_t>(0.02)));
}

// Another library in place of a device's: the x87's 64-bit functions, rounded to doubles. They
// differ from glibc's in the last bit of many numbers, but in no weight.
TEST(InitialValues, DoNotDependOnTheLibraryWhereTheyRoundSafely) {
  constexpr std::int64_t kElements = 1 << 22;
  const step::Parameter p{.name = "head", .rows = 1, .cols = kElements, .init_std = 0.02};
  std::vector<float> drawn(kElements);
  initial_values(p, 5, 0, drawn);
  std::int64_t other_doubles = 0;
  std::int64_t unsafe = 0;
  for (std::int64_t i = 0; i < kElements; i += 2) {
    const auto words = philox(5, {static_cast<std::uint64_t>(i / 4), draw_name(p.name)});
    const std::size_t half = i % 4 == 0 ? 0 : 2;
    const auto u = (static_cast<long double>(words[half]) + 1) * 0x1p-32L;
    const double radius = std::sqrt(-2.0 * static_cast<double>(std::log(u)));
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(words[half + 1]) * 0x1p-32;
    const double two[2] = {
        p.init_std * (radius * static_cast<double>(std::cos(static_cast<long double>(angle)))),
        p.init_std * (radius * static_cast<double>(std::sin(static_cast<long double>(angle))))};
    double x = 0;
    double y = 0;
    box_muller(words[half], words[half + 1], x, y);
    if (p.init_std * x != two[0] || p.init_std * y != two[1]) ++other_doubles;
    for (const int j : {0, 1}) {
      if (!rounds_safely(std::bit_cast<std::uint64_t>(two[j]))) {
        ++unsafe;
        continue;
      }
      ASSERT_EQ(static_cast<float>(two[j]), drawn[static_cast<std::size_t>(i + j)]) << i + j;
    }
  }
  EXPECT_GT(other_doubles, 1000);
  EXPECT_LT(unsafe, 20);  // one is expected
}

}  // namespace
}  // namespace assay::train
