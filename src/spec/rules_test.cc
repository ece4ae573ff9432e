// Each rule and each kind of wrong value, with the exact line a person reads.
#include "spec/rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "spec/load.h"

namespace assay::spec {
namespace {

struct Case {
  const char* name;
  const char* preset;
  std::vector<std::string> set;
  const char* message;  // what follows "--set …: ", or the whole line
};

class BrokenRule : public ::testing::TestWithParam<Case> {};

TEST_P(BrokenRule, IsReported) {
  const Case& broken = GetParam();
  const auto loaded = load(broken.preset, {.overrides = broken.set});
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, base::ExitCode::kUsage);
  std::string line = loaded.error().line();
  for (const std::string& set : broken.set) {
    const std::string prefix = "--set " + set + ": ";
    if (line.starts_with(prefix)) line = line.substr(prefix.size());
  }
  EXPECT_EQ(line, broken.message);
}

INSTANTIATE_TEST_SUITE_P(
    Models, BrokenRule,
    ::testing::Values(
        Case{"KvHeads",
             "llama3-8b",
             {"model.kv_heads=5"},
             "model.kv_heads: 32 heads cannot share 5 kv_heads evenly; make heads a multiple of "
             "kv_heads"},
        Case{"HeadsDivideDim",
             "llama3-8b",
             {"model.heads=24"},
             "model.heads: dim 4096 is not a multiple of 24 heads; change one of them or set "
             "model.head_dim"},
        Case{"RopeNeedsEvenHeads",
             "tiny",
             {"model.head_dim=33"},
             "model.head_dim: rotary positions need an even width of head, got 33; change dim, "
             "heads or head_dim"},
        Case{"LatentWithoutWidths",
             "tiny",
             {"model.kv_lora_rank=16", "model.qk_nope_head_dim=16", "model.qk_rope_head_dim=16"},
             "model.kv_lora_rank: latent attention, but v_head_dim is not set; set "
             "model.v_head_dim"},
        Case{"WidthsWithoutLatent",
             "tiny",
             {"model.v_head_dim=16"},
             "model.v_head_dim: applies to latent attention, but kv_lora_rank is 0; remove it or "
             "set model.kv_lora_rank"},
        Case{"LatentHeadsFollow",
             "deepseek-v2-lite",
             {"model.head_dim=128"},
             "model.head_dim: 128, but latent attention's keys have 128 + 64; remove it"},
        Case{"LatentHeadsShareNothing",
             "deepseek-v2-lite",
             {"model.kv_heads=4"},
             "model.kv_heads: latent attention has keys for every head; remove it"},
        Case{"ExpertsWithoutUse",
             "tiny",
             {"model.experts=4"},
             "model.experts: 4 experts, but the number per token is not set; set "
             "model.experts_per_token"},
        Case{"UseWithoutExperts",
             "tiny",
             {"model.experts_per_token=2"},
             "model.experts_per_token: 2 experts per token, but the model has no experts; set "
             "model.experts"},
        Case{"MoreUsedThanThere",
             "moe-9b",
             {"model.experts_per_token=9"},
             "model.experts_per_token: 9 experts per token, but there are only 8"},
        Case{"MoreGroupsThanExperts",
             "moe-9b",
             {"model.router_groups=9"},
             "model.router_groups: 9 groups, but there are only 8 experts"},
        Case{"GroupsOfNoExperts",
             "tiny",
             {"model.router_groups=2"},
             "model.router_groups: applies to mixtures of experts, but there are no experts; "
             "remove it or set model.experts"},
        Case{"MixtureBeyondTheLayers",
             "moe-9b",
             {"model.moe_every=25"},
             "model.moe_every: every 25th layer is a mixture, but there are only 24 layers"},
        Case{"MixtureOfNoExperts",
             "tiny",
             {"model.moe_every=2"},
             "model.moe_every: sets which layers are mixtures, but there are no experts; remove it "
             "or set model.experts"},
        Case{"ThetaOfLearnedPositions",
             "gpt2-124m",
             {"model.rope_theta=10000.0"},
             "model.rope_theta: applies to rotary positions, but positions are learned; remove it "
             "or set model.positions to \"rope\""},
        Case{"ScalingOfUnscaledPositions",
             "tiny",
             {"model.rope_low=2"},
             "model.rope_low: applies to scaled rotary positions, but rope_factor is 1; remove it "
             "or set model.rope_factor"},
        Case{"SlowerThanFast",
             "tiny",
             {"model.rope_factor=8", "model.rope_low=4"},
             "model.rope_low: low frequencies have up to 4 turns and high ones at least 4, which "
             "overlap; make rope_low less than rope_high"},
        Case{"TooLarge",
             "tiny",
             {"model.layers=100000", "model.vocab=100000000", "model.dim=1000000",
              "model.ffn=10000000", "model.experts=100000", "model.experts_per_token=1"},
             "presets/models/tiny.toml:3: model: the model has more parameters than 64 bits can "
             "count; "
             "make it smaller"},
        Case{"WrongType",
             "tiny",
             {"model.layers=4.0"},
             "model.layers: expected a whole number, got 4.0"},
        Case{"OutOfRange",
             "tiny",
             {"model.layers=0"},
             "model.layers: expected a whole number from 1 to 100,000, got 0"},
        Case{"WrongChoice",
             "tiny",
             {"model.norm=rmsnrom"},
             "model.norm: unknown value 'rmsnrom'; did you mean 'rmsnorm'?"},
        Case{"SectionIsNoTable", "tiny", {"model=4"}, "model: expected a table, got 4"}),
    [](const auto& param) { return param.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Layouts, BrokenRule,
    ::testing::Values(
        Case{"ProductTooLarge",
             "llama3-8b-h200",
             {"layout.fsdp=8"},
             "presets/jobs/llama3-8b-h200.toml:20: layout: fsdp 8 = 8 ranks, but the cluster has 1 "
             "device (1 node of 1); layout.fsdp = 1 fits"},
        Case{"ProductTooSmall",
             "llama3-13b-h200x32",
             {"layout.tp=2"},
             "presets/jobs/llama3-13b-h200x32.toml:16: layout: fsdp 8 x tp 2 = 16 ranks, but the "
             "cluster has 32 devices (8 nodes of 4); layout.dp = 2 fits"},
        Case{"RanksOfTheCluster",
             "llama3-13b-h200x32",
             {"layout.ranks=16"},
             "layout.ranks: 16 ranks, but the cluster has 32 devices; remove it or change the "
             "cluster"},
        Case{"RanksOfALayoutAlone",
             "fsdp8",
             {"layout.ranks=12"},
             "presets/layouts/fsdp8.toml:3: layout: fsdp 8 = 8 ranks, but layout.ranks is 12; "
             "layout.fsdp = 12 fits"},
        Case{"SequenceParallelAlone",
             "fsdp8",
             {"layout.sequence_parallel=true"},
             "layout.sequence_parallel: applies to tensor-parallel ranks, but tp is 1; set "
             "layout.tp above 1 or remove it"},
        Case{"ChunksWithoutInterleaving",
             "fsdp8",
             {"layout.pp_chunks=2"},
             "layout.pp_chunks: the 1f1b schedule cannot have 2 chunks per stage; use pp_schedule "
             "= \"interleaved\""},
        Case{"InterleavingWithoutChunks",
             "fsdp8",
             {"layout.pp_schedule=interleaved", "layout.pp=2"},
             "presets/layouts/fsdp8.toml:3: layout.pp_chunks: the interleaved schedule cannot have "
             "1 chunks per stage; set it to 2 or more"},
        Case{"InterleavingOfOneStage",
             "fsdp8",
             {"layout.pp_schedule=interleaved", "layout.pp_chunks=2"},
             "layout.pp_schedule: interleaves pipeline stages, but pp is 1; set layout.pp above 1 "
             "or remove it"},
        Case{"ZeroBubbleOfOneStage",
             "fsdp8",
             {"layout.pp_schedule=zb-h1"},
             "layout.pp_schedule: applies to pipeline stages, but pp is 1; set layout.pp above 1 "
             "or remove it"},
        Case{"ZeroOfNothing",
             "single",
             {"layout.zero=3"},
             "layout.zero: sets what fsdp shards, but fsdp is 1; set layout.fsdp above 1 or remove "
             "it"},
        Case{"SequenceParallelAndTheSequence",
             "llama3-13b-h200x32",
             {"layout.sequence_parallel=true", "layout.cp=2", "layout.fsdp=4",
              "batch.sequence=4092"},
             "layout.sequence_parallel: tp 4 x cp 2 does not divide the sequence of 4092; choose "
             "divisors of batch.sequence"},
        Case{"TooManyRanks",
             "fsdp8",
             {"layout.tp=1000000", "layout.pp=1000000", "layout.cp=1000000"},
             "presets/layouts/fsdp8.toml:3: layout: more than 10,000,000 ranks; lower a degree"},
        Case{"TpDividesHeads",
             "llama3-13b-h200x32",
             {"layout.tp=16", "layout.fsdp=2"},
             "layout.tp: tp 16 does not divide 40 heads; choose a divisor of model.heads"},
        Case{"TpAndKvHeads",
             "llama3-13b-h200x32",
             {"model.heads=36", "model.kv_heads=6", "model.head_dim=80"},
             "presets/layouts/tp4-fsdp8.toml:6: layout.tp: tp 4 neither divides 6 kv_heads nor is "
             "a multiple of them"},
        Case{"TpDividesFfn",
             "llama3-13b-h200x32",
             {"model.ffn=17919"},
             "presets/layouts/tp4-fsdp8.toml:6: layout.tp: tp 4 does not divide ffn 17919; choose "
             "a divisor of model.ffn"},
        Case{
            "StagesHaveLayers",
            "llama3-13b-h200x32",
            {"layout.pp=32", "layout.fsdp=1", "layout.tp=1", "layout.pp_chunks=2",
             "layout.pp_schedule=interleaved", "batch.accumulate=32"},
            "layout.pp: 40 layers are too few for 32 stages of 2 chunks; each chunk needs a layer: "
            "lower layout.pp or layout.pp_chunks"},
        Case{"CpDividesTheSequence",
             "llama3-13b-h200x32",
             {"layout.cp=8", "layout.fsdp=1", "batch.sequence=4095"},
             "layout.cp: cp 8 does not divide the sequence of 4095"},
        Case{"EpWithoutExperts",
             "llama3-13b-h200x32",
             {"layout.ep=2", "layout.fsdp=4"},
             "layout.ep: ep 2, but the model has no experts; remove it or set model.experts"},
        Case{"EpDividesExperts",
             "moe-9b-h200x32",
             {"model.experts=7"},
             "presets/jobs/moe-9b-h200x32.toml:19: layout.ep: ep 2 does not divide 7 experts"}),
    [](const auto& param) { return param.param.name; });

INSTANTIATE_TEST_SUITE_P(
    JobsAndClusters, BrokenRule,
    ::testing::Values(
        Case{"SequenceBeyondContext",
             "demo",
             {"batch.sequence=512"},
             "batch.sequence: 512 tokens are more than the model's context of 256; shorten it or "
             "raise model.context"},
        Case{"TokensPerStep",
             "demo",
             {"batch.micro_batch=1000000", "batch.accumulate=1000000"},
             "presets/jobs/demo.toml:6: batch: more than 10^12 tokens per step; lower sequence, "
             "micro_batch or accumulate"},
        Case{"ChunksWithoutEnoughMicroBatches",
             "llama3-70b-h200x32",
             {"layout.fsdp=1", "layout.tp=2", "layout.pp=16", "layout.pp_schedule=interleaved",
              "layout.pp_chunks=5", "batch.accumulate=24"},
             "batch.accumulate: stages of 5 chunks take 16 micro-batches in turn, which do not "
             "divide 24; choose a multiple of layout.pp, or another pp_schedule"},
        Case{"LengthTwice",
             "demo",
             {"train.tokens=1000", "train.steps=5"},
             "presets/jobs/demo.toml:10: train: the training length is given more than once; keep "
             "one of steps, tokens, tokens_per_matmul_parameter"},
        Case{"StepsPastCounting",
             "demo",
             {"train.steps=100000000000000000"},
             "train.steps: more than 10^17 tokens of training; lower it"},
        Case{"TokensPerParameterPastCounting",
             "llama3-8b",
             {"train.tokens_per_matmul_parameter=1000000000", "cluster.extends=h200-1"},
             "train.tokens_per_matmul_parameter: more than 10^17 tokens of training; lower it"},
        Case{"ShorterThanAStep",
             "llama3-8b-h200",
             {"train={tokens=32767}"},
             "train.tokens: shorter than one step of 32,768 tokens; raise it or make the batch "
             "smaller"},
        Case{
            "TokensPerParameterShorterThanAStep",
            "demo",
            {"train={tokens_per_matmul_parameter=0.0001}", "cluster.extends=h200-1"},
            "train.tokens_per_matmul_parameter: shorter than one step of 2,048 tokens; raise it or "
            "make the batch smaller"},
        Case{"ZeroSteps",
             "demo",
             {"train.steps=0"},
             "train.steps: expected a whole number from 1 to 100,000,000,000,000,000, got 0"},
        Case{"CpuPrecision",
             "demo",
             {"train.precision=bf16",
              "cluster={devices_per_node=1, device={kind=\"cpu\", "
              "name=\"Some CPU\"}}"},
             "train.precision: a CPU trains in fp32, not bf16; set train.precision to \"fp32\""},
        Case{"JobWithoutModel",
             "fsdp8",
             {"train.steps=4"},
             "presets/layouts/fsdp8.toml: a job needs a model; add [model] with extends = "
             "\"tiny\", for example"},
        Case{"DeviceInAJob",
             "demo",
             {"device.name=x"},
             "device: a job's device is part of its cluster; write [cluster.device]"},
        Case{"MaskWithoutDocuments",
             "demo",
             {"data.mask=document", "data.type=u16"},
             "data.mask: files without a header do not say where documents begin; tokenize with "
             "`assay data tokenize`, or leave data.mask out"},
        Case{"Fp8Missing",
             "llama3-8b-h200",
             {"train.precision=fp8", "cluster.extends=p4d-24xlarge", "layout.fsdp=8"},
             "train.precision: 'NVIDIA A100-SXM4-40GB' has no fp8 rate; use bf16, or a device with "
             "fp8"},
        Case{"NodesBeyondMost",
             "h200-4-ib",
             {"cluster.nodes=9"},
             "cluster.nodes: 9 nodes, but at most 8 are available together; lower it, or raise "
             "cluster.max_nodes if that is wrong"},
        Case{"NodesWithoutNetwork",
             "h200-1",
             {"cluster.nodes=2"},
             "presets/clusters/h200-1.toml:3: cluster.network.kind: 2 nodes without a network; "
             "describe [cluster.network]"},
        Case{"DevicesWithoutLink",
             "h200-1",
             {"cluster.devices_per_node=2"},
             "presets/clusters/h200-1.toml:10: cluster.link.kind: 2 devices in a node, but no link "
             "between them; describe [cluster.link]"},
        Case{"NetworkOfNoKind",
             "h200-1",
             {"cluster.network.bandwidth=50 GB/s"},
             "cluster.network.bandwidth: is set, but network.kind is none; set network.kind or "
             "remove it"},
        Case{"GroupsThatDoNotFit",
             "h100-nvl-8",
             {"cluster.link.group=3"},
             "cluster.link.group: 8 devices do not form groups of 3"},
        Case{"GroupsOfNothing",
             "h100-sxm-8",
             {"cluster.link.group=2"},
             "cluster.link.group: only nvlink-groups have groups; remove it or change link.kind"},
        Case{"NetworkWithoutBandwidth",
             "h200-1",
             {"cluster.network.kind=ethernet"},
             "cluster.network.bandwidth: a network without a bandwidth; set it, per node and "
             "direction"},
        Case{"NvlinkWithoutBandwidth",
             "h100-sxm-8",
             {"cluster.link={kind=\"nvlink-mesh\"}"},
             "cluster.link.bandwidth: an NVLink without a bandwidth; set it, per device and "
             "direction"},
        Case{"GroupsOfUnknownSize",
             "h100-sxm-8",
             {"cluster.link.kind=nvlink-groups"},
             "presets/clusters/h100-sxm-8.toml:9: cluster.link.group: NVLink groups of unknown "
             "size; set the number of devices in a group"},
        Case{"BandwidthOfNoLink",
             "h200-1",
             {"cluster.link.bandwidth=64 GB/s"},
             "cluster.link.bandwidth: a bandwidth, but link.kind is none; set link.kind or remove "
             "it"},
        Case{"GroupOfNoLink",
             "h200-1",
             {"cluster.link.group=2"},
             "cluster.link.group: a group, but link.kind is none; set link.kind or remove it"},
        Case{"Unit",
             "h200-1",
             {"cluster.device.memory=80"},
             "cluster.device.memory: expected a size such as \"80 GiB\", got 80"},
        Case{"NoMemory",
             "h200-1",
             {"cluster.device.memory=0 GiB"},
             "cluster.device.memory: expected at least 1 B, got 0 B"},
        Case{"TooLittlePower",
             "h200-1",
             {"cluster.device.power=1 mW"},
             "cluster.device.power: expected at least 1.00 W, got 0.00100 W"},
        Case{"MissingKey",
             "h200-1",
             {"cluster.device={kind=\"gpu\"}"},
             "cluster.device.name: missing; expected a string (as the driver reports it)"}),
    [](const auto& param) { return param.param.name; });

// Two offers, of which the first is right, so that the message has to say which one is wrong.
std::string price_error(const std::string& device, const std::string& per_hour) {
  const auto row = [](const std::string& of, const std::string& price) {
    return fmt::format(
        "{{provider=\"p\", offer=\"o\", device=\"{}\", devices=1, per_hour={}, "
        "date=2026-08-14, source=\"s\"}}",
        of, price);
  };
  const std::vector<std::string> set = {
      fmt::format("price=[{}, {}]", row("h100-sxm", "\"3 USD\""), row(device, per_hour))};
  const auto loaded = load("lambda", {.overrides = set});
  if (loaded) return "no error";
  base::Error error = loaded.error();
  error.where.clear();
  return error.line();
}

TEST(Rules, OfPricesNameTheRow) {
  EXPECT_EQ(price_error("h100-sxm", "\"3 USD\""), "no error");
  EXPECT_EQ(price_error("h100-sxm", "[\"3 USD\", \"4 USD\"]"), "no error");
  EXPECT_EQ(price_error("h100-smx", "\"3 USD\""),
            "price[1].device: no device preset 'h100-smx'; did you mean 'h100-sxm'?");
  EXPECT_EQ(price_error("h100-sxm", "[\"3 USD\", \"4 EUR\"]"),
            "price[1].per_hour: a range in two currencies; use one");
  EXPECT_EQ(price_error("h100-sxm", "\"0 USD\""), "price[1].per_hour: must be greater than 0");
  EXPECT_EQ(
      price_error("h100-sxm", "[\"4 USD\", \"3 USD\"]"),
      "price[1].per_hour: the range runs from $4.00 down to $3.00; write the lower price first");
  EXPECT_EQ(price_error("h100-sxm", "3"),
            "price[1].per_hour: expected an amount such as \"31.92 USD\", or [low, high], got 3");
}

TEST(Rules, AClusterHasItsStatedNumberOfNodes) {
  const std::vector<std::string> set = {
      "cluster.nodes=3", "cluster.network={kind=\"ethernet\", bandwidth=\"10 Gb/s\"}"};
  const auto loaded = load("h200-1", {.overrides = set});
  ASSERT_TRUE(loaded.has_value()) << loaded.error().line();
  const auto& cluster = std::get<ClusterSpec>(loaded->spec);
  EXPECT_EQ(cluster.max_nodes, 3);
  EXPECT_EQ(cluster.network.ports, std::nullopt) << "not given";
}

TEST(Rules, TheLengthOfTrainingIsInWholeSteps) {
  const std::vector<std::string> set = {"train={tokens=100000}"};  // of 32,768 a step
  const auto loaded = load("llama3-8b-h200", {.overrides = set});
  ASSERT_TRUE(loaded.has_value()) << loaded.error().line();
  const auto& job = std::get<JobSpec>(loaded->spec);
  EXPECT_EQ(training_steps(job), 3);
  EXPECT_EQ(training_tokens(job), 98'304);
}

TEST(Rules, TheLongestTrainingIsCountedExactly) {
  // 2^11 tokens a step on one device: the most steps that stay within 10^17 tokens.
  const std::vector<std::string> most = {"train.steps=48828125000000", "cluster.extends=h200-1"};
  const auto loaded = load("demo", {.overrides = most});
  ASSERT_TRUE(loaded.has_value()) << loaded.error().line();
  EXPECT_EQ(training_tokens(std::get<JobSpec>(loaded->spec)), 100'000'000'000'000'000);
  const std::vector<std::string> more = {"train.steps=48828125000001", "cluster.extends=h200-1"};
  EXPECT_FALSE(load("demo", {.overrides = more}).has_value());
}

TEST(Rules, AJobWithoutALengthHasNone) {
  const std::vector<std::string> set = {"train={precision=\"fp32\"}", "cluster.extends=h200-1"};
  const auto loaded = load("demo", {.overrides = set});
  ASSERT_TRUE(loaded.has_value()) << loaded.error().line();
  EXPECT_EQ(training_tokens(std::get<JobSpec>(loaded->spec)), std::nullopt);
}

TEST(Rules, DpFillsWhatTheOtherDegreesLeave) {
  const std::vector<std::string> set = {"cluster.extends=h100-sxm-8", "layout.extends=single"};
  const auto loaded = load("llama3-8b-h200", {.overrides = set});
  EXPECT_FALSE(loaded.has_value()) << "a layout of one rank does not fill eight devices";

  const std::vector<std::string> free = {"cluster.extends=h100-sxm-8", "layout={tp=2}"};
  const auto filled = load("llama3-8b-h200", {.overrides = free});
  ASSERT_TRUE(filled.has_value()) << filled.error().line();
  EXPECT_EQ(std::get<JobSpec>(filled->spec).layout.dp, 4);
}

TEST(Rules, KeyValueHeadsMayBeFewerThanTensorRanks) {
  const std::vector<std::string> set = {"layout.tp=16", "layout.fsdp=2", "model.heads=64",
                                        "model.head_dim=80", "model.kv_heads=8"};
  EXPECT_TRUE(load("llama3-13b-h200x32", {.overrides = set}).has_value());
}

}  // namespace
}  // namespace assay::spec
