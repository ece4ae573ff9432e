// Programs of several ranks, executed by CPUs with their exchanges over NCCL, which is a fake: what
// NCCL is asked for is what the program lists, the bits are those of one rank, and no order of
// calls makes ranks wait for each other, although each communicator does one call after the other
// and sends wait for their receivers. On a GPU: tests/train/nccl_ranks_test.cc.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "comm/local.h"
#include "nccl/fake_cuda.h"
#include "nccl/fake_ranks.h"
#include "nccl/listed_calls.h"
#include "spec/enum_names.h"
#include "train/cpu/cpu_backend.h"
#include "train/rank_groups.h"
#include "train/rank_run.h"

namespace assay::train {
namespace {

using comm::Communicator;
using nccl_testing::Moved;
using spec::LayoutSpec;
using spec::PipelineSchedule;
using testing::RankRun;
using testing::Trained;

const spec::ModelSpec kModel{.vocab = 96,
                             .dim = 32,
                             .layers = 4,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 8,
                             .ffn = 64,
                             .context = 32};

step::Choices choices_with(spec::Optimizer optimizer) {
  return {.numerics = step::numerics_of(spec::Precision::kFp32),
          .recompute = spec::Recompute::kFfn,
          .optimizer = optimizer,
          .sequence = 16,
          .micro_batch = 2};
}

RankRun run_of(const spec::ModelSpec& model, const step::Choices& choices, RankGroups* groups) {
  return {.model = model, .choices = choices, .steps = 2, .make_backend = [groups] {
            return base::Result<std::unique_ptr<Backend>>(cpu::make_cpu_backend(1, groups));
          }};
}

Trained one_rank(const spec::ModelSpec& model, const step::Choices& choices) {
  Trained trained;
  std::mutex mutex;
  const auto done = testing::run_rank(run_of(model, choices, nullptr), trained, mutex);
  EXPECT_TRUE(done.has_value()) << done.error().line();
  return trained;
}

Trained over_nccl(const spec::ModelSpec& model, const step::Choices& choices,
                  const LayoutSpec& layout) {
  Trained trained;
  std::mutex mutex;
  const auto lines = comm::testing::run(
      static_cast<int>(layout.dp * layout.inner_ranks()),
      [&](Communicator& world) -> base::Result<void> {
        step::Choices own = choices;
        ASSAY_TRY(own.layout, step::layout_of(layout, world.rank()));
        ASSAY_TRY(const auto groups, RankGroups::make(world, own.layout));
        RankRun run = run_of(model, own, groups.get());
        Moved before;
        run.before_steps = [&](const step::Program&) -> base::Result<void> {
          before = fakenccl::counted(world.rank());
          return {};
        };
        run.after_steps = [&](const step::Program& program) -> base::Result<void> {
          if (own.layout.spreads_experts()) return {};  // what is asked for depends on the tokens
          const Moved found = nccl_testing::difference(fakenccl::counted(world.rank()), before);
          const Moved expected = nccl_testing::listed(program, run.steps);
          if (found == expected) return {};
          return base::fail(base::failed_error(
              "NCCL", fmt::format("was asked for{} where the program lists{}",
                                  nccl_testing::to_text(found), nccl_testing::to_text(expected))));
        };
        return testing::run_rank(run, trained, mutex);
      });
  EXPECT_THAT(lines, ::testing::Each("ok"));
  return trained;
}

std::string name_of(const LayoutSpec& layout) {
  return fmt::format("dp {} fsdp {} zero {} tp {} cp {} ep {} pp {} {} chunks {}", layout.dp,
                     layout.fsdp, layout.zero, layout.tp, layout.cp, layout.ep, layout.pp,
                     spec::to_text(layout.pp_schedule), layout.pp_chunks);
}

void expect_equal(const Trained& found, const Trained& expected) {
  EXPECT_EQ(found.scalars, expected.scalars);
  std::string different;
  for (const auto& [name, bytes] : expected.state) {
    if (!found.state.contains(name) || found.state.at(name) != bytes) different += " " + name;
  }
  EXPECT_EQ(different, "");
}

TEST(NcclTraining, IsThatOfOneRank) {
  spec::ModelSpec tied = kModel;
  tied.tied = true;
  for (const spec::ModelSpec& model : {kModel, tied}) {
    const step::Choices choices = choices_with(spec::Optimizer::kAdamw);
    const Trained one = one_rank(model, choices);
    for (const LayoutSpec& layout : {
             LayoutSpec{.dp = 1, .fsdp = 2},
             {.dp = 1, .fsdp = 3, .zero = 1},
             {.dp = 2, .fsdp = 2, .unit = spec::ShardUnit::kModule},
             {.dp = 1, .pp = 2},
             {.dp = 1, .pp = 4},
             {.dp = 1, .pp = 3, .pp_schedule = PipelineSchedule::kGpipe},
             {.dp = 1, .pp = 2, .pp_schedule = PipelineSchedule::kInterleaved, .pp_chunks = 2},
             {.dp = 1, .pp = 3, .pp_schedule = PipelineSchedule::kZbH1},
             {.dp = 1, .fsdp = 2, .pp = 2},
         }) {
      SCOPED_TRACE(name_of(layout) + (model.tied ? " tied" : ""));
      expect_equal(over_nccl(model, choices, layout), one);
    }
  }
}

TEST(NcclTraining, IsThatOfOneRankWithMuon) {
  const step::Choices choices = choices_with(spec::Optimizer::kMuon);
  const LayoutSpec layout{.dp = 1, .fsdp = 3, .zero = 2};
  expect_equal(over_nccl(kModel, choices, layout), one_rank(kModel, choices));
}

// Rows of experts, also none at all for some ranks: the bits of the same layout without NCCL.
TEST(NcclTraining, IsThatOfThreadsWhereExpertsAreSpread) {
  spec::ModelSpec mixture = kModel;
  mixture.experts = 4;
  mixture.experts_per_token = 1;
  mixture.shared_ffn = 16;
  const step::Choices choices = choices_with(spec::Optimizer::kAdamw);
  for (const LayoutSpec& layout : {LayoutSpec{.dp = 1, .fsdp = 2, .ep = 2},
                                   {.dp = 1, .zero = 1, .ep = 4},
                                   {.dp = 1, .pp = 2, .ep = 2}}) {
    SCOPED_TRACE(name_of(layout));
    Trained threads;
    std::mutex mutex;
    const auto done = comm::run_local(
        static_cast<int>(layout.dp * layout.inner_ranks()),
        [&](Communicator& world) -> base::Result<void> {
          step::Choices own = choices;
          ASSAY_TRY(own.layout, step::layout_of(layout, world.rank()));
          ASSAY_TRY(const auto groups, RankGroups::make(world, own.layout));
          return testing::run_rank(run_of(mixture, own, groups.get()), threads, mutex);
        });
    ASSERT_TRUE(done.has_value()) << done.error().line();
    expect_equal(over_nccl(mixture, choices, layout), threads);
  }
}

// Sums are cut differently, so bits are those of the layout.
TEST(NcclTraining, AsksForWhatIsListedAlsoWhereSumsAreCut) {
  const step::Choices choices = choices_with(spec::Optimizer::kAdamw);
  for (const LayoutSpec& layout : {LayoutSpec{.dp = 1, .tp = 2},
                                   {.dp = 1, .tp = 2, .pp = 2},
                                   {.dp = 1, .cp = 2},
                                   {.dp = 1, .fsdp = 2, .cp = 2}}) {
    SCOPED_TRACE(name_of(layout));
    const Trained first = over_nccl(kModel, choices, layout);
    expect_equal(over_nccl(kModel, choices, layout), first);
  }
}

}  // namespace
}  // namespace assay::train
