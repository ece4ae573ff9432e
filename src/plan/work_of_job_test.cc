#include "plan/work_of_job.h"

#include <gtest/gtest.h>

#include "plan/model/memory.h"
#include "plan/testing/searches.h"

namespace assay::plan {
namespace {

using spec::JobSpec;
using testing::job_of;

std::string refusal(const JobSpec& job) {
  const auto work = work_of(job);
  return work ? "" : work.error().line();
}

TEST(WorkOfJob, WhatIsMissingIsNamedByItsKey) {
  JobSpec job = job_of("llama3-8b-h200");
  const spec::DeviceSpec whole = job.cluster.device;
  job.cluster.device.bf16.reset();
  EXPECT_EQ(refusal(job), "cluster.device.bf16: not known for 'NVIDIA H200'; set it");
  job.cluster.device = whole;
  job.cluster.device.memory_bandwidth.reset();
  EXPECT_EQ(refusal(job), "cluster.device.memory_bandwidth: not known for 'NVIDIA H200'; set it");
  job.cluster.device = whole;
  job.cluster.device.memory.reset();
  EXPECT_EQ(refusal(job), "cluster.device.memory: not known for 'NVIDIA H200'; set it");
  job.cluster.device = whole;
  job.cluster.device.name = "Abacus 3000";
  EXPECT_EQ(refusal(job),
            "cluster.device.name: no data sheet is known for 'Abacus 3000'; name the card that is "
            "most like it, such as \"NVIDIA H100 80GB HBM3\"");
}

TEST(WorkOfJob, CpusAndFp32AreNotPredicted) {
  JobSpec job = job_of("llama3-8b-h200");
  job.cluster.device.kind = spec::DeviceKind::kCpu;
  EXPECT_EQ(refusal(job),
            "cluster.device.kind: step times are predicted for GPUs, not for CPUs; name a cluster "
            "with GPUs: assay presets list clusters");
  job = job_of("llama3-8b-h200", {"train.precision=fp32"});
  EXPECT_EQ(refusal(job),
            "train.precision: step times are predicted for bf16, fp16 and fp8, not fp32; set "
            "train.precision to \"bf16\"");
}

TEST(WorkOfJob, TheFrameworkFollowsTheModelByDefault) {
  EXPECT_EQ(work_of(job_of("llama3-8b-h200"))->software.framework, Framework::kAssay);
  const JobSpec nanochat = job_of("nanochat-d26-h100");
  const Work work = work_of(nanochat).value();
  EXPECT_EQ(work.software.framework, Framework::kNanochat);
  EXPECT_TRUE(work.muon && work.fp8);
  EXPECT_EQ(work.shape.parameters, 1'681'790'292);
  const Assumed megatron{.framework = Framework::kMegatronCore};
  EXPECT_EQ(work_of(nanochat, megatron)->software.framework, Framework::kMegatronCore);
}

TEST(WorkOfJob, ADevicesOwnFiguresCount) {
  const JobSpec job =
      job_of("llama3-8b-h200", {"cluster.device.power=500 W", "cluster.device.bf16=800 TFLOP/s"});
  const Card card = work_of(job)->card;
  EXPECT_EQ(card.watts, base::Watts(500));
  EXPECT_EQ(card.bf16_flops, base::FlopsPerSecond(800e12));
  EXPECT_EQ(card.multiprocessors, 132);
  EXPECT_EQ(card.memory, base::Bytes(std::int64_t{143'771} * 1024 * 1024));
}

TEST(WorkOfJob, Fp16HasItsOwnRate) {
  const auto rate = [](const std::vector<std::string>& set) {
    return work_of(job_of("llama3-8b-h200", set))->card.bf16_flops.count();
  };
  const std::string slow = "cluster.device.fp16=500 TFLOP/s";
  EXPECT_EQ(rate({slow, "train.precision=fp16"}), 500e12);
  EXPECT_EQ(rate({slow}), rate({}));
  EXPECT_EQ(rate({"train.precision=fp16"}), rate({}));
}

// Only ZeRO-3 gathers parameters. With less of it, ranks are replicas that share the state.
TEST(WorkOfJob, FsdpShardsByZeroLevel) {
  Work work = work_of(job_of("llama3-70b-h200x32")).value();
  EXPECT_EQ(work.degrees.fsdp, 8);
  EXPECT_EQ(work.degrees.dp, 1);
  EXPECT_EQ(work.degrees.ranks, 32);
  const spec::BatchSpec batch{.sequence = 4096, .micro_batch = 2, .accumulate = 4};
  spread(work, {.dp = 2, .fsdp = 4, .zero = 1, .tp = 4}, batch);
  EXPECT_EQ(work.degrees.fsdp, 1);
  EXPECT_EQ(work.degrees.dp, 8);
  EXPECT_EQ(work.degrees.state_shards, 4);
  EXPECT_EQ(work.degrees.gradient_shards, 1);
  EXPECT_EQ(work.batch.micros, 4);
  spread(work, {.dp = 2, .fsdp = 4, .zero = 2, .tp = 4}, batch);
  EXPECT_EQ(work.degrees.gradient_shards, 4);
}

// What the layout shards is sharded whatever the framework would do by itself.
TEST(WorkOfJob, EveryFrameworkShardsByZeroLevel) {
  for (const Framework framework :
       {Framework::kTorch, Framework::kFoundry, Framework::kMegatronCore, Framework::kAssay}) {
    const auto need = [&](int zero) {
      const std::string stage = "layout.zero=" + std::to_string(zero);
      const JobSpec job = job_of("llama3-13b-h200x32",
                                 {"layout.tp=1", "layout.fsdp=32", stage, "train.recompute=full"});
      return memory_need(work_of(job, {.framework = framework}).value(),
                         shipped_memory_constants());
    };
    const MemoryNeed one = need(1);
    const MemoryNeed two = need(2);
    EXPECT_EQ(one.parameters, two.parameters);
    // Our trainer keeps sums of gradients where the optimizer's state is.
    EXPECT_NEAR(one.gradients / two.gradients, framework == Framework::kAssay ? 1 : 32, 1e-6);
    EXPECT_EQ(one.optimizer, two.optimizer);
    EXPECT_LT(one.optimizer, one.parameters);
    EXPECT_LT(need(3).parameters, two.parameters / 8);
  }
}

// All that lies between nothing and everything is what other frameworks call selective, and saves
// memory for the time that it costs.
TEST(WorkOfJob, RecomputationIsWhatTheFrameworkHas) {
  for (const std::string asked : {"cheap", "selective", "ffn"}) {
    const JobSpec job = job_of("llama3-8b-h200", {"train.recompute=" + asked});
    EXPECT_EQ(work_of(job)->recompute,
              asked == "ffn" ? RecomputeKind::kFfn : RecomputeKind::kCheap);
    for (const Framework framework : {Framework::kTorch, Framework::kMegatronCore}) {
      Work work = work_of(job, {.framework = framework}).value();
      EXPECT_EQ(work.recompute, RecomputeKind::kSelective);
      const MemoryNeed selective = memory_need(work, shipped_memory_constants());
      work.recompute = RecomputeKind::kNone;
      EXPECT_LT(selective.activations / memory_need(work, shipped_memory_constants()).activations,
                0.9);
    }
  }
}

TEST(WorkOfJob, ALinkThatIsNotDescribedIsRefused) {
  JobSpec job = job_of("nanochat-d26-h100");
  job.cluster.nodes = 2;
  EXPECT_EQ(refusal(job),
            "cluster.network.kind: 2 nodes without a network; describe [cluster.network]");
  job.cluster.nodes = 1;
  job.cluster.link.bandwidth.reset();
  EXPECT_EQ(refusal(job),
            "cluster.link.bandwidth: devices with a link of unknown bandwidth; set it, per device "
            "and direction");
}

TEST(WorkOfJob, LinksAreThoseOfTheCluster) {
  const Links mesh = work_of(job_of("llama3-70b-h200x32"))->links;
  ASSERT_EQ(mesh.network.tiers().size(), 2U);
  EXPECT_EQ(mesh.network.tiers()[0].kind, TierKind::kNvlink);
  EXPECT_DOUBLE_EQ(mesh.network.tiers()[0].nominal.count(), 450e9);
  EXPECT_DOUBLE_EQ(mesh.network.tiers()[1].nominal.count(), mesh.per_node() * 50e9);
  EXPECT_EQ(mesh.scarce_threads, 0);
  const Links pairs = work_of(job_of("nanochat-d26-h100", {"cluster.extends=h100-nvl-8"}))->links;
  ASSERT_EQ(pairs.network.tiers().size(), 3U);
  EXPECT_EQ(pairs.network.tiers()[1].kind, TierKind::kPcie);
  EXPECT_EQ(pairs.network.tiers()[2].kind, TierKind::kSockets);
  const std::vector<std::string> two_sockets = {"cluster.numa_nodes=2", "cluster.cpus=160",
                                                "cluster.unpinned=true"};
  EXPECT_EQ(work_of(job_of("nanochat-d26-h100", two_sockets))->links.scarce_threads, 20);
  const std::vector<std::string> one_socket = {"cluster.numa_nodes=1", "cluster.cpus=160",
                                               "cluster.unpinned=true"};
  EXPECT_EQ(work_of(job_of("nanochat-d26-h100", one_socket))->links.scarce_threads, 0);
}

}  // namespace
}  // namespace assay::plan
