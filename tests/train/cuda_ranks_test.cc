// Ranks that are threads on one GPU train what one rank trains: to the last bit, or, where they
// share sequences, up to rounding.
#include <fmt/format.h>
#include <gtest/gtest.h>

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
#include "train/split_master.h"
#include "train/state.h"
#include "train/testing/executed_as_listed.h"
#include "train/testing/tensor_similarity.h"

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
                         Trained& trained) {
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
    for (std::int64_t step = 1; step <= steps_; ++step) {
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
    train::testing::expect_executed_as_listed(log, program, steps_);
    for (const StateKind kind : {StateKind::kWeights, StateKind::kOptimizer}) {
      for (const StateTensor& tensor : state_tensors(program, kind)) {
        if (tensor.own.count == 0) continue;
        std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(tensor, tensor.own).count));
        ASSAY_TRY_VOID(backend->read(tensor.view, bytes));
        const std::lock_guard lock(mutex_);
        std::vector<std::byte>& whole = trained.state[tensor.name];
        whole.resize(static_cast<std::size_t>(tensor.bytes()));
        std::ranges::copy(bytes, whole.begin() + bytes_of(tensor, tensor.own).first);
      }
    }
    return {};
  }

  Trained run_layout(const spec::ModelSpec& model, const step::Choices& choices,
                     const spec::LayoutSpec& layout) {
    Trained trained;
    const auto ranks = static_cast<int>(layout.dp * layout.inner_ranks());
    auto devices = comm::make_one_gpu(ranks);
    EXPECT_TRUE(devices.has_value());
    const auto done = comm::run_local(ranks, [&](comm::Communicator& c) -> base::Result<void> {
      step::Choices own = choices;
      ASSAY_TRY(own.layout, step::layout_of(layout, c.rank()));
      comm::Communicator& device = *(*devices)[static_cast<std::size_t>(c.rank())];
      ASSAY_TRY(const auto groups, RankGroups::make(device, own.layout));
      auto result = run(model, own, ranks == 1 ? nullptr : groups.get(), trained);
      if (!result) device.abort(result.error());
      // Memory that others copy from must stay until they are done.
      ASSAY_TRY_VOID(std::move(result));
      return c.barrier();
    });
    EXPECT_TRUE(done.has_value()) << done.error().line();
    return trained;
  }

  // Every tensor of bf16 numbers whose name begins with that.
  static void expect_alike(const Trained& found, const Trained& expected, const char* prefix,
                           double least_cosine) {
    const auto values = [](const std::vector<std::byte>& bytes) {
      std::vector<float> list(bytes.size() / 2);
      for (std::size_t i = 0; i < list.size(); ++i) {
        std::uint16_t high = 0;
        std::memcpy(&high, bytes.data() + 2 * i, 2);
        list[i] = join_master({high, 0});
      }
      return list;
    };
    int compared = 0;
    for (const auto& [name, bytes] : expected.state) {
      if (!name.starts_with(prefix)) continue;
      const auto alike =
          train::testing::tensor_similarity(values(bytes), values(found.state.at(name)));
      EXPECT_GT(alike.cosine, least_cosine) << name;
      EXPECT_NEAR(alike.ratio, 1, 0.02) << name;
      ++compared;
    }
    EXPECT_GT(compared, 5);
  }

  base::testing::TempDir directory_;
  std::mutex mutex_;
  std::int64_t steps_ = kSteps;
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
           }) {
        if (optimizer == spec::Optimizer::kMuon) layout.zero = 2;
        SCOPED_TRACE(fmt::format("{} {} dp {} fsdp {} zero {} pp {}",
                                 optimizer == spec::Optimizer::kMuon ? "muon" : "adamw",
                                 spec::to_text(precision), layout.dp, layout.fsdp, layout.zero,
                                 layout.pp));
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

// Every gradient of the first step, by the first moments that it leaves, and the losses; the same
// bits twice, and however the rest is spread.
TEST_F(CudaRanks, ThatShareSequencesTrainWhatOneRankTrainsUpToRounding) {
  const auto describe = [](const spec::LayoutSpec& l) {
    return fmt::format("dp {} fsdp {} zero {} pp {} cp {}", l.dp, l.fsdp, l.zero, l.pp, l.cp);
  };
  for (const auto& [name, shape] : testing::variants()) {
    for (const auto precision : {spec::Precision::kBf16, spec::Precision::kFp8}) {
      const bool is_first = name == testing::variants()[0].name;
      const bool fp8 = precision == spec::Precision::kFp8;
      if (fp8 && !is_first) continue;
      spec::ModelSpec model = shape;
      model.layers = 3;
      step::Choices choices{.numerics = step::numerics_of(precision),
                            .recompute = spec::Recompute::kCheap,
                            .sequence = 192,
                            .micro_batch = 2};
      steps_ = 1;
      const Trained one = run_layout(model, choices, {.dp = 1});
      for (const std::int64_t cp : {2, 3, 4}) {
        if (cp != 2 && !is_first) continue;
        SCOPED_TRACE(fmt::format("{} {} cp {}", name, spec::to_text(precision), cp));
        choices.recompute = cp == 3 ? spec::Recompute::kFull : spec::Recompute::kCheap;
        steps_ = 1;
        const Trained begun = run_layout(model, choices, {.dp = 1, .cp = cp});
        ASSERT_EQ(begun.scalars.size(), 1U);
        expect_alike(begun, one, "first_moment/", fp8 ? 0.98 : 0.998);
        for (const auto which : {step::Scalar::kLossSum, step::Scalar::kNorm}) {
          const auto at = static_cast<std::size_t>(which);
          EXPECT_NEAR(begun.scalars[0][at] / one.scalars[0][at], 1, fp8 ? 0.02 : 0.005);
        }
        EXPECT_EQ(begun.scalars[0][static_cast<std::size_t>(step::Scalar::kCount)],
                  one.scalars[0][static_cast<std::size_t>(step::Scalar::kCount)]);
        steps_ = kSteps;
        const Trained many = run_layout(model, choices, {.dp = 1, .cp = cp});
        std::vector<spec::LayoutSpec> others = {{.dp = 1, .cp = cp}};
        if (is_first && cp == 2) {
          others.push_back({.dp = 2, .cp = cp});
          others.push_back({.dp = 1, .fsdp = 2, .zero = 3, .cp = cp});
          others.push_back({.dp = 1, .pp = 2, .cp = cp});
        }
        for (const spec::LayoutSpec& other : others) {
          SCOPED_TRACE(describe(other));
          const Trained again = run_layout(model, choices, other);
          EXPECT_EQ(again.scalars, many.scalars);
          EXPECT_EQ(again.state == many.state, true);
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::train::cuda
