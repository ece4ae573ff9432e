// Each rule and each kind of wrong value, with the exact line a person reads.
#include "spec/rules.h"

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

class BrokenRule : public testing::TestWithParam<Case> {};

TEST_P(BrokenRule, SaysSo) {
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
    testing::Values(
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
        Case{"ExpertsWithoutUse",
             "tiny",
             {"model.experts=4"},
             "model.experts: 4 experts, but no word on how many each token uses; set "
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
        Case{"MixtureBeyondTheLayers",
             "moe-9b",
             {"model.moe_every=25"},
             "model.moe_every: every 25th layer is a mixture, but there are only 24 layers"},
        Case{"TooLarge",
             "tiny",
             {"model.layers=100000", "model.vocab=100000000", "model.dim=1000000",
              "model.ffn=10000000", "model.experts=100000", "model.experts_per_token=1"},
             "presets/models/tiny.toml:3: model: the model has more parameters than 64 bits count; "
             "make it smaller"},
        Case{"WrongType",
             "tiny",
             {"model.layers=4.0"},
             "model.layers: expected a whole number, got a fraction"},
        Case{"OutOfRange",
             "tiny",
             {"model.layers=0"},
             "model.layers: expected a whole number from 1 to 100000, got 0"},
        Case{"WrongChoice",
             "tiny",
             {"model.norm=rmsnrom"},
             "model.norm: unknown value 'rmsnrom'; did you mean 'rmsnorm'?"},
        Case{"SectionIsNoTable",
             "tiny",
             {"model=4"},
             "model: expected a table, got a whole number"}),
    [](const auto& param) { return param.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Layouts, BrokenRule,
    testing::Values(
        Case{"ProductTooLarge",
             "llama3-8b-h200",
             {"layout.fsdp=8"},
             "presets/jobs/llama3-8b-h200.toml:15: layout: fsdp 8 = 8 ranks, but the cluster has 1 "
             "device (1 x 1); layout.fsdp = 1 fits"},
        Case{"ProductTooSmall",
             "llama3-13b-h200x32",
             {"layout.tp=2"},
             "presets/jobs/llama3-13b-h200x32.toml:15: layout: fsdp 8 x tp 2 = 16 ranks, but the "
             "cluster has 32 devices (8 x 4); layout.dp = 2 fits"},
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
             "layout.sequence_parallel: works on tensor-parallel ranks, but tp is 1; set layout.tp "
             "above 1 or remove it"},
        Case{"ChunksWithoutInterleaving",
             "fsdp8",
             {"layout.pp_chunks=2"},
             "layout.pp_chunks: the 1f1b schedule cannot have 2 chunks per stage; use pp_schedule "
             "= \"interleaved\""},
        Case{"InterleavingWithoutChunks",
             "fsdp8",
             {"layout.pp_schedule=interleaved"},
             "presets/layouts/fsdp8.toml:3: layout.pp_chunks: the interleaved schedule cannot have "
             "1 chunks per stage; set it to 2 or more"},
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
        Case{"StagesDivideLayers",
             "llama3-13b-h200x32",
             {"layout.pp=32", "layout.fsdp=1", "layout.tp=1"},
             "layout.pp: 40 layers do not split into 32 stages of 1 chunks; choose divisors of "
             "model.layers"},
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
             "presets/jobs/moe-9b-h200x32.toml:18: layout.ep: ep 2 does not divide 7 experts"}),
    [](const auto& param) { return param.param.name; });

INSTANTIATE_TEST_SUITE_P(
    JobsAndClusters, BrokenRule,
    testing::Values(
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
        Case{"LengthTwice",
             "demo",
             {"train.tokens=1000"},
             "presets/jobs/demo.toml:10: train: the training length is given more than once; keep "
             "one of steps, tokens, tokens_per_matmul_parameter"},
        Case{"Fp8Missing",
             "llama3-8b-h200",
             {"train.precision=fp8", "cluster.extends=p4d-24xlarge", "layout.fsdp=8"},
             "train.precision: 'NVIDIA A100-SXM4-40GB' has no fp8 rate; use bf16, or a device with "
             "fp8"},
        Case{"NodesBeyondMost",
             "h200-4-ib",
             {"cluster.nodes=9"},
             "cluster.nodes: 9 nodes, but at most 8 can be had together; lower it, or raise "
             "cluster.max_nodes if that is wrong"},
        Case{"NodesWithoutNetwork",
             "h200-1",
             {"cluster.nodes=2", "cluster.max_nodes=2"},
             "presets/clusters/h200-1.toml:3: cluster.network.kind: 2 nodes without a network; "
             "describe [cluster.network]"},
        Case{"DevicesWithoutLink",
             "h200-1",
             {"cluster.devices_per_node=2"},
             "presets/clusters/h200-1.toml:10: cluster.link.kind: 2 devices in a node, but no link "
             "between them; describe [cluster.link]"},
        Case{"GroupsThatDoNotFit",
             "h100-nvl-8",
             {"cluster.link.group=3"},
             "cluster.link.group: 8 devices do not form groups of 3"},
        Case{"GroupsOfNothing",
             "h100-sxm-8",
             {"cluster.link.group=2"},
             "cluster.link.group: only nvlink-groups have groups; remove it or change link.kind"},
        Case{"Unit",
             "h200-1",
             {"cluster.device.memory=80"},
             "cluster.device.memory: expected a size such as \"80 GiB\", got a whole number"},
        Case{"MissingKey",
             "h200-1",
             {"cluster.device={kind=\"gpu\"}"},
             "cluster.device.name: missing; expected a string (as the driver reports it)"}),
    [](const auto& param) { return param.param.name; });

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
