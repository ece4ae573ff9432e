// Communication per group: the published nanochat figures to the byte, other layouts against counts
// made another way, and sums that must agree for any job.
#include "plan/exchange/communication.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "plan/testing/searches.h"
#include "spec/load.h"
#include "spec/parameters.h"
#include "step/program.h"

namespace assay::plan {
namespace {

using step::CollectiveKind;
using step::Dtype;
using testing::job_of;

Communication traffic(const std::string& preset, const std::vector<std::string>& sets = {}) {
  const auto made = communication_of(job_of(preset, sets));
  EXPECT_TRUE(made.has_value()) << made.error().line();
  return *made;
}

Communication nanochat(int depth) {
  return traffic("nanochat-d26-h100", {fmt::format("model.extends=nanochat-d{}", depth)});
}

struct Published {
  const char* group;
  spec::Optimizer optimizer;
  Dtype type;
  std::int64_t tensors, padded, elements_each, elements;
};

// Counts as published for depth 26 (C = 1664, V = 32768, so V C = 54,525,952); types from the code:
// embeddings are bf16, everything else fp32.
TEST(NanochatTraffic, GroupsOfDepth26) {
  constexpr auto kAdamw = spec::Optimizer::kAdamw;
  constexpr auto kMuon = spec::Optimizer::kMuon;
  const Published rows[] = {
      {"embedding", kAdamw, Dtype::kBf16, 1, 1, 54'525'952, 54'525'952},
      {"value_embeddings", kAdamw, Dtype::kBf16, 13, 13, 54'525'952, 708'837'376},
      {"residual_lambdas", kAdamw, Dtype::kF32, 1, 1, 26, 26},
      {"embedding_lambdas", kAdamw, Dtype::kF32, 1, 1, 26, 26},
      {"head", kAdamw, Dtype::kF32, 1, 1, 54'525'952, 54'525'952},
      {"muon 13 x 32", kMuon, Dtype::kF32, 13, 16, 416, 6'656},
      {"muon 1664 x 1664", kMuon, Dtype::kF32, 104, 104, 2'768'896, 287'965'184},
      {"muon 1664 x 6656", kMuon, Dtype::kF32, 26, 32, 11'075'584, 354'418'688},
      {"muon 6656 x 1664", kMuon, Dtype::kF32, 26, 32, 11'075'584, 354'418'688},
  };
  const Communication made = nanochat(26);
  ASSERT_EQ(made.groups.size(), std::size(rows));
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const GroupTraffic& group = made.groups[i];
    SCOPED_TRACE(rows[i].group);
    EXPECT_EQ(group.group, rows[i].group);
    EXPECT_EQ(group.optimizer, rows[i].optimizer);
    EXPECT_EQ(group.type, rows[i].type);
    EXPECT_EQ(group.tensors, rows[i].tensors);
    EXPECT_EQ(group.padded, rows[i].padded);
    EXPECT_EQ(group.elements_each, rows[i].elements_each);
    EXPECT_EQ(group.elements, rows[i].elements);
    // Fewer than 1,024 elements of AdamW's are summed everywhere, everything else is sharded.
    const bool small = rows[i].elements == 26;
    const Volume expected = small ? Volume{0, 0, 26} : Volume{group.elements, group.elements, 0};
    EXPECT_EQ(group.volume, expected);
  }
  EXPECT_THAT(made.groups[6].parameters,
              ::testing::ElementsAre("attn_q", "attn_k", "attn_v", "attn_o"));
}

// Sharded elements of depth 26: 15 V C + 6,656 + 287,965,184 + 2 · 354,418,688 = 1,814,698,496; of
// them 14 V C = 763,363,328 bf16 and 1,051,335,168 fp32. Two lambdas of 26 are summed.
TEST(NanochatTraffic, TotalsOfDepth26InBothAccountings) {
  const Communication made = nanochat(26);
  EXPECT_EQ(made.two_byte_bytes(), (Volume{3'629'396'992, 3'629'396'992, 104}));
  EXPECT_EQ(made.two_byte_bytes().total(), 7'258'794'088);  // 7.26 GB
  EXPECT_EQ(made.bytes(), (Volume{5'732'067'328, 5'732'067'328, 208}));
  EXPECT_EQ(made.bytes().total(), 11'464'134'864);  // 11.46 GB
  // 7/8 of what is scattered and gathered, twice that of what is summed.
  EXPECT_DOUBLE_EQ(made.sent_bytes(), 10'031'118'188);  // 10.03 GB
}

// Depth 24: C = 1536, 24 layers fill 8 ranks without padding but for the gates (12 -> 16 of 384).
// Depth 12: C = 768, and 12 -> 16 matrices of each MLP shape, 6 -> 8 gates of 192. True types.
TEST(NanochatTraffic, OtherDepthsInTrueTypes) {
  EXPECT_EQ(nanochat(24).bytes().total(), 8'455'766'208);  // 8.456 GB
  EXPECT_EQ(nanochat(12).bytes().total(), 1'736'454'240);  // 1.736 GB
}

// In fp32 no embedding is bf16: twice the two-byte accounting.
TEST(NanochatTraffic, Fp32IsFourBytesThroughout) {
  const Communication made = traffic("nanochat-d26-h100", {"train.precision=fp32"});
  EXPECT_EQ(made.bytes(), made.two_byte_bytes() * 2);
  EXPECT_EQ(made.two_byte_bytes(), nanochat(26).two_byte_bytes());
}

TEST(NanochatTraffic, Fp16IsNotCalledBf16) {
  for (const std::string optimizer : {"adamw", "muon"}) {
    const std::vector<std::string> set = {"train.optimizer=" + optimizer};
    const Communication bf16 = traffic("nanochat-d26-h100", set);
    const Communication fp16 =
        traffic("nanochat-d26-h100", {"train.precision=fp16", "train.optimizer=" + optimizer});
    EXPECT_EQ(fp16.bytes(), bf16.bytes());
    ASSERT_EQ(fp16.groups.size(), bf16.groups.size());
    for (std::size_t i = 0; i < fp16.groups.size(); ++i) {
      const bool half = bf16.groups[i].type == Dtype::kBf16;
      EXPECT_EQ(fp16.groups[i].type, half ? Dtype::kFp16 : Dtype::kF32);
    }
  }
}

TEST(NanochatTraffic, CallsOfDepth26) {
  std::map<std::pair<CollectiveKind, Dtype>, CallSummary> calls;
  for (const CallSummary& summary : nanochat(26).calls()) {
    calls[{summary.kind, summary.type}] = summary;
  }
  ASSERT_EQ(calls.size(), 5U);
  for (const auto kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
    const CallSummary& half = calls[{kind, Dtype::kBf16}];
    EXPECT_EQ(half.calls, 14);
    EXPECT_EQ(half.bytes, 1'526'726'656);
    EXPECT_EQ(half.least_bytes, 109'051'904);
    EXPECT_EQ(half.most_bytes, 109'051'904);
    const CallSummary& full = calls[{kind, Dtype::kF32}];
    EXPECT_EQ(full.calls, 5);
    EXPECT_EQ(full.bytes, 4'205'340'672);
    EXPECT_EQ(full.least_bytes, 26'624);
    EXPECT_EQ(full.most_bytes, 1'417'674'752);
  }
  const CallSummary& everywhere = calls[{CollectiveKind::kAllReduce, Dtype::kF32}];
  EXPECT_EQ(everywhere.calls, 2);
  EXPECT_EQ(everywhere.bytes, 208);
}

// floor(8.5 · 918,426,912 / 524,288)
TEST(NanochatTraffic, StepsOfDepth26) {
  EXPECT_EQ(spec::training_steps(job_of("nanochat-d26-h100")), 14'889);
}

const std::vector<std::string> kEight = {"model.extends=llama3-8b", "train.optimizer=adamw",
                                         "train.precision=bf16", "batch.micro_batch=1",
                                         "batch.accumulate=1"};

Communication eight(std::vector<std::string> sets) {
  sets.insert(sets.begin(), kEight.begin(), kEight.end());
  return traffic("nanochat-d26-h100", sets);
}

// Llama 3 8B, fully sharded: every parameter is gathered for the forward and the backward pass and
// its gradient scattered, all bf16 and each a multiple of 8.
TEST(DataParallel, FullyShardedIsThreeTimesTheModel) {
  const Communication made = eight({"layout.zero=3"});
  constexpr std::int64_t kBytes = 2 * 8'030'261'248;
  EXPECT_EQ(made.bytes(), (Volume{kBytes, 2 * kBytes, 0}));
  EXPECT_DOUBLE_EQ(made.sent_bytes(), 3 * 0.875 * static_cast<double>(kBytes));
  // 32 blocks, the embedding, and the head with the last norm.
  const auto calls = made.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].calls, 34);
  EXPECT_EQ(calls[1].calls, 68);
  EXPECT_EQ(calls[0].least_bytes, 2 * 218'112'000);  // a block
  EXPECT_EQ(calls[0].most_bytes, 2 * (128'256 * 4096 + 4096));
}

// The same bytes in more calls: 32 blocks of two modules.
TEST(DataParallel, ModulesAreGatheredByThemselves) {
  const Communication blocks = eight({"layout.zero=3"});
  const Communication modules = eight({"layout.zero=3", "layout.unit=module"});
  EXPECT_EQ(modules.bytes(), blocks.bytes());
  EXPECT_EQ(modules.calls()[0].calls, 66);
  EXPECT_EQ(modules.calls()[1].calls, 132);
  // Attention: q, k, v, o and its norm.
  EXPECT_EQ(modules.calls()[0].least_bytes, 2 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 4096));
}

TEST(DataParallel, SchemesOnEightRanks) {
  constexpr std::int64_t kBytes = 2 * 8'030'261'248;
  EXPECT_EQ(eight({"layout={dp=8}"}).bytes(), (Volume{0, 0, kBytes}));
  EXPECT_EQ(eight({"layout.zero=1", "batch.accumulate=4"}).bytes(), (Volume{kBytes, kBytes, 0}));
  EXPECT_EQ(eight({"layout.zero=2", "batch.accumulate=4"}).bytes(),
            (Volume{4 * kBytes, kBytes, 0}));
  EXPECT_EQ(eight({"layout.zero=3", "batch.accumulate=4"}).bytes(),
            (Volume{4 * kBytes, 8 * kBytes, 0}));
  // Two replicas of four shards: each rank sums its quarter with one other.
  EXPECT_EQ(eight({"layout={dp=2,fsdp=4,zero=1}"}).bytes(), (Volume{kBytes, kBytes, kBytes / 4}));
}

// What the trainer executes for a sharded optimizer is what is planned, but for its own alignment:
// tensors begin at multiples of the norm's blocks, some have rows of zeros, and units are filled up
// so that ranks have the same. Gradients are scattered by an all-to-all, and added by their owners.
TEST(DataParallel, ShardedOptimizerIsTheTrainersProgram) {
  for (const char* model : {"tiny", "gpt2-124m"}) {
    for (const std::int64_t ranks : {2, 8}) {
      spec::JobSpec job = job_of("demo", {fmt::format("model.extends={}", model)});
      job.layout.dp = 1;
      job.layout.fsdp = ranks;
      job.layout.zero = 1;
      const Communication made = communication_of(job).value();
      step::Choices choices = step::choices_of(job);
      choices.layout = step::layout_of(job.layout, 0).value();
      choices.recompute = spec::Recompute::kNone;
      const step::Program program = step::build(job.model, choices).value();

      std::int64_t scattered = 0;
      std::int64_t gathered = 0;
      for (const step::Op& op : program.ops) {
        if (op.unit < 0) continue;  // norms and losses
        if (op.kind == step::OpKind::kAllToAll) scattered += program.bytes_of(op.in[0]);
        if (op.kind == step::OpKind::kAllGather) gathered += program.bytes_of(op.out[0]);
      }
      const auto tensors = static_cast<std::int64_t>(program.parameters.size());
      const auto units = static_cast<std::int64_t>(program.units.size());
      std::int64_t alignment = 4 * step::norm_block(job.model) * (tensors + units * ranks);
      for (const step::Parameter& p : program.parameters) alignment += 4 * p.padding_rows * p.cols;
      // A table that is also the head is gathered once, and its gradients are scattered twice.
      std::int64_t twice = 0;
      for (const step::Unit& unit : program.units) {
        if (unit.head_gradients >= 0) twice += 4 * unit.elements;
      }
      const Volume planned = made.bytes();
      EXPECT_GE(scattered - twice + 4 * tensors * ranks, planned.reduce_scatter);
      EXPECT_LE(scattered - twice, planned.reduce_scatter + alignment);
      EXPECT_EQ(gathered, scattered - twice);
      EXPECT_EQ(planned.all_gather, planned.reduce_scatter);
    }
  }
}

// Weights are gathered before each pass over a block, gradients leave behind the backward pass.
TEST(DataParallel, FullyShardedCommunicatesInBothPasses) {
  std::map<std::pair<CollectiveKind, step::Phase>, std::int64_t> calls;
  const Communication made = eight({"layout={dp=2,fsdp=4}", "batch.accumulate=3"});
  for (const Exchange& exchange : made.exchanges) {
    const bool reduced = exchange.collective.kind == CollectiveKind::kAllReduce;
    EXPECT_EQ(exchange.among, reduced ? Among::kReplicas : Among::kShards);
    calls[{exchange.collective.kind, exchange.phase}] += exchange.calls;
  }
  using step::Phase;
  const decltype(calls) expected = {{{CollectiveKind::kAllGather, Phase::kForward}, 34 * 3},
                                    {{CollectiveKind::kAllGather, Phase::kBackward}, 34 * 3},
                                    {{CollectiveKind::kReduceScatter, Phase::kBackward}, 34 * 3},
                                    {{CollectiveKind::kAllReduce, Phase::kBackward}, 34}};
  EXPECT_EQ(calls, expected);
}

// Tensor parallelism over 4: matrices, embedding and head in quarters, 65 norms of 4096 whole.
TEST(DataParallel, TensorParallelRanksHoldAQuarterAndAllNorms) {
  constexpr std::int64_t kNorms = 65 * 4096;
  constexpr std::int64_t kHeld = (8'030'261'248 - kNorms) / 4 + kNorms;
  EXPECT_EQ(eight({"layout={dp=2,tp=4}"}).bytes(), (Volume{0, 0, 2 * kHeld}));
}

// Two stages: the last one has 16 blocks of 218,112,000, the last norm and the head.
TEST(DataParallel, PipelineStageHoldsItsLayers) {
  constexpr std::int64_t kHeld = std::int64_t{16} * 218'112'000 + 4096 + 128'256 * 4096;
  const Communication made = eight({"layout={dp=4,pp=2}"});
  EXPECT_EQ(made.stage, 1);
  EXPECT_EQ(made.bytes(), (Volume{0, 0, 2 * kHeld}));
}

// GPT-2's embedding is tied to its head: the two ends of a pipeline sum its gradients.
TEST(DataParallel, TiedEmbeddingIsSummedOverThePipelinesEnds) {
  const Communication made =
      traffic("nanochat-d26-h100", {"model.extends=gpt2-124m", "train.optimizer=adamw",
                                    "batch.sequence=1024", "layout={pp=2,dp=4}"});
  std::int64_t pairs = 0;
  for (const Exchange& exchange : made.exchanges) {
    if (exchange.collective.ranks == 2) pairs += exchange.collective.elements;
  }
  EXPECT_EQ(pairs, 50'257 * 768);
}

// Experts over 2 ranks: half of them each, not summed over those ranks; the rest is.
TEST(DataParallel, ExpertsHaveReplicasOfTheirOwn) {
  const Communication made = traffic(
      "nanochat-d26-h100", {"model.extends=moe-9b", "train.optimizer=adamw", "layout={dp=4,ep=2}"});
  const auto parameters = spec::parameters_of(job_of("moe-9b-h200x32").model);
  std::int64_t experts = 0;
  for (const auto& group : parameters.groups) experts += group.expert ? group.parameters() : 0;
  std::map<std::int64_t, std::int64_t> elements;  // by ranks
  for (const Exchange& exchange : made.exchanges) {
    elements[exchange.collective.ranks] += exchange.collective.elements * exchange.calls;
  }
  EXPECT_EQ(elements[4], experts / 2);
  EXPECT_EQ(elements[8], parameters.total - experts);
}

// Where shards cut matrices, Muon's are put together once more per step.
TEST(DataParallel, MuonGathersWhatItsShardsCut) {
  const Communication adamw =
      traffic("nanochat-d26-h100", {"layout.zero=3", "train.optimizer=adamw"});
  const Communication muon = traffic("nanochat-d26-h100", {"layout.zero=3"});
  const std::int64_t matrices = 918'426'912 - 54'525'952;  // without the head
  EXPECT_EQ(muon.bytes().all_gather - adamw.bytes().all_gather, 2 * matrices);
  EXPECT_EQ(muon.bytes().reduce_scatter, adamw.bytes().reduce_scatter);
}

TEST(DataParallel, OneRankSendsNothing) {
  const Communication made = traffic("llama3-8b-h200");
  EXPECT_EQ(made.bytes(), Volume{});
  EXPECT_TRUE(made.exchanges.empty());
  EXPECT_EQ(made.sent_bytes(), 0);
}

TEST(Communication, MoreThan64BitsIsAnError) {
  spec::JobSpec job = job_of("nanochat-d26-h100");
  job.model.ffn = 10'000'000'000'000;
  const auto made = communication_of(job);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(
      made.error().line(),
      "model: a step exchanges more bytes than 64 bits can count; make the model or layout.fsdp "
      "smaller");
}

// Any layout of 16 ranks: rows, calls and totals are three sums of the same bytes, and nothing is
// lost that a rank holds.
RC_GTEST_PROP(Communication, SumsAgree, ()) {
  spec::JobSpec job = job_of(*rc::gen::element<std::string>("moe-9b-h200x32", "nanochat-d26-h100",
                                                            "llama3-70b-h200x32", "demo"));
  if (*rc::gen::arbitrary<bool>()) {  // tied, with biases
    job.model = std::get<spec::ModelSpec>(spec::load("gpt2-124m").value().spec);
  }
  job.train.optimizer = *rc::gen::element(spec::Optimizer::kAdamw, spec::Optimizer::kMuon);
  job.batch.accumulate = *rc::gen::inRange(1, 5);
  spec::LayoutSpec& l = job.layout;
  l = {};
  l.dp = *rc::gen::element(1, 2, 3);
  l.fsdp = *rc::gen::element(1, 2, 7, 8);
  l.zero = *rc::gen::inRange(1, 4);
  const bool splits = job.model.heads % 2 == 0 && job.model.kv_heads % 2 == 0;
  l.tp = splits ? *rc::gen::element(1, 2) : 1;
  l.pp = *rc::gen::element(1, 2);
  l.cp = *rc::gen::element(1, 2);
  l.ep = job.model.is_moe() ? *rc::gen::element(1, 2) : 1;

  const Communication made = communication_of(job).value();
  Volume from_calls;
  std::int64_t bytes = 0;
  for (const CallSummary& summary : made.calls()) {
    RC_ASSERT(summary.least_bytes * summary.calls <= summary.bytes);
    RC_ASSERT(summary.bytes <= summary.most_bytes * summary.calls);
    if (summary.kind == CollectiveKind::kReduceScatter) from_calls.reduce_scatter += summary.bytes;
    if (summary.kind == CollectiveKind::kAllGather) from_calls.all_gather += summary.bytes;
    if (summary.kind == CollectiveKind::kAllReduce) from_calls.all_reduce += summary.bytes;
    bytes += summary.bytes;
  }
  RC_ASSERT(from_calls == made.bytes());
  RC_ASSERT(bytes == made.bytes().total());
  for (const Exchange& exchange : made.exchanges) {
    RC_ASSERT(exchange.collective.ranks > 1);
    // Shards are equal.
    const bool sharded = exchange.collective.kind != CollectiveKind::kAllReduce;
    RC_ASSERT(!sharded || exchange.collective.elements % exchange.collective.ranks == 0);
  }
  std::int64_t held = 0;
  for (const GroupTraffic& group : made.groups) {
    RC_ASSERT(group.elements >= group.tensors * group.elements_each);
    held += group.tensors * group.elements_each;
  }
  const std::int64_t total = spec::parameters_of(job.model).total;
  RC_ASSERT(held <= total + l.tp * job.model.dim);  // a vocabulary filled up
  if (l.tp * l.pp * l.ep == 1) RC_ASSERT(held == total);
}

}  // namespace
}  // namespace assay::plan
