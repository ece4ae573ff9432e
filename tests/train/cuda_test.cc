// A step in bf16 on a GPU against the same step in fp32 on a CPU: loss and every gradient.
#include <gtest/gtest.h>

#include <cmath>

#include "base/testing/temp_dir.h"
#include "train/cpu/cpu_backend.h"
#include "train/cuda/testing/trial.h"
#include "train/every_preset.h"
#include "train/job_data.h"
#include "train/testing/tensor_similarity.h"
#include "train/validation.h"

namespace assay::train {
namespace {

using cuda::testing::gpu_backend;
using cuda::testing::scalar;
using cuda::testing::Trial;
using cuda::testing::Variant;

using testing::tensor_similarity;
using testing::TensorSimilarity;

// Of every gradient, but those of routers.
struct Limits {
  double cosine = 0.999;
  double router_cosine = 0.999;
  double ratio = 0.02;
  double slots = 0;  // the share that may be another expert's
};

void compare(const Variant& variant, step::Choices choices, const StepSettings& settings,
             const Limits& limits = {}) {
  SCOPED_TRACE(variant.name);
  Trial cpu(cpu::make_cpu_backend(), variant.model, choices);
  choices.numerics = step::numerics_of(spec::Precision::kBf16);
  Trial gpu(gpu_backend(), variant.model, choices);
  const Scalars expected = cpu.step(settings);
  const Scalars found = gpu.step(settings);
  for (const auto which : {step::Scalar::kLossSum, step::Scalar::kZLossSum, step::Scalar::kNorm,
                           step::Scalar::kClip}) {
    EXPECT_NEAR(scalar(found, which) / scalar(expected, which), 1.0, 1e-2)
        << static_cast<int>(which);
  }
  EXPECT_EQ(scalar(found, step::Scalar::kCount), scalar(expected, step::Scalar::kCount));
  EXPECT_EQ(scalar(found, step::Scalar::kNonFinite), 0.0F);
  for (const step::Parameter& p : cpu.program().parameters) {
    if (p.rule == step::UpdateRule::kBalanced) continue;  // the loads, which are compared below
    const TensorSimilarity like = tensor_similarity(cpu.gradient(p), gpu.gradient(p));
    EXPECT_GE(like.cosine,
              p.part == step::ModelPart::kRouter ? limits.router_cosine : limits.cosine)
        << p.name;
    EXPECT_NEAR(like.ratio, 1.0, limits.ratio) << p.name;
  }
  if (!variant.model.is_moe()) return;
  for (const auto which : {step::Scalar::kBalanceSum, step::Scalar::kRouterZSum}) {
    EXPECT_NEAR(scalar(found, which) / scalar(expected, which), 1.0, 2e-2)
        << static_cast<int>(which);
  }
  const std::vector<float> expected_loads = cpu.get(cpu.program().loads);
  const std::vector<float> loads = gpu.get(gpu.program().loads);
  double moved = 0;
  double slots = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    moved += 0.5 * std::abs(static_cast<double>(loads[i]) - static_cast<double>(expected_loads[i]));
    slots += static_cast<double>(expected_loads[i]);
  }
  EXPECT_LE(moved, limits.slots * slots);
  EXPECT_NEAR(scalar(found, step::Scalar::kDropped), scalar(expected, step::Scalar::kDropped),
              2 * limits.slots * slots);
}

constexpr Limits kMixtureLimits{
    .cosine = 0.98, .router_cosine = 0.95, .ratio = 0.05, .slots = 0.01};

class CudaAgainstCpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_backend() == nullptr) GTEST_SKIP() << "there is no GPU";
  }
};

TEST_F(CudaAgainstCpu, LossAndEveryGradientAgree) {
  for (const Variant& variant : cuda::testing::variants()) {
    compare(variant, {.recompute = spec::Recompute::kCheap, .accumulate = 2, .head_rows = 128},
            {.learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .clip = 0.5});
  }
}

// Where a token is between two experts, rounding to bf16 decides, and its gradient is another
// expert's: limits are wider, unless all experts are chosen. (On a CPU alone, weights that are
// changed by 0.4 % give cosines from 0.989, of routers from 0.980, and move 0.6 % of the slots.)
// The kernels by themselves choose alike: mixture_kernels_test.cc.
TEST_F(CudaAgainstCpu, MixturesAgree) {
  for (const Variant& variant : cuda::testing::mixtures()) {
    const bool chooses = variant.model.experts_per_token < variant.model.experts;
    compare(variant, {.recompute = spec::Recompute::kCheap, .accumulate = 2, .head_rows = 128},
            {.learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .clip = 0.5},
            chooses ? kMixtureLimits : Limits{});
  }
}

TEST_F(CudaAgainstCpu, LongerSequencesAgree) {
  compare(cuda::testing::variants()[0],
          {.recompute = spec::Recompute::kNone, .sequence = 512, .micro_batch = 3},
          {.learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .clip = 0.5});
}

// Attention within documents: by a bias on the GPU, by shorter products on the CPU. Also of a
// sequence that is no multiple of what cuDNN takes at a time, and with more than one row.
TEST_F(CudaAgainstCpu, DocumentsAreMaskedAlike) {
  const StepSettings settings{
      .learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .clip = 0.5};
  for (const Variant& variant : cuda::testing::variants()) {
    compare(variant,
            {.recompute = spec::Recompute::kCheap,
             .accumulate = 2,
             .document_mask = true,
             .head_rows = 128},
            settings);
  }
  for (const std::int64_t sequence : {512, 200}) {
    compare(cuda::testing::variants()[0],
            {.sequence = sequence, .micro_batch = 3, .document_mask = true}, settings);
  }
}

// Muon's update is orthogonal whatever the gradient's size, so it is compared separately.
TEST_F(CudaAgainstCpu, MuonMovesTheSameWay) {
  const Variant variant = cuda::testing::variants()[0];
  step::Choices choices{.recompute = spec::Recompute::kCheap, .optimizer = spec::Optimizer::kMuon};
  const StepSettings settings{.learning_rate = 1e-3,
                              .muon_learning_rate = 0.02,
                              .muon_momentum = 0.95,
                              .beta1 = 0.9,
                              .beta2 = 0.95,
                              .epsilon = 1e-8,
                              .clip = 1};
  Trial cpu(cpu::make_cpu_backend(), variant.model, choices);
  choices.numerics = step::numerics_of(spec::Precision::kBf16);
  Trial gpu(gpu_backend(), variant.model, choices);
  std::vector<std::vector<float>> before;
  for (const step::Parameter& p : cpu.program().parameters) {
    before.push_back(cpu.get(cpu.program().weight(p)));
  }
  cpu.step(settings);
  gpu.step(settings);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const step::Parameter& p = cpu.program().parameters[i];
    if (p.rule != step::UpdateRule::kMuon) continue;
    std::vector<float> expected = cpu.get(cpu.program().weight(p));
    std::vector<float> found = gpu.get(gpu.program().weight(p));
    for (std::size_t j = 0; j < expected.size(); ++j) {
      expected[j] -= before[i][j];
      found[j] -= before[i][j];
    }
    const TensorSimilarity like = tensor_similarity(expected, found);
    EXPECT_GE(like.cosine, 0.98) << p.name;
    EXPECT_NEAR(like.ratio, 1.0, 0.05) << p.name;
  }
}

// Between two steps, on weights updated by one step.
TEST_F(CudaAgainstCpu, ValidationAgreesAndChangesNothing) {
  base::testing::TempDir dir;
  const std::string text = (dir.path() / "text.tokens").string();
  ASSERT_TRUE(write_builtin_text(text, 256).has_value());
  const StepSettings settings{
      .learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .clip = 1};
  for (const auto recompute : {spec::Recompute::kNone, spec::Recompute::kFull}) {
    step::Choices choices{.recompute = recompute, .accumulate = 2, .head_rows = 128};
    const spec::ModelSpec model = cuda::testing::variants()[0].model;
    Trial cpu(cpu::make_cpu_backend(), model, choices);
    choices.numerics = step::numerics_of(spec::Precision::kBf16);
    Trial plain(gpu_backend(), model, choices);
    Trial validated(gpu_backend(), model, choices);
    const auto sequence = static_cast<std::uint64_t>(cpu.program().choices.sequence);
    const auto set = data::TokenSet::open({.paths = {text}}, sequence);
    ASSERT_TRUE(set.has_value());
    const auto loss_of = [&](Trial& trial) {
      const auto loss = Validation(*set, trial.program(), 5000).loss(trial.backend());
      EXPECT_TRUE(loss.has_value());
      return **loss;
    };
    for (Trial* trial : {&cpu, &plain, &validated}) trial->step(settings);
    EXPECT_NEAR(loss_of(validated) / loss_of(cpu), 1.0, 1e-2);
    EXPECT_EQ(loss_of(validated), loss_of(validated));
    for (Trial* trial : {&plain, &validated}) trial->step(settings);
    for (const step::Unit& unit : plain.program().units) {
      for (const step::BufferId buffer : {unit.weights, unit.remainders, unit.first_moment}) {
        EXPECT_EQ(plain.bits(plain.whole(buffer)), validated.bits(validated.whole(buffer)));
      }
    }
  }
}

TEST(CudaPresets, AreExecutedAsTheirListsSay) {
  const auto first = gpu_backend();
  if (first == nullptr) GTEST_SKIP() << "there is no GPU";
  constexpr std::int64_t kMost = std::int64_t{8} << 30U;
  for (const auto precision : {spec::Precision::kBf16, spec::Precision::kFp8}) {
    EXPECT_GE(execute_every_preset([] { return gpu_backend(); }, precision, kMost), 2);
  }
}

}  // namespace
}  // namespace assay::train
