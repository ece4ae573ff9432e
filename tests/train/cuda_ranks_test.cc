// Ranks that are threads on one GPU train what one rank trains, to the last bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/testing/temp_dir.h"
#include "comm/cuda/one_gpu.h"
#include "comm/local.h"
#include "spec/enum_names.h"
#include "train/cuda/cuda_backend.h"
#include "train/cuda/testing/trial.h"
#include "train/resume.h"
#include "train/state.h"
#include "train/testing/executed_as_listed.h"
#include "train/testing/state_pieces.h"

namespace assay::train::cuda {
namespace {

constexpr std::int64_t kMicros = 12;  // of a step, over all ranks
constexpr std::int64_t kSteps = 5;

struct Trained {
  std::map<std::string, std::vector<std::byte>> state;
  std::vector<Scalars> scalars;
};

class CudaRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::gpu_backend() == nullptr) GTEST_SKIP() << "there is no GPU";
  }

  // One rank of the layout; tokens depend on the micro-batch's place in the step alone.
  base::Result<void> run(const spec::ModelSpec& model, step::Choices choices, RankGroups* groups,
                         std::int64_t steps, Trained& trained) {
    const step::Place reads = choices.layout.sequences();
    choices.accumulate = kMicros / reads.ranks;
    ASSAY_TRY(const step::Program program, step::build(model, choices));
    const step::SequencePart part = program.sequence_part();
    const step::MemoryPlan plan = step::plan_memory(program);
    // The same algorithms everywhere: what one rank has timed first.
    ASSAY_TRY(const auto backend,
              make_cuda_backend({.tuning_file = (directory_.path() / "tuned").string(),
                                 .copies_state = false,
                                 .groups = groups}));
    ASSAY_TRY_VOID(backend->prepare(program, plan));
    ASSAY_TRY_VOID(initialise(*backend, program, 5));
    ExecutedLog log;
    backend->log_to(&log);
    for (std::int64_t step = 1; step <= steps; ++step) {
      const StepSettings settings{
          .step = step,
          .learning_rate = 1e-2,
          .muon_learning_rate = 1e-2,
          .muon_momentum = 0.9,
          .beta1 = 0.9,
          .beta2 = 0.95,
          .epsilon = 1e-8,
          .weight_decay = 0.1,
          .clip = 0.5,
          .z_loss = 1e-3,
          .counted_targets = static_cast<double>(program.global_step_tokens())};
      const auto batch = [&](std::int32_t micro, std::span<std::int32_t> tokens,
                             std::span<std::int32_t> targets) -> base::Result<void> {
        const std::int64_t place = step * kMicros + micro * reads.ranks + reads.rank;
        const auto token = [&](std::uint64_t i) {
          const auto n = static_cast<std::uint64_t>(place) * 7919U + i * i * 31U + i * 17U;
          return static_cast<std::int32_t>(n % static_cast<std::uint64_t>(model.vocab));
        };
        // Where a rank that has whole sequences would have the token of this row.
        const auto whole = [&](std::size_t i) {
          const auto row = static_cast<std::int64_t>(i);
          return static_cast<std::uint64_t>(row / part.tokens * choices.sequence +
                                            part.position(row));
        };
        for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = token(whole(i));
        for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = token(whole(i) + 1);
        return {};
      };
      ASSAY_TRY(const Scalars scalars, run_step(*backend, program, settings, batch));
      if (program.choices.layout.rank() == 0) trained.scalars.push_back(scalars);
    }
    train::testing::expect_executed_as_listed(log, program, steps);
    for (const StateKind kind : {StateKind::kWeights, StateKind::kOptimizer}) {
      for (const StateTensor& tensor : state_tensors(program, kind)) {
        if (tensor.own.count == 0) continue;
        std::vector<std::byte> bytes(
            static_cast<std::size_t>(tensor.own.count * step::bytes_of(tensor.type)));
        ASSAY_TRY_VOID(backend->read(tensor.view, bytes));
        const std::lock_guard lock(mutex_);
        std::vector<std::byte>& whole = trained.state[tensor.name];
        whole.resize(static_cast<std::size_t>(tensor.bytes()));
        train::testing::put_own(tensor, bytes, whole);
      }
    }
    return {};
  }

  Trained run_layout(const spec::ModelSpec& model, const step::Choices& choices,
                     const spec::LayoutSpec& layout, std::int64_t steps = kSteps) {
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
      const Trained one = run_layout(model, choices, {.dp = 1});
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
        const Trained many = run_layout(model, choices, layout);
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

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

// How far first moments, which after one step are gradients, are from one rank's: the most that one
// tensor differs by, as a share of its size; tensors that are nearly nothing beside the others are
// rounding errors themselves (the bias of keys) and count as a part of the largest.
double gradients_apart(const Trained& one, const Trained& many) {
  std::map<std::string, std::pair<double, double>> tensors;  // difference and size
  double largest = 0;
  for (const auto& [name, bytes] : one.state) {
    if (!name.starts_with("first_moment/")) continue;
    std::vector<float> expected = floats_of(bytes);
    const double size = norm_of(expected);
    const std::vector<float> found = floats_of(many.state.at(name));
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= found[i];
    tensors[name] = {norm_of(expected), size};
    largest = std::max(largest, size);
  }
  double worst = 0;
  for (const auto& [name, tensor] : tensors) {
    worst = std::max(worst, tensor.first / (tensor.second + 0.01 * largest));
  }
  return worst;
}

// Sums of products are cut differently, so bits are those of the layout, and the same every time.
TEST_F(CudaRanks, TensorParallelRanksTrainWhatOneRankTrains) {
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
        const double apart = gradients_apart(one, many);
        fmt::print("{} {}: gradients {:.4f}\n", variant.name, spec::to_text(precision), apart);
        EXPECT_LT(apart, precision == spec::Precision::kFp8 ? 0.2 : 0.05);
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

// Attention is added up in pieces, and gradients by rank. Within that, every gradient of the first
// step and all losses are one rank's; bits are the same twice, and however the rest is spread.
TEST_F(CudaRanks, RanksThatShareSequencesTrainWhatOneRankTrains) {
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
        const double apart = gradients_apart(one, begun);
        fmt::print("{} {} cp {}: gradients {:.4f}\n", variant.name, spec::to_text(precision), cp,
                   apart);
        EXPECT_LT(apart, fp8 ? 0.2 : 0.05);
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
      EXPECT_LT(gradients_apart(one, run_layout(model, choices, both, 1)), fp8 ? 0.2 : 0.05);
    }
  }
}

}  // namespace
}  // namespace assay::train::cuda
