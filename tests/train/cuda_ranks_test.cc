// Ranks that are threads on one GPU train what one rank trains, to the last bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

#include "base/testing/temp_dir.h"
#include "comm/cuda/one_gpu.h"
#include "comm/local.h"
#include "spec/enum_names.h"
#include "train/cuda/cuda_backend.h"
#include "train/cuda/testing/trial.h"
#include "train/rank_run.h"

namespace assay::train::cuda {
namespace {

constexpr std::int64_t kSteps = 50;

using train::testing::gradients_apart;
using train::testing::Trained;

class CudaRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::gpu_backend() == nullptr) GTEST_SKIP() << "there is no GPU";
  }

  base::Result<void> run(const spec::ModelSpec& model, const step::Choices& choices,
                         RankGroups* groups, std::int64_t steps, Trained& trained) {
    const auto make = [&] {
      // The same algorithms everywhere: what one rank has timed first.
      return make_cuda_backend({.tuning_file = (directory_.path() / "tuned").string(),
                                .copies_state = false,
                                .groups = groups});
    };
    return train::testing::run_rank({.model = model,
                                     .choices = choices,
                                     .steps = steps,
                                     .learning_rate = learning_rate_,
                                     .make_backend = make},
                                    trained, mutex_);
  }

  Trained run_layout(const spec::ModelSpec& model, const step::Choices& choices,
                     const spec::LayoutSpec& layout, std::int64_t steps = 5) {
    Trained trained;
    const auto ranks = static_cast<int>(layout.dp * layout.inner_ranks());
    auto devices = comm::make_one_gpu(ranks);
    EXPECT_TRUE(devices.has_value());
    const auto done = comm::run_local(ranks, [&](comm::Communicator& c) -> base::Result<void> {
      step::Choices own = choices;
      ASSAY_TRY(own.layout, step::layout_of(layout, c.rank()));
      comm::Communicator& device = *(*devices)[static_cast<std::size_t>(c.rank())];
      ASSAY_TRY(const auto groups, RankGroups::make(device, own.layout));
      auto result = run(model, own, ranks == 1 ? nullptr : groups.get(), steps, trained);
      if (!result) device.abort(result.error());
      // Memory that others copy from must stay until they are done.
      ASSAY_TRY_VOID(std::move(result));
      return c.barrier();
    });
    EXPECT_TRUE(done.has_value()) << done.error().line();
    return trained;
  }

  // Large enough for every bit to matter. Where sums are cut differently, small: in large steps of
  // a tiny model, rounding errors grow.
  double learning_rate_ = 1e-2;
  base::testing::TempDir directory_;
  std::mutex mutex_;
};

TEST_F(CudaRanks, TrainWhatOneRankTrains) {
  using spec::PipelineSchedule;
  for (const auto optimizer : {spec::Optimizer::kAdamw, spec::Optimizer::kMuon}) {
    for (const auto precision : {spec::Precision::kBf16, spec::Precision::kFp8}) {
      spec::ModelSpec model = testing::variants()[0].model;
      model.layers = 3;
      const step::Choices choices{.numerics = step::numerics_of(precision),
                                  .recompute = spec::Recompute::kFfn,
                                  .optimizer = optimizer,
                                  .sequence = 64,
                                  .micro_batch = 2};
      const Trained one = run_layout(model, choices, {.dp = 1}, kSteps);
      ASSERT_EQ(one.scalars.size(), static_cast<std::size_t>(kSteps));
      for (spec::LayoutSpec layout : {
               spec::LayoutSpec{.dp = 1, .fsdp = 2},
               {.dp = 1, .fsdp = 4},
               {.dp = 3},
               {.dp = 2, .fsdp = 2, .unit = spec::ShardUnit::kModule},
               {.dp = 1, .pp = 2},
               {.dp = 1, .fsdp = 2, .zero = 1, .pp = 3},
               {.dp = 1, .pp = 3, .pp_schedule = PipelineSchedule::kGpipe},
               {.dp = 1, .pp = 3, .pp_schedule = PipelineSchedule::kZbH1},
               {.dp = 1, .fsdp = 2, .pp = 2, .pp_schedule = PipelineSchedule::kZbH1},
           }) {
        if (optimizer == spec::Optimizer::kMuon) layout.zero = 2;
        SCOPED_TRACE(fmt::format("{} {} dp {} fsdp {} zero {} pp {} {}",
                                 optimizer == spec::Optimizer::kMuon ? "muon" : "adamw",
                                 spec::to_text(precision), layout.dp, layout.fsdp, layout.zero,
                                 layout.pp, spec::to_text(layout.pp_schedule)));
        const Trained many = run_layout(model, choices, layout, kSteps);
        EXPECT_EQ(many.scalars, one.scalars);
        ASSERT_EQ(many.state.size(), one.state.size());
        std::string different;
        for (const auto& [name, bytes] : one.state) {
          if (many.state.at(name) != bytes) different += " " + name;
        }
        EXPECT_EQ(different, "");
      }
    }
  }
}

std::vector<float> floats_of(const std::vector<std::byte>& bf16) {
  std::vector<float> values(bf16.size() / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bf16.data() + 2 * i, 2);
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16U);
  }
  return values;
}

// Sums of products are cut differently, so bits are those of the layout, and the same every time.
TEST_F(CudaRanks, TensorParallelRanksTrainWhatOneRankTrains) {
  learning_rate_ = 5e-4;
  for (const auto precision : {spec::Precision::kBf16, spec::Precision::kFp8}) {
    for (const auto& variant : testing::variants()) {
      spec::ModelSpec model = variant.model;
      if (model.kv_heads % 2 != 0) continue;
      model.layers = 3;
      model.vocab = 509;  // no number of ranks divides it
      const step::Choices choices{.numerics = step::numerics_of(precision),
                                  .recompute = spec::Recompute::kCheap,
                                  .sequence = 64,
                                  .micro_batch = 2};
      const Trained one = run_layout(model, choices, {.dp = 1}, 1);
      const Trained five = run_layout(model, choices, {.dp = 1});
      for (const spec::LayoutSpec& layout : {
               spec::LayoutSpec{.dp = 1, .tp = 2},
               {.dp = 1, .tp = 2, .sequence_parallel = true},
               {.dp = 1, .fsdp = 2, .tp = 2, .sequence_parallel = true},
               {.dp = 1, .tp = 2, .sequence_parallel = true, .pp = 2},
           }) {
        SCOPED_TRACE(fmt::format("{} {} fsdp {} tp {}{} pp {}", variant.name,
                                 spec::to_text(precision), layout.fsdp, layout.tp,
                                 layout.sequence_parallel ? " sp" : "", layout.pp));
        // The first run also times products that one rank does not have.
        const Trained many = run_layout(model, choices, layout, 1);
        const double apart = gradients_apart(one, many, floats_of);
        fmt::print("{} {}: gradients {:.4f}\n", variant.name, spec::to_text(precision), apart);
        EXPECT_LT(apart, precision == spec::Precision::kFp8 ? 0.15 : 0.03);
        const Trained longer = run_layout(model, choices, layout);
        ASSERT_EQ(longer.scalars.size(), five.scalars.size());
        for (std::size_t i = 0; i < five.scalars.size(); ++i) {
          const auto loss = static_cast<std::size_t>(step::Scalar::kLossSum);
          EXPECT_NEAR(longer.scalars[i][loss], five.scalars[i][loss],
                      0.01F * std::abs(five.scalars[i][loss]));
        }
        const Trained again = run_layout(model, choices, layout);
        EXPECT_EQ(again.scalars, longer.scalars);
        EXPECT_TRUE(again.state == longer.state);
      }
    }
  }
}

// Mixtures: what a micro-batch's experts do is its own, so any layout that keeps micro-batches
// whole keeps the bits; tensor-parallel ranks have parts of every expert.
TEST_F(CudaRanks, OfMixturesTrainWhatOneRankTrains) {
  using spec::PipelineSchedule;
  learning_rate_ = 5e-4;
  for (const auto& variant : testing::mixtures()) {
    spec::ModelSpec model = variant.model;
    model.layers = 4;
    const step::Choices choices{.numerics = step::numerics_of(spec::Precision::kBf16),
                                .recompute = spec::Recompute::kFull,
                                .sequence = 64,
                                .micro_batch = 2};
    const Trained one = run_layout(model, choices, {.dp = 1});
    for (const spec::LayoutSpec& layout : {
             spec::LayoutSpec{.dp = 2},
             {.dp = 1, .fsdp = 2},
             {.dp = 1, .pp = 2},
             {.dp = 1, .pp = 2, .pp_schedule = PipelineSchedule::kZbH1},
         }) {
      SCOPED_TRACE(
          fmt::format("{} dp {} fsdp {} pp {}", variant.name, layout.dp, layout.fsdp, layout.pp));
      Trained many = run_layout(model, choices, layout);
      EXPECT_TRUE(many.state == one.state);
      ASSERT_EQ(many.scalars.size(), one.scalars.size());
      for (std::size_t i = 0; i < one.scalars.size(); ++i) {
        // Stages add up the losses of their own layers first.
        for (const auto which : {step::Scalar::kBalanceSum, step::Scalar::kRouterZSum}) {
          const auto at = static_cast<std::size_t>(which);
          EXPECT_NEAR(many.scalars[i][at], one.scalars[i][at], 1e-5F * one.scalars[i][at]);
          many.scalars[i][at] = one.scalars[i][at];
        }
      }
      EXPECT_EQ(many.scalars, one.scalars);
    }
    if (model.experts_per_token < model.experts) continue;  // rounding moves tokens to others
    const Trained begun = run_layout(model, choices, {.dp = 1}, 1);
    const Trained cut = run_layout(model, choices, {.dp = 1, .tp = 2}, 1);
    EXPECT_LT(gradients_apart(begun, cut, floats_of), 0.03) << variant.name;
  }
}

// Experts are computed with rows of several ranks, so bits are those of the layout, and the same
// every time. The first mixture chooses by what one rank has as well: its load is the same.
TEST_F(CudaRanks, WithSpreadExpertsTrainWhatOneRankTrains) {
  learning_rate_ = 5e-4;
  for (const auto& variant : testing::mixtures()) {
    if (variant.model.experts % 2 != 0) continue;
    spec::ModelSpec model = variant.model;
    model.layers = 4;
    const step::Choices choices{.numerics = step::numerics_of(spec::Precision::kBf16),
                                .recompute = spec::Recompute::kFfn,
                                .sequence = 64,
                                .micro_batch = 2};
    const Trained one = run_layout(model, choices, {.dp = 1}, 1);
    for (const spec::LayoutSpec& layout : {
             spec::LayoutSpec{.dp = 1, .ep = 2},
             {.dp = 1, .fsdp = 2, .zero = 3, .ep = 2},
             {.dp = 1, .tp = 2, .ep = 2},
             {.dp = 1, .pp = 2, .ep = 2},
         }) {
      SCOPED_TRACE(fmt::format("{} fsdp {} tp {} pp {} ep {}", variant.name, layout.fsdp, layout.tp,
                               layout.pp, layout.ep));
      run_layout(model, choices, layout, 1);  // times products that one rank does not have
      const Trained many = run_layout(model, choices, layout, 1);
      const auto loss = static_cast<std::size_t>(step::Scalar::kLossSum);
      const double apart = gradients_apart(one, many, floats_of);
      fmt::print("{} ep {}: gradients {:.4f}\n", variant.name, layout.ep, apart);
      if (layout.tp == 1) {
        EXPECT_EQ(many.scalars[0][loss], one.scalars[0][loss]);
        EXPECT_EQ(many.loads, one.loads);
      }
      // Where sums are cut, rounding moves tokens to other experts.
      if (layout.tp == 1 || model.experts_per_token == model.experts) {
        EXPECT_LT(apart, 0.03);
      }
      const Trained again = run_layout(model, choices, layout, 1);
      EXPECT_EQ(again.scalars, many.scalars);
      EXPECT_TRUE(again.state == many.state);
    }
  }
}

// Attention is added up in pieces, and gradients by rank. Within that, every gradient of the first
// step and all losses are one rank's; bits are the same twice, and however the rest is spread.
TEST_F(CudaRanks, RanksThatShareSequencesTrainWhatOneRankTrains) {
  learning_rate_ = 5e-4;
  for (const auto& variant : testing::variants()) {
    const bool is_first = variant.name == testing::variants()[0].name;
    for (const auto precision : {spec::Precision::kBf16, spec::Precision::kFp8}) {
      const bool fp8 = precision == spec::Precision::kFp8;
      if (fp8 && !is_first) continue;
      spec::ModelSpec model = variant.model;
      model.layers = 3;
      step::Choices choices{.numerics = step::numerics_of(precision),
                            .recompute = spec::Recompute::kCheap,
                            .sequence = 192,
                            .micro_batch = 2};
      const Trained one = run_layout(model, choices, {.dp = 1}, 1);
      const Trained five = run_layout(model, choices, {.dp = 1});
      for (const std::int64_t cp : {2, 3, 4}) {
        if (cp != 2 && !is_first) continue;
        SCOPED_TRACE(fmt::format("{} {} cp {}", variant.name, spec::to_text(precision), cp));
        choices.recompute = cp == 3 ? spec::Recompute::kFull : spec::Recompute::kCheap;
        const Trained begun = run_layout(model, choices, {.dp = 1, .cp = cp}, 1);
        const double apart = gradients_apart(one, begun, floats_of);
        fmt::print("{} {} cp {}: gradients {:.4f}\n", variant.name, spec::to_text(precision), cp,
                   apart);
        EXPECT_LT(apart, fp8 ? 0.15 : 0.03);
        const Trained longer = run_layout(model, choices, {.dp = 1, .cp = cp});
        ASSERT_EQ(longer.scalars.size(), five.scalars.size());
        for (std::size_t i = 0; i < five.scalars.size(); ++i) {
          const auto loss = static_cast<std::size_t>(step::Scalar::kLossSum);
          const auto count = static_cast<std::size_t>(step::Scalar::kCount);
          EXPECT_NEAR(longer.scalars[i][loss], five.scalars[i][loss],
                      0.01F * std::abs(five.scalars[i][loss]));
          EXPECT_EQ(longer.scalars[i][count], five.scalars[i][count]);
        }
        std::vector<spec::LayoutSpec> others = {{.dp = 1, .cp = cp}};
        if (is_first && cp == 2) {
          others.push_back({.dp = 2, .cp = cp});
          others.push_back({.dp = 1, .fsdp = 2, .zero = 3, .cp = cp});
          others.push_back({.dp = 1, .pp = 2, .cp = cp});
        }
        for (const spec::LayoutSpec& other : others) {
          SCOPED_TRACE(fmt::format("dp {} fsdp {} pp {}", other.dp, other.fsdp, other.pp));
          const Trained again = run_layout(model, choices, other);
          EXPECT_EQ(again.scalars, longer.scalars);
          EXPECT_TRUE(again.state == longer.state);
        }
      }
      if (!is_first) continue;
      const spec::LayoutSpec both{.dp = 1, .tp = 2, .sequence_parallel = true, .cp = 2};
      EXPECT_LT(gradients_apart(one, run_layout(model, choices, both, 1), floats_of),
                fp8 ? 0.15 : 0.03);
    }
  }
}

}  // namespace
}  // namespace assay::train::cuda
