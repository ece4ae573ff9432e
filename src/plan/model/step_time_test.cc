// Steps whose time can be said by hand, and figures that were measured.
#include "plan/model/step_time.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/model/op_time.h"
#include "plan/testing/work.h"

namespace assay::plan {
namespace {

using testing::llama_8b_on_h100;

const ProductRate kHopper{900e12, 132};

// 132 processors with one tile each: all that is lost is the filling of the tiles.
TEST(ProductPrice, AFullWaveLosesTheFillingOnly) {
  const Constants c = shipped_constants();
  const double flops = 2.0 * (128 * 132) * 256 * 4096;
  EXPECT_NEAR(product_seconds(128 * 132, 256, 4096, kHopper, c),
              flops / kHopper.flops * (4096 + c.gemm_k0) / 4096, 1e-12);
}

// One tile more begins a second wave, and gemm_tail of its idle processors are paid.
TEST(ProductPrice, ATileTooManyCostsAShareOfAWave) {
  const Constants c = shipped_constants();
  const double full = product_seconds(128 * 132, 256, 4096, kHopper, c);
  const double more = product_seconds(128 * 132 + 1, 256, 4096, kHopper, c);
  EXPECT_GT(more, full);
  EXPECT_LE(more, full * (1 + c.gemm_tail + 1.0 / 132));
}

TEST(ProductPrice, FrozenWeightsHaveNoGradient) {
  const Constants c = shipped_constants();
  const TwoWays trained = linear_seconds(8192, 4096, 4096, kHopper, true, c);
  const TwoWays frozen = linear_seconds(8192, 4096, 4096, kHopper, false, c);
  EXPECT_EQ(trained.forward, frozen.forward);
  EXPECT_GT(trained.backward, 1.5 * frozen.backward);
}

TEST(ProductPrice, SmoothMaximum) {
  EXPECT_EQ(smooth_max(3, 0), 3);
  EXPECT_NEAR(smooth_max(1, 1), std::pow(2, 0.25), 1e-15);
  EXPECT_EQ(smooth_max(0, 0), 0);
}

// No step is faster than its flops at the card's peak.
TEST(StepTime, NeverBeatsThePeak) {
  const Work work = llama_8b_on_h100();
  const StepTime t = step_time(work, shipped_constants());
  const double tokens = work.batch.sequence * work.batch.micro_batch * work.batch.micros;
  const base::Seconds least =
      base::Flops(6 * work.shape.body_parameters * tokens) / work.card.bf16_flops;
  EXPECT_GT(t.products, least);
  EXPECT_LT(t.products, 2 * least);
}

// Stages of the same length: m + p - 1 passes instead of m, and with v chunks (p - 1) / v.
TEST(StepTime, BubblesOfAPipeline) {
  for (const double stages : {2.0, 4.0, 8.0}) {
    for (const double chunks : {1.0, 2.0}) {
      Work work = llama_8b_on_h100();
      work.degrees = {.pp = stages, .chunks = chunks, .ranks = stages};
      work.batch.micros = 16;
      work.shape.vocab = 8;  // no head to speak of
      // Nor sends.
      work.links = *links_of(testing::one_node(8, spec::LinkKind::kNvswitch, 1e9));
      const StepTime t = step_time(work, shipped_constants());
      const base::Seconds computed = t.products + t.attention + t.passes + t.head + t.host;
      EXPECT_NEAR(t.pipeline / computed, (stages - 1) / chunks / 16, 0.005)
          << stages << " stages of " << chunks;
    }
  }
}

// Half of the backward products fill what would be waits; attention's and the rest cannot.
TEST(StepTime, ZeroBubbleHasShorterBubbles) {
  Work work = llama_8b_on_h100();
  work.degrees = {.pp = 4, .ranks = 4};
  work.batch.micros = 16;
  const StepTime usual = step_time(work, shipped_constants());
  work.degrees.zero_bubble = true;
  const StepTime filled = step_time(work, shipped_constants());
  EXPECT_EQ(filled.products, usual.products);
  EXPECT_LT(filled.pipeline, 0.7 * usual.pipeline);
  EXPECT_GT(filled.pipeline, 0.25 * usual.pipeline);
}

// Where layers do not come out even, our trainer's stages in the middle have one more, and all wait
// for the slowest.
TEST(StepTime, UnevenStagesWaitForTheSlowest) {
  Work work = llama_8b_on_h100();
  work.software = software_of(Framework::kAssay, work.card);
  work.degrees = {.pp = 4, .ranks = 4};
  work.batch.micros = 64;
  work.shape.vocab = 8;  // no head to speak of
  const auto products_of = [&](double layers) {
    work.shape.body_parameters *= layers / work.shape.layers;
    work.shape.layers = layers;
    return step_time(work, shipped_constants()).products;
  };
  const base::Seconds eight = products_of(32);
  EXPECT_DOUBLE_EQ(products_of(33) / eight, 9.0 / 8);
  EXPECT_DOUBLE_EQ(products_of(35) / eight, 9.0 / 8);
  EXPECT_DOUBLE_EQ(products_of(36) / eight, 9.0 / 8);
}

// Others fill stages with whole layers: 61 on 16 stages are four on most of them, and of 126 on 16
// stages in four chunks two are missing where the embedding and the head are.
TEST(StepTime, StagesOfOthersHaveWholeLayers) {
  Work work = llama_8b_on_h100();
  work.software = software_of(Framework::kMegatronCore, work.card);
  work.batch.micros = 64;
  work.shape.vocab = 8;
  const auto layers_of = [&](double layers, double chunks) {
    const auto products = [&](double count) {
      work.degrees = {.pp = 16, .chunks = chunks, .ranks = 16};
      work.shape.body_parameters *= count / work.shape.layers;
      work.shape.layers = count;
      return step_time(work, shipped_constants()).products;
    };
    return products(layers) / products(16 * chunks) * chunks;
  };
  EXPECT_DOUBLE_EQ(layers_of(61, 1), 4);
  EXPECT_DOUBLE_EQ(layers_of(126, 4), 8);
  EXPECT_DOUBLE_EQ(layers_of(128, 4), 8);
  EXPECT_DOUBLE_EQ(layers_of(129, 1), 9);
}

// Computing a layer again costs its forward pass.
TEST(StepTime, FullRecomputationAddsAForwardPass) {
  Work work = llama_8b_on_h100();
  work.software.hostless = true;
  work.software.stops_early = false;
  const StepTime kept = step_time(work, shipped_constants());
  work.recompute = RecomputeKind::kFull;
  const StepTime again = step_time(work, shipped_constants());
  EXPECT_NEAR(again.products / kept.products, 4.0 / 3, 0.01);
  // Of the passes, those over parameters and their gradients are not repeated.
  Constants without = shipped_constants();
  without.grad_adds = 0;
  work.recompute = RecomputeKind::kNone;
  const base::Seconds once = step_time(work, without).passes;
  work.recompute = RecomputeKind::kFull;
  EXPECT_NEAR(step_time(work, without).passes / once, 4.0 / 3, 1e-9);
  EXPECT_NEAR((again.passes - kept.passes).count(), once.count() / 3, 1e-9);
  EXPECT_EQ(again.head, kept.head);
  // Nothing reads the result of the last product, which is 14,336 of 53,248 columns.
  work.software.stops_early = true;
  const StepTime early = step_time(work, shipped_constants());
  EXPECT_NEAR((again.products - early.products) / (again.products - kept.products), 14336.0 / 53248,
              0.01);
}

TEST(StepTime, RecomputationCostsMoreTheLessIsKept) {
  Work work = llama_8b_on_h100();
  work.software = software_of(Framework::kAssay, work.card);
  base::Seconds before;
  for (const auto kind :
       {RecomputeKind::kNone, RecomputeKind::kCheap, RecomputeKind::kFfn, RecomputeKind::kFull}) {
    work.recompute = kind;
    const base::Seconds now = step_seconds(work, shipped_constants());
    EXPECT_GT(now, before);
    before = now;
  }
}

// Passes forward and backward stretch; exchange and optimizer do not.
TEST(StepTime, AStarvedHostSlowsThePasses) {
  Work work = llama_8b_on_h100();
  const StepTime fed = step_time(work, shipped_constants());
  work.links.scarce_threads = 20;
  const StepTime starved = step_time(work, shipped_constants());
  const base::Seconds fixed = fed.gradients + fed.optimizer + fed.other;
  EXPECT_NEAR((starved.total - fed.total).count(), 0.92 * (fed.total - fixed).count(), 1e-9);
  EXPECT_EQ(starved.optimizer, fed.optimizer);
  EXPECT_EQ(starved.gradients, fed.gradients);
}

}  // namespace
}  // namespace assay::plan
