#include "spec/mfu.h"

#include <gtest/gtest.h>

namespace assay::spec {
namespace {

TEST(FlopsPerToken, AreThePublishedOnes) {
  ModelSpec m;
  m.vocab = 128256;
  m.dim = 4096;
  m.layers = 32;
  m.heads = 32;
  m.kv_heads = 8;
  m.head_dim = 128;
  m.ffn = 14336;
  m.context = 8192;
  const FlopsPerToken flops = flops_per_token(m, 4096);
  EXPECT_NEAR(flops.with_embedding / 1e9, 54.62, 0.01);
  EXPECT_NEAR(flops.without_embedding / 1e9, 51.47, 0.01);
}

}  // namespace
}  // namespace assay::spec
