#include "train/init.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "train/philox.h"

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

}  // namespace
}  // namespace assay::train
