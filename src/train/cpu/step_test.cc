// The whole step on a CPU: the log of executed ops equals the program's list, gradients equal
// finite differences, recomputation changes nothing. Each also with attention within documents,
// whose meaning document_mask_test.cc checks.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "spec/testing/model_shapes.h"
#include "train/cpu/testing/trial.h"
#include "train/testing/executed_as_listed.h"

namespace assay::train::cpu {
namespace {

using testing::Trial;
using Variant = spec::testing::NamedModel;

std::vector<Variant> variants() {
  const spec::ModelSpec llama{.vocab = 37,
                              .dim = 24,
                              .layers = 2,
                              .heads = 4,
                              .kv_heads = 2,
                              .head_dim = 6,
                              .ffn = 20,
                              .context = 12};
  std::vector<Variant> all = spec::testing::model_shapes(llama);
  for (const Variant& mixture : spec::testing::mixture_shapes(llama)) all.push_back(mixture);
  return all;
}

TEST(CpuStep, ExecutesTheListOpForOp) {
  for (const Variant& variant : variants()) {
    for (const auto policy : {spec::Recompute::kNone, spec::Recompute::kCheap,
                              spec::Recompute::kFfn, spec::Recompute::kFull}) {
      for (const auto optimizer : {spec::Optimizer::kAdamw, spec::Optimizer::kMuon}) {
        if (variant.model.is_moe() && optimizer == spec::Optimizer::kMuon) continue;
        for (const bool mask : {false, true}) {
          Trial run(variant.model, {.recompute = policy,
                                    .optimizer = optimizer,
                                    .accumulate = 2,
                                    .document_mask = mask,
                                    .head_rows = 16});
          ExecutedLog log;
          run.backend().log_to(&log);
          run.step({.beta1 = 0.9, .beta2 = 0.9});
          SCOPED_TRACE(variant.name);
          train::testing::expect_executed_as_listed(log, run.program());
        }
      }
    }
  }
}

void expect_finite_differences(const Variant& variant, bool mask) {
  Trial trained(variant.model,
                {.recompute = spec::Recompute::kCheap, .accumulate = 2, .document_mask = mask});
  trained.step();
  Trial measured(variant.model,
                 {.purpose = step::Purpose::kLoss, .accumulate = 2, .document_mask = mask});
  measured.loss();
  for (const step::Parameter& p : trained.program().parameters) {
    if (p.rule == step::UpdateRule::kBalanced) continue;  // no loss depends on it
    const std::vector<float> gradient = trained.get(trained.program().gradient(p));
    const step::View place = measured.program().weight(p);
    const std::vector<float> weights = measured.get(place);
    // The derivative along the gradient is its squared norm.
    double square = 0;
    for (const float g : gradient) square += static_cast<double>(g) * static_cast<double>(g);
    ASSERT_GT(square, 0) << variant.name << " " << p.name;
    const double length = std::sqrt(square);
    const std::vector<float> loads = measured.loads();
    bool same_choices = true;
    const auto moved = [&](double by) {
      std::vector<float> values = weights;
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] += static_cast<float>(by * static_cast<double>(gradient[i]) / length);
      }
      measured.set(place, values);
      const double loss = measured.loss();
      same_choices = same_choices && measured.loads() == loads;
      return loss;
    };
    // The loss jumps where a token changes its expert: reduces the distance until none does.
    double slope = 0;
    for (const double distance : {5e-3, 2e-3, 1e-3, 5e-4}) {
      same_choices = true;
      slope = (8 * (moved(distance) - moved(-distance)) -
               (moved(2 * distance) - moved(-2 * distance))) /
              (12 * distance);
      if (same_choices) break;
    }
    EXPECT_TRUE(same_choices);
    measured.set(place, weights);
    EXPECT_NEAR(slope / length, 1.0, 2e-3) << variant.name << " " << p.name;
  }
}

TEST(CpuStep, GradientsAreThoseOfFiniteDifferences) {
  for (const Variant& variant : variants()) expect_finite_differences(variant, false);
}

// For models without experts: routers do not see the mask, and some of these tokens are too close
// to the boundary between two experts to be moved at all.
TEST(CpuStep, GradientsWithinDocumentsAreThoseOfFiniteDifferences) {
  for (const Variant& variant : variants()) {
    if (!variant.model.is_moe()) expect_finite_differences(variant, true);
  }
}

TEST(CpuStep, RecomputationAndThreadsChangeNothing) {
  for (const Variant& variant : variants()) {
    std::map<std::string, std::vector<float>> first;
    Scalars scalars{};
    for (const auto policy : {spec::Recompute::kNone, spec::Recompute::kCheap,
                              spec::Recompute::kFfn, spec::Recompute::kFull}) {
      for (const int threads : {1, 3}) {
        Trial run(variant.model,
                  {.recompute = policy, .accumulate = 2, .document_mask = true, .head_rows = 16},
                  threads);
        const Scalars now = run.step({.beta1 = 0.9, .beta2 = 0.95, .clip = 1});
        if (first.empty()) scalars = now;
        EXPECT_EQ(now, scalars);
        for (const step::Parameter& p : run.program().parameters) {
          const std::vector<float> gradient = run.get(run.program().gradient(p));
          auto [at, is_new] = first.try_emplace(p.name, gradient);
          EXPECT_EQ(at->second, gradient) << variant.name << " " << p.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::train::cpu
