#include "spec/model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::spec {
namespace {

ModelSpec llama31() {
  ModelSpec m;
  m.head_dim = 128;
  m.rope_theta = 500000;
  m.rope_factor = 8;
  return m;
}

TEST(Rope, WithoutAFactorFrequenciesAreAGeometricSeries) {
  ModelSpec m = llama31();
  m.rope_factor = 1;
  const auto frequencies = rope_frequencies(m);
  ASSERT_EQ(frequencies.size(), 64U);
  EXPECT_EQ(frequencies[0], 1);
  for (std::size_t i = 1; i < frequencies.size(); ++i) {
    EXPECT_NEAR(frequencies[i] / frequencies[i - 1], std::pow(500000.0, -1.0 / 64), 1e-12);
  }
}

// Computed independently of this code, by wavelengths, as the published rule is written.
TEST(Rope, Llama31ScalesSlowRotations) {
  const auto frequencies = rope_frequencies(llama31());
  const std::pair<std::size_t, double> expected[] = {
      {0, 1.0},
      {1, 0.8146172338565447},
      {20, 0.016560440080994446},
      {28, 0.003211445994752591},   // the last that is kept
      {29, 0.002166570763503359},   // between
      {31, 0.0008567514129196321},  // between
      {34, 0.0001785078127679964},  // between
      {35, 9.556212353964683e-05},  // an eighth, as all that follow
      {63, 3.068925988914511e-07}};
  for (const auto& [pair, frequency] : expected) {
    EXPECT_NEAR(frequencies[pair] / frequency, 1, 1e-12) << pair;
  }
}

}  // namespace
}  // namespace assay::spec
