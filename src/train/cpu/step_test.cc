// The whole step on a CPU: the log of executed ops equals the program's list, gradients equal
// finite differences, recomputation changes nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "spec/testing/model_shapes.h"
#include "train/cpu/cpu_backend.h"
#include "train/init.h"
#include "train/testing/executed_as_listed.h"

namespace assay::train::cpu {
namespace {

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

constexpr double kZLoss = 0.01;
constexpr double kBalanceLoss = 0.05;
constexpr double kRouterZLoss = 0.02;

// A prepared program with seeded weights and a fixed batch.
class Trial {
 public:
  explicit Trial(const spec::ModelSpec& model, step::Choices choices, int threads = 2)
      : backend_(make_cpu_backend(threads)) {
    if (choices.sequence == 0) choices.sequence = 10;
    choices.micro_batch = 3;
    program_ = *step::build(model, choices);
    plan_ = step::plan_memory(program_);
    EXPECT_TRUE(backend_->prepare(program_, plan_).has_value());
    for (const step::Parameter& p : program_.parameters) {
      std::vector<float> values(static_cast<std::size_t>(p.elements()));
      step::Parameter wild = p;  // large values, so that everything has an effect
      wild.init_std = p.part == step::Part::kRouter
                          ? (model.router == spec::Router::kSoftmax ? 1.0 : 0.5)
                          : 0.3;  // few tokens between experts
      initial_values(wild, 8, 0, values);
      if (p.init != step::Init::kNormal) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] += 0.3F * std::sin(static_cast<float>(i * 7 + p.name.size()));
        }
      }
      set(program_.weight(p), values);
    }
  }

  Scalars step(StepSettings settings = {}) {
    settings.counted_targets = static_cast<double>(program_.step_tokens()) - 2;
    if (settings.z_loss == 0) settings.z_loss = kZLoss;
    settings.balance_loss = kBalanceLoss;
    settings.router_z_loss = kRouterZLoss;
    auto scalars =
        run_step(*backend_, program_, settings, [&](std::int32_t micro, auto tokens, auto targets) {
          for (std::size_t i = 0; i < tokens.size(); ++i) {
            tokens[i] = at(micro, i);
          }
          for (std::size_t i = 0; i < targets.size(); ++i) {
            targets[i] = i == 4 && micro < 2 ? -1 : at(micro, i + 1);
          }
          return base::Result<void>{};
        });
    EXPECT_TRUE(scalars.has_value());
    return *scalars;
  }
  // The mean loss with all penalties, whose gradients are computed.
  double loss() {
    const Scalars s = step();
    const auto value = [&](step::Scalar which) {
      return static_cast<double>(s[static_cast<std::size_t>(which)]);
    };
    const double routers = kBalanceLoss * value(step::Scalar::kBalanceSum) +
                           kRouterZLoss * value(step::Scalar::kRouterZSum);
    return (value(step::Scalar::kLossSum) + kZLoss * value(step::Scalar::kZLossSum)) /
               value(step::Scalar::kCount) +
           routers / static_cast<double>(program_.step_tokens());
  }
  void set(const step::View& view, const std::vector<float>& values) {
    EXPECT_TRUE(backend_->write(view, std::as_bytes(std::span(values))).has_value());
  }
  std::vector<float> get(const step::View& view) {
    std::vector<float> values(static_cast<std::size_t>(view.elements()));
    EXPECT_TRUE(backend_->read(view, std::as_writable_bytes(std::span(values))).has_value());
    return values;
  }
  // Of experts.
  std::vector<float> loads() {
    return program_.loads.buffer < 0 ? std::vector<float>{} : get(program_.loads);
  }
  step::Program& program() { return program_; }
  Backend& backend() { return *backend_; }

 private:
  [[nodiscard]] std::int32_t at(std::int32_t micro, std::size_t i) const {
    return static_cast<std::int32_t>((i * i * 31 + i * 17 + static_cast<std::size_t>(micro) * 5) %
                                     static_cast<std::size_t>(program_.model.vocab));
  }
  std::unique_ptr<Backend> backend_;
  step::Program program_;
  step::MemoryPlan plan_;
};

TEST(CpuStep, ExecutesTheListOpForOp) {
  for (const Variant& variant : variants()) {
    for (const auto policy : {spec::Recompute::kNone, spec::Recompute::kCheap,
                              spec::Recompute::kFfn, spec::Recompute::kFull}) {
      for (const auto optimizer : {spec::Optimizer::kAdamw, spec::Optimizer::kMuon}) {
        if (variant.model.is_moe() && optimizer == spec::Optimizer::kMuon) continue;
        Trial run(variant.model,
                  {.recompute = policy, .optimizer = optimizer, .accumulate = 2, .head_rows = 16});
        ExecutedLog log;
        run.backend().log_to(&log);
        run.step({.beta1 = 0.9, .beta2 = 0.9});
        SCOPED_TRACE(variant.name);
        testing::expect_executed_as_listed(log, run.program());
      }
    }
  }
}

TEST(CpuStep, GradientsAreThoseOfFiniteDifferences) {
  for (const Variant& variant : variants()) {
    Trial trained(variant.model, {.recompute = spec::Recompute::kCheap, .accumulate = 2});
    trained.step();
    Trial measured(variant.model, {.purpose = step::Purpose::kLoss, .accumulate = 2});
    measured.loss();
    for (const step::Parameter& p : trained.program().parameters) {
      if (p.group == step::Group::kBalanced) continue;  // no loss depends on it
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
      // The loss jumps where a token changes its expert: closer, until none does.
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
}

TEST(CpuStep, RecomputationAndThreadsChangeNothing) {
  for (const Variant& variant : variants()) {
    std::map<std::string, std::vector<float>> first;
    Scalars scalars{};
    for (const auto policy : {spec::Recompute::kNone, spec::Recompute::kCheap,
                              spec::Recompute::kFfn, spec::Recompute::kFull}) {
      for (const int threads : {1, 3}) {
        Trial run(variant.model, {.recompute = policy, .accumulate = 2, .head_rows = 16}, threads);
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
