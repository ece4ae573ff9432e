// The whole step on a GPU: the log of executed ops equals the program's list, neither recomputation
// nor repetition changes a bit, and a non-finite step changes nothing. tests/train compares it with
// a CPU.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "train/cuda/cuda_backend.h"
#include "train/cuda/pinned_memory.h"
#include "train/cuda/testing/trial.h"
#include "train/testing/executed_as_listed.h"

namespace assay::train::cuda {
namespace {

using testing::gpu_backend;
using testing::scalar;
using testing::Trial;
using testing::Variant;

constexpr spec::Recompute kPolicies[] = {spec::Recompute::kNone, spec::Recompute::kCheap,
                                         spec::Recompute::kFfn, spec::Recompute::kFull};

step::Choices choices(spec::Recompute recompute, std::int64_t accumulate = 2,
                      spec::Optimizer optimizer = spec::Optimizer::kAdamw) {
  return {.numerics = step::numerics_of(spec::Precision::kBf16),
          .recompute = recompute,
          .optimizer = optimizer,
          .accumulate = accumulate,
          .head_rows = 128};
}

StepSettings settings(std::int64_t step = 1) {
  return {.step = step,
          .learning_rate = 1e-3,
          .muon_learning_rate = 1e-2,
          .muon_momentum = 0.9,
          .beta1 = 0.9,
          .beta2 = 0.95,
          .epsilon = 1e-8,
          .weight_decay = 0.1,
          .clip = 1};
}

class CudaStep : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_backend() == nullptr) GTEST_SKIP() << "there is no GPU";
  }
};

TEST_F(CudaStep, ExecutesTheListOpForOp) {
  for (const Variant& variant : testing::with_mixtures()) {
    for (const auto policy : kPolicies) {
      for (const auto optimizer : {spec::Optimizer::kAdamw, spec::Optimizer::kMuon}) {
        if (optimizer == spec::Optimizer::kMuon && policy != spec::Recompute::kCheap) continue;
        if (optimizer == spec::Optimizer::kMuon && variant.model.is_moe()) continue;
        SCOPED_TRACE(variant.name);
        Trial run(gpu_backend(), variant.model, choices(policy, 2, optimizer));
        ExecutedLog log;
        run.backend().log_to(&log);
        run.step(settings());
        train::testing::expect_executed_as_listed(log, run.program());
      }
    }
  }
}

TEST_F(CudaStep, RecomputationChangesNothing) {
  for (const Variant& variant : testing::with_mixtures()) {
    std::map<std::string, std::vector<float>> first;
    Scalars scalars{};
    for (const auto policy : kPolicies) {
      Trial run(gpu_backend(), variant.model, choices(policy));
      const Scalars now = run.step(settings());
      if (first.empty()) scalars = now;
      EXPECT_EQ(now, scalars) << variant.name;
      for (const step::Parameter& p : run.program().parameters) {
        const std::vector<float> gradient = run.gradient(p);
        const auto [at, is_new] = first.try_emplace(p.name, gradient);
        EXPECT_TRUE(at->second == gradient) << variant.name << " " << p.name;
      }
    }
  }
}

// Attention within documents: as listed, the same bits under every policy and every time.
TEST_F(CudaStep, MasksDocuments) {
  for (const Variant& variant : testing::variants()) {
    std::map<std::string, std::vector<float>> first;
    for (const auto policy : kPolicies) {
      SCOPED_TRACE(variant.name);
      step::Choices masked = choices(policy);
      masked.document_mask = true;
      Trial run(gpu_backend(), variant.model, masked);
      ExecutedLog log;
      run.backend().log_to(&log);
      run.step(settings());
      train::testing::expect_executed_as_listed(log, run.program());
      for (const step::Parameter& p : run.program().parameters) {
        const std::vector<float> gradient = run.gradient(p);
        const auto [at, is_new] = first.try_emplace(p.name, gradient);
        EXPECT_TRUE(at->second == gradient) << p.name;
      }
    }
  }
}

TEST_F(CudaStep, TwoRunsAreTheSameBitForBit) {
  for (const auto optimizer : {spec::Optimizer::kAdamw, spec::Optimizer::kMuon}) {
    std::vector<std::vector<std::uint16_t>> first;
    Scalars scalars{};
    for (int run = 0; run < 2; ++run) {
      Trial trial(gpu_backend(), testing::variants()[0].model,
                  choices(spec::Recompute::kCheap, 2, optimizer));
      Scalars last{};
      for (std::int64_t step = 1; step <= 4; ++step) last = trial.step(settings(step));
      std::vector<std::vector<std::uint16_t>> all;
      for (const step::Unit& unit : trial.program().units) {
        for (const step::BufferId buffer :
             {unit.weights, unit.remainders, unit.first_moment, unit.second_moment}) {
          if (buffer >= 0) all.push_back(trial.bits(trial.whole(buffer)));
        }
      }
      if (run == 0) {
        first = all;
        scalars = last;
      }
      EXPECT_EQ(scalars, last);
      EXPECT_TRUE(first == all);
    }
  }
}

TEST_F(CudaStep, MixturesAreTheSameBitForBit) {
  for (const Variant& variant : testing::mixtures()) {
    std::vector<std::vector<std::uint16_t>> first;
    std::vector<float> loads;
    Scalars scalars{};
    for (int run = 0; run < 2; ++run) {
      Trial trial(gpu_backend(), variant.model, choices(spec::Recompute::kFfn));
      Scalars last{};
      for (std::int64_t step = 1; step <= 4; ++step) last = trial.step(settings(step));
      EXPECT_EQ(scalar(last, step::Scalar::kNonFinite), 0.0F) << variant.name;
      std::vector<std::vector<std::uint16_t>> all;
      for (const step::Unit& unit : trial.program().units) {
        for (const step::BufferId buffer :
             {unit.weights, unit.remainders, unit.first_moment, unit.second_moment}) {
          if (buffer >= 0) all.push_back(trial.bits(trial.whole(buffer)));
        }
      }
      const std::vector<float> now = trial.get(trial.program().loads);
      if (run == 0) {
        first = all;
        scalars = last;
        loads = now;
      }
      EXPECT_EQ(scalars, last) << variant.name;
      EXPECT_EQ(loads, now) << variant.name;
      EXPECT_TRUE(first == all) << variant.name;
      // Every slot of the step belongs to an expert.
      double slots = 0;
      for (const float load : now) slots += static_cast<double>(load);
      EXPECT_EQ(slots,
                static_cast<double>(trial.program().step_tokens() *
                                    variant.model.experts_per_token * variant.model.moe_layers()));
    }
  }
}

TEST_F(CudaStep, LossOfMixturesFalls) {
  for (const Variant& variant : testing::mixtures()) {
    Trial trial(gpu_backend(), variant.model, choices(spec::Recompute::kCheap, 1));
    const float before = scalar(trial.step(settings(1)), step::Scalar::kLossSum);
    float after = before;
    for (std::int64_t step = 2; step <= 30; ++step) {
      after = scalar(trial.step(settings(step)), step::Scalar::kLossSum);
    }
    EXPECT_LT(after, 0.8F * before) << variant.name;
  }
}

TEST_F(CudaStep, LossFalls) {
  for (const auto optimizer : {spec::Optimizer::kAdamw, spec::Optimizer::kMuon}) {
    Trial trial(gpu_backend(), testing::variants()[0].model,
                choices(spec::Recompute::kCheap, 1, optimizer));
    const float before = scalar(trial.step(settings(1)), step::Scalar::kLossSum);
    float after = before;
    for (std::int64_t step = 2; step <= 30; ++step) {
      after = scalar(trial.step(settings(step)), step::Scalar::kLossSum);
    }
    EXPECT_LT(after, 0.8F * before);
  }
}

TEST_F(CudaStep, AStepThatIsNotFiniteChangesNothing) {
  for (const auto optimizer : {spec::Optimizer::kAdamw, spec::Optimizer::kMuon}) {
    Trial trial(gpu_backend(), testing::variants()[0].model,
                choices(spec::Recompute::kCheap, 1, optimizer));
    trial.step(settings(1));
    const step::Unit& unit = trial.program().units[0];  // the embedding
    const step::View weights = trial.whole(unit.weights);
    std::vector<std::uint16_t> bits = trial.bits(weights);
    bits[0] = 0x7fc0;  // a NaN in the embedding of token 0, which is in the batch
    trial.set_bits(weights, bits);
    const auto moments = trial.bits(trial.whole(unit.first_moment));
    const Scalars scalars = trial.step(settings(2));
    EXPECT_EQ(scalar(scalars, step::Scalar::kNonFinite), 1.0F);
    EXPECT_TRUE(trial.bits(weights) == bits);
    EXPECT_TRUE(trial.bits(trial.whole(unit.first_moment)) == moments);
  }
}

// Large enough that its state spans several pieces of pinned memory, and that copying it takes
// longer than reaching the optimizer.
TEST_F(CudaStep, StateIsCopiedDuringTheNextStep) {
  spec::ModelSpec model = testing::variants()[0].model;
  model.vocab = 60000;
  model.dim = 1024;
  step::Choices small = choices(spec::Recompute::kCheap, 1);
  small.sequence = 32;
  Trial trial(gpu_backend(), model, small);
  trial.step(settings(1));
  std::vector<step::View> views;
  for (const step::Unit& unit : trial.program().units) {
    for (const step::BufferId buffer :
         {unit.weights, unit.remainders, unit.first_moment, unit.second_moment}) {
      if (buffer >= 0) views.push_back(trial.whole(buffer));
    }
  }
  std::vector<std::vector<std::uint16_t>> before;
  for (const step::View& view : views) before.push_back(trial.bits(view));
  for (int turn = 0; turn < 2; ++turn) {  // reuses the same memory
    const auto copy = trial.backend().copy_out(trial.program(), views);
    ASSERT_TRUE(copy.has_value()) << copy.error().line();
    trial.step(settings(turn + 2));
    ASSERT_TRUE(copy->wait().has_value());
    std::size_t total = 0;
    for (std::size_t i = 0; i < views.size(); ++i) {
      ASSERT_EQ(copy->views[i].size(), 2 * before[i].size());
      EXPECT_EQ(std::memcmp(copy->views[i].data(), before[i].data(), copy->views[i].size()), 0)
          << i;
      total += copy->views[i].size();
      before[i] = trial.bits(views[i]);
    }
    EXPECT_GT(total, PinnedMemory::kPiece);
  }
}

TEST_F(CudaStep, ATokenOutsideTheVocabularyIsRefused) {
  Trial trial(gpu_backend(), testing::variants()[0].model, choices(spec::Recompute::kCheap, 1));
  const auto done = run_step(trial.backend(), trial.program(), settings(),
                             [&](std::int32_t, auto tokens, auto targets) {
                               std::fill(tokens.begin(), tokens.end(), 3);
                               std::fill(targets.begin(), targets.end(), 3);
                               tokens[7] = 1000;
                               return base::Result<void>{};
                             });
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().line(), "cuda: token 7 of the batch is 1000, but the vocabulary has 1000");
}

TEST_F(CudaStep, TooMuchMemoryIsRefusedInOneLine) {
  spec::ModelSpec model = testing::variants()[0].model;
  model.dim = 16384;
  model.ffn = 65536;
  model.layers = 100;
  step::Choices small = choices(spec::Recompute::kNone);
  small.sequence = 256;
  const step::Program program = *step::build(model, small);
  const step::MemoryPlan plan = step::plan_memory(program);
  const auto backend = gpu_backend();
  const auto prepared = backend->prepare(program, plan);
  ASSERT_FALSE(prepared.has_value());
  EXPECT_NE(prepared.error().line().find("are needed, but"), std::string::npos)
      << prepared.error().line();
}

// In somebody else's folder, or with a full disk, the timing results are still used.
TEST_F(CudaStep, ACacheThatCannotBeWrittenIsANote) {
  auto made = make_cuda_backend({.tuning_file = "/nowhere/matrix-products"});
  ASSERT_TRUE(made.has_value()) << made.error().line();
  Trial run(std::move(*made), testing::variants().front().model, choices(spec::Recompute::kNone));
  run.step(settings());
  const std::vector<std::string> notes = run.backend().take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("/nowhere/matrix-products"), std::string::npos) << notes[0];
  // A resumed run computes with the algorithms of the run before.
  const std::string algorithms = run.backend().algorithms();
  EXPECT_EQ(*run.backend().adopt(algorithms), "");
  EXPECT_EQ(run.backend().algorithms(), algorithms);
  EXPECT_NE(*run.backend().adopt("assay-products-4 another card\n1 2 3\n"), "");
}

// The driver says only what all processes together have taken of the GPU.
TEST_F(CudaStep, RanksThatShareTheGpuAreMeasuredWithTheirShare) {
  const Variant variant = testing::with_mixtures().front();
  const auto measured = [&](int ranks) {
    auto backend = *make_cuda_backend({.device_ranks = ranks});
    CudaBackend& opened = *backend;
    const Trial run(std::move(backend), variant.model, choices(spec::Recompute::kNone));
    return static_cast<double>(opened.memory().measured);
  };
  measured(1);  // libraries are loaded once per process
  const double alone = measured(1);
  EXPECT_NEAR(measured(2), alone / 2, alone / 10);
}

}  // namespace
}  // namespace assay::train::cuda
