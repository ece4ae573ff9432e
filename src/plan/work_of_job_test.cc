#include "plan/work_of_job.h"

#include <gtest/gtest.h>

#include "plan/model/memory.h"
#include "plan/plan.h"
#include "plan/testing/searches.h"
#include "plan/trainer_rules.h"

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
            "train.precision: step times are predicted for bf16, fp16, fp8, mxfp8 and nvfp4, not "
            "fp32; set train.precision to \"bf16\"");
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

// With FSDP, ranks with different experts and ranks that share a sequence divide the rest of the
// state, as in PyTorch and Megatron: it does not grow where such ranks take the place of others.
TEST(WorkOfJob, ExpertsAndContextsDivideTheStateOfOthers) {
  const auto state = [](Framework framework, const std::vector<std::string>& layout) {
    std::vector<std::string> set = {"layout.tp=1", "train.recompute=full"};
    set.insert(set.end(), layout.begin(), layout.end());
    const bool mixture = layout.back() != "dense";
    if (!mixture) set.pop_back();
    const JobSpec job = job_of(mixture ? "moe-9b-h200x32" : "llama3-13b-h200x32", set);
    const MemoryNeed need =
        memory_need(work_of(job, {.framework = framework}).value(), shipped_memory_constants());
    return (need.parameters + need.gradients + need.optimizer) / base::Bytes(1);
  };
  for (const Framework framework :
       {Framework::kTorch, Framework::kTorchCompiled, Framework::kMegatronCore}) {
    const double alone = state(framework, {"layout.fsdp=32", "layout.ep=1", "layout.zero=3"});
    const double nested = state(framework, {"layout.fsdp=4", "layout.ep=8", "layout.zero=3"});
    EXPECT_NEAR(nested / alone, 1, 0.02) << to_text(framework);
    const double wide = state(framework, {"layout.fsdp=32", "layout.cp=1", "dense"});
    const double folded = state(framework, {"layout.fsdp=2", "layout.cp=16", "dense"});
    EXPECT_NEAR(folded / wide, 1, 0.02) << to_text(framework);
  }
  // PyTorch's FSDP is over such ranks even if there are no others.
  for (const Framework framework : {Framework::kTorch, Framework::kTorchCompiled}) {
    EXPECT_NEAR(state(framework, {"layout.fsdp=1", "layout.cp=32", "dense"}) /
                    state(framework, {"layout.fsdp=32", "layout.cp=1", "dense"}),
                1, 0.02);
    EXPECT_NEAR(state(framework, {"layout.fsdp=1", "layout.dp=4", "layout.ep=8"}) /
                    state(framework, {"layout.fsdp=8", "layout.dp=4", "layout.ep=1"}),
                1, 0.02);
  }
  // Without FSDP only a distributed optimizer is divided.
  const std::vector<std::string> replicas = {"layout.fsdp=1", "layout.dp=32", "dense"};
  EXPECT_GT(state(Framework::kTorch, replicas), 1.5 * state(Framework::kMegatronCore, replicas));
}

// 126 layers in 16 stages of 8 chunks, as Llama 3 405B was trained: the first and the last chunk
// have the embedding and the head alone.
TEST(WorkOfJob, ChunksNeedNotBeEven) {
  const std::vector<std::string> set = {"model.extends=llama3-70b",
                                        "model.layers=126",
                                        "layout.tp=1",
                                        "layout.fsdp=2",
                                        "layout.pp=16",
                                        "layout.pp_schedule=interleaved",
                                        "layout.pp_chunks=8",
                                        "batch.accumulate=16",
                                        "train.recompute=full"};
  const JobSpec job = job_of("llama3-13b-h200x32", set);
  EXPECT_EQ(work_of(job, {.framework = Framework::kMegatronCore})->degrees.chunks, 8);
  EXPECT_EQ(check_trained(job).error().line(),
            "layout.pp_chunks: 126 layers cannot fill 16 stages of 8 chunks; choose fewer chunks");
}

TEST(WorkOfJob, LatentAttentionIsThatOfRows) {
  const JobSpec job = job_of("moe-9b-h200x32", {"model.extends=deepseek-v3", "batch.sequence=4096",
                                                "layout.tp=1", "layout.fsdp=4", "layout.ep=8"});
  const Work work = work_of(job, {.framework = Framework::kMegatronCore}).value();
  const double in = 7168.0 * 1536 + 1536.0 * 128 * 192 + 7168.0 * 576 + 512.0 * 128 * 256;
  EXPECT_DOUBLE_EQ(work.shape.latent_qkv, in / 7168);
  EXPECT_EQ(work.shape.qkv, 128 * (192 + 192 + 128) + 1536 + 512 + 64);
  EXPECT_EQ(work.shape.head_dim, 160);
  EXPECT_EQ(work.shape.attention_out, 128 * 128);
  EXPECT_EQ(work.shape.parameters, 671'026'419'200);
  EXPECT_EQ(check_trained(job).error().line(),
            "model.kv_lora_rank: latent attention cannot be trained yet; leave it out, or choose "
            "another model");
}

TEST(WorkOfJob, PrecisionsWithBlockScalesNeedCardsAndSoftware) {
  const auto job_in = [](const std::string& precision, const std::string& device) {
    return job_of("llama3-8b-h200",
                  {"train.precision=" + precision, "cluster.device.extends=" + device});
  };
  const auto made = [](const JobSpec& job, Framework framework) {
    return work_of(job, {.framework = framework});
  };
  const JobSpec mx = job_in("mxfp8", "gb200");
  const JobSpec nv = job_in("nvfp4", "gb200");
  EXPECT_TRUE(made(mx, Framework::kTorchCompiled)->fp8);
  EXPECT_TRUE(made(nv, Framework::kMegatronCore)->fp4);
  EXPECT_EQ(made(nv, Framework::kTorchCompiled).error().line(),
            "train.precision: torch-compiled has no nvfp4; set it to \"fp8\" or \"bf16\", or name "
            "software that has it: megatron-core");
  EXPECT_EQ(made(job_in("mxfp8", "h200-sxm"), Framework::kMegatronCore).error().line(),
            "train.precision: 'NVIDIA H200' has no mxfp8; set it to \"fp8\" or \"bf16\"");
  // AMD's fp4 is not NVIDIA's.
  JobSpec amd = job_in("nvfp4", "mi300x");
  amd.cluster.device.name = "AMD Instinct MI355X";
  EXPECT_EQ(made(amd, Framework::kMegatronCore).error().line(),
            "train.precision: 'AMD Instinct MI355X' has no nvfp4; set it to \"fp8\" or \"bf16\"");
  amd.train.precision = spec::Precision::kMxfp8;
  EXPECT_TRUE(made(amd, Framework::kMegatronCore));
  EXPECT_EQ(
      check_trained(mx).error().line(),
      "train.precision: mxfp8 and nvfp4 cannot be trained yet; set train.precision to \"fp8\" "
      "or \"bf16\"");
  // Fewer bits are faster, and our trainer's place is taken by software that has them.
  const auto step = [](const JobSpec& job) {
    return predict(job, {.framework = Framework::kMegatronCore})->step.total;
  };
  EXPECT_LT(step(mx), step(job_in("bf16", "gb200")));
  EXPECT_LT(step(nv), step(mx));
  EXPECT_EQ(framework_instead(nv), Framework::kMegatronCore);
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
  const JobSpec job = job_of("nanochat-d26-h100", {"train.recompute=full"});
  for (const Framework framework : {Framework::kNanochat, Framework::kLlmc}) {
    EXPECT_EQ(work_of(job, {.framework = framework})->recompute, RecomputeKind::kNone);
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
            "cluster.link.bandwidth: is not set, but devices have links; set it, per device "
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
