// What must hold of every step, whatever its model, layout and card.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>

#include "plan/model/rank_share.h"
#include "plan/model/step_time.h"
#include "plan/testing/work.h"

namespace assay::plan {
namespace {

using base::Seconds;
using testing::any_nodes_of;
using testing::any_sheet;
using testing::any_work;
using testing::any_work_on;

constexpr double kRounding = 1 + 1e-12;

std::array<Seconds, 14> parts_of(const StepTime& t) {
  return {t.products, t.attention, t.passes,    t.head,     t.routing, t.tensor,    t.context,
          t.experts,  t.shards,    t.gradients, t.pipeline, t.host,    t.optimizer, t.other};
}

Seconds seconds(const Work& work) {
  return step_seconds(work, shipped_constants());
}

// What is faster makes no step slower.
bool no_slower(Seconds after, Seconds before) {
  return after <= before * kRounding;
}

// The same for links. Where tensor-parallel ranks wait less for each other, tensor cores draw more
// and are clocked lower, in the head as well, which does not wait: with few layers, a step may take
// longer by a part of what the clock falls.
bool no_slower(const StepTime& after, const StepTime& before, const Work& work) {
  const double clock = work.degrees.tp > 1 ? std::max(1.0, before.clock / after.clock) : 1;
  return no_slower(after.total, before.total * clock);
}

// By at least a hundredth, so that rounding is not what is seen.
double any_factor() {
  return 1 + *rc::gen::inRange(1, 400) / 100.0;
}

RC_GTEST_PROP(StepTimeProperty, PartsAddUpAndNoneIsNegative, ()) {
  const StepTime t = step_time(any_work(), shipped_constants());
  Seconds sum;
  for (const Seconds part : parts_of(t)) {
    RC_ASSERT(part >= Seconds(0));
    sum += part;
  }
  RC_ASSERT(std::isfinite(t.total.count()) && t.total > Seconds(0));
  RC_ASSERT(std::abs(sum / t.total - 1) <= 1e-9);
  RC_ASSERT(t.clock > 0 && t.clock <= 1);
}

RC_GTEST_PROP(StepTimeProperty, TheTotalAloneIsTheSame, ()) {
  const Work work = any_work();
  RC_ASSERT(seconds(work) == step_time(work, shipped_constants()).total);
}

RC_GTEST_PROP(StepTimeProperty, FasterLinksInsideNeverSlow, ()) {
  const CardSheet& sheet = any_sheet();
  spec::ClusterSpec cluster = any_nodes_of(sheet);
  Work work = any_work_on(sheet, cluster);
  const StepTime fast = step_time(work, shipped_constants());
  const double factor = any_factor();
  *cluster.link.bandwidth = *cluster.link.bandwidth / factor;
  *cluster.link.pcie = *cluster.link.pcie / factor;
  work.links.network = links_of(cluster)->network;
  RC_ASSERT(no_slower(fast, step_time(work, shipped_constants()), work));
}

RC_GTEST_PROP(StepTimeProperty, AFasterNetworkNeverSlows, ()) {
  const CardSheet& sheet = any_sheet();
  spec::ClusterSpec cluster = any_nodes_of(sheet);
  Work work = any_work_on(sheet, cluster);
  const StepTime before = step_time(work, shipped_constants());
  *cluster.network.bandwidth = any_factor() * *cluster.network.bandwidth;
  work.links.network = links_of(cluster)->network;
  RC_ASSERT(no_slower(step_time(work, shipped_constants()), before, work));
}

// Tensor cores wait less for faster memory, draw more and are clocked lower. Passes gain more than
// that costs, unless layers wait for the network or the host anyhow and the head has only the lower
// clock.
RC_GTEST_PROP(StepTimeProperty, FasterMemorySlowsNoMoreThanTheClockFalls, ()) {
  Work work = any_work();
  const StepTime before = step_time(work, shipped_constants());
  work.card.memory_rate = any_factor() * work.card.memory_rate;
  const StepTime after = step_time(work, shipped_constants());
  const bool waits = before.shards > Seconds(0) || before.gradients > Seconds(0) ||
                     before.host > 0.1 * before.total;
  const double clock = waits ? std::max(1.0, before.clock / after.clock) : 1;
  RC_ASSERT(no_slower(after.total, before.total * clock));
}

// With the same watts the clock falls, by a power of the rate that is below one. All rates must
// grow: power is derived from bf16's rate, and a larger one alone would lower the clock of fp8's
// and fp4's products.
RC_GTEST_PROP(StepTimeProperty, FasterTensorCoresNeverSlowEvenWithTheSameWatts, ()) {
  Work work = any_work();
  const Seconds before = seconds(work);
  const double factor = any_factor();
  work.card.bf16_flops = factor * work.card.bf16_flops;
  work.card.fp8_flops = factor * work.card.fp8_flops;
  work.card.fp4_flops = factor * work.card.fp4_flops;
  RC_ASSERT(no_slower(seconds(work), before));
}

RC_GTEST_PROP(StepTimeProperty, MoreWattsNeverSlow, ()) {
  Work work = any_work();
  const Seconds before = seconds(work);
  work.card.watts = any_factor() * work.card.watts;
  RC_ASSERT(no_slower(seconds(work), before));
}

RC_GTEST_PROP(StepTimeProperty, MoreMemoryChangesNothing, ()) {
  Work work = any_work();
  const Seconds before = seconds(work);
  work.card.memory += base::Bytes(*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40));
  RC_ASSERT(seconds(work) == before);
}

RC_GTEST_PROP(StepTimeProperty, MoreMicroBatchesTakeLonger, ()) {
  Work work = any_work();
  const Seconds before = seconds(work);
  work.batch.micros += 1;
  RC_ASSERT(seconds(work) > before);
}

// The same work, links and software on another card.
Seconds seconds_on(Work work, const char* card) {
  work.card = *card_of(card);
  return seconds(work);
}

RC_GTEST_PROP(StepTimeProperty, Gb300IsNeverSlowerThanGb200, ()) {
  Work work = any_work();
  work.fp8 = *rc::gen::arbitrary<bool>();
  work.fp4 = work.fp8 && *rc::gen::arbitrary<bool>();
  RC_ASSERT(no_slower(seconds_on(work, "GB300"), seconds_on(work, "GB200")));
}

// Dense models of 8 billion parameters and more, 4,096 tokens and more in a micro-batch and 2,048
// columns a rank: what was published in both is faster in fp8, everywhere.
RC_GTEST_PROP(StepTimeProperty, Fp8IsFasterWhereItWasPublishedToBe, ()) {
  Work work = llama_8b_on_h100();
  work.card = *card_of(
      *rc::gen::element("H100-SXM5-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "GB200", "GB300"));
  work.software =
      software_of(*rc::gen::element(Framework::kMegatronBridge, Framework::kMegatronCore,
                                    Framework::kTorch, Framework::kTorchCompiled, Framework::kXla,
                                    Framework::kLlmq, Framework::kAssay),
                  work.card);
  const auto [dim, ffn, layers] =
      *rc::gen::element(std::array{4096, 14336, 32}, std::array{5120, 27648, 64},
                        std::array{8192, 28672, 80}, std::array{16384, 53248, 126});
  work.shape.dim = dim;
  work.shape.ffn = ffn;
  work.shape.layers = layers;
  work.shape.heads = work.shape.dim / 128;
  work.shape.mlp_matrices = *rc::gen::element(2, 3);
  testing::complete(work.shape);
  work.batch.sequence = *rc::gen::element(4096, 8192, 16384);
  work.degrees.tp = *rc::gen::element(1, 2);
  work.degrees.ranks *= work.degrees.tp;
  work.batch.micro_batch = *rc::gen::element(1, 2, 4);
  const Seconds bf16 = seconds(work);
  work.fp8 = true;
  RC_ASSERT(seconds(work) < bf16);
}

// What has no part in a step costs nothing.
RC_GTEST_PROP(StepTimeProperty, OnlyWhatIsUsedIsPaid, ()) {
  const Work work = any_work();
  const StepTime t = step_time(work, shipped_constants());
  const Degrees& d = work.degrees;
  RC_ASSERT((t.tensor > Seconds(0)) == (d.tp > 1));
  RC_ASSERT((t.context > Seconds(0)) == (d.cp > 1));
  RC_ASSERT((t.shards > Seconds(0)) == (d.fsdp > 1));
  RC_ASSERT((t.pipeline > Seconds(0)) == (d.pp > 1));
  if (folds_gradients(work)) {
    // One rank adds up micro-batches, too.
    RC_ASSERT((t.gradients > Seconds(0)) ==
              (d.dp * d.cp * d.fsdp > 1 || work.batch.micros > 1 || work.shape.tied));
  } else {
    // Experts may have replicas of their own: among tensor-parallel ranks.
    const RankShare rank = rank_share(work, shipped_constants());
    const double sharing = d.fsdp > 1 ? expert_holders(d, rank, d.fsdp) : 1;
    const bool spread = work.shape.is_moe() && d.ep > 1;
    const bool replicated = spread && expert_holders(d, rank, replicas(d) * d.fsdp) > sharing;
    RC_ASSERT((t.gradients > Seconds(0)) ==
              (replicas(d) * (d.ep_axis ? d.ep : 1) > 1 || replicated));
  }
  RC_ASSERT((t.routing > Seconds(0)) == work.shape.is_moe());
  RC_ASSERT((t.experts > Seconds(0)) == (work.shape.is_moe() && d.ep > 1));
}

}  // namespace
}  // namespace assay::plan
