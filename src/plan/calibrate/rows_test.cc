#include "plan/calibrate/rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/file.h"
#include "plan/calibrate/row_text.h"
#include "plan/model/memory.h"
#include "plan/model/step_time.h"
#include "plan/testing/documented.h"

namespace assay::plan {
namespace {

constexpr base::Bytes kGibibyte(std::int64_t{1} << 30);
constexpr base::Bytes kMostOfAPart(std::int64_t{1} << 60);

std::vector<Row> rows_of(const std::string& csv) {
  auto rows = parse_rows(csv, "rows.csv");
  EXPECT_TRUE(rows) << rows.error().what;
  return rows ? *std::move(rows) : std::vector<Row>();
}

const std::vector<Row>& measured_rows() {
  static const std::vector<Row> kRows = [] {
    std::vector<Row> all;
    for (const char* name : {"training_rows.csv", "training_rows_single_node.csv"}) {
      const auto text =
          base::read_file(std::string(ASSAY_MEASURED_ROWS) + "/" + name, base::Bytes(1 << 24));
      EXPECT_TRUE(text) << name;
      for (Row& row : rows_of(text.value_or(""))) all.push_back(std::move(row));
    }
    return all;
  }();
  return kRows;
}

double predicted(const std::string& id) {
  for (const Row& row : measured_rows()) {
    if (row.id == id) return predict(row, shipped_constants())->step_s;
  }
  ADD_FAILURE() << "no row " << id;
  return 0;
}

// One row with what a prediction needs, and the columns that a test changes.
Row row_with(const std::string& columns, const std::string& fields) {
  const auto rows = rows_of("id,model,layers,dim,seq,micro_batch,grad_accum,gpus,gpu_type," +
                            columns + "\nx,m,24,2048,2048,4,1,8,H100-SXM5-80GB," + fields + "\n");
  return rows.empty() ? Row() : rows.front();
}

// PyTorch's allocator counts neither the context nor NCCL's buffers.
TEST(Rows, MemoryThatAnAllocatorCountedIsNotAll) {
  EXPECT_EQ(row_with("mem_gb,notes", "40,mem GiB peak allocated").memory_gib, 41.5);
  EXPECT_EQ(row_with("mem_gb,notes", "40,by nvidia-smi; nodes allocated by Slurm").memory_gib, 40);
}

TEST(MeasuredRows, EveryRowBecomesWork) {
  EXPECT_EQ(measured_rows().size(), 1620U);
  for (const Row& row : measured_rows()) EXPECT_FALSE(row.candidates.empty()) << row.reason;
}

TEST(MeasuredRows, StepsOfTheSingleNodeGridArePredictedWithinSixPercent) {
  double sum = 0;
  int count = 0;
  for (const Row& row : measured_rows()) {
    if (row.flagged || !row.step_s || !row.id.starts_with('s')) continue;
    sum += std::abs(predict(row, shipped_constants())->step_s / *row.step_s - 1);
    ++count;
  }
  EXPECT_EQ(count, 1152);
  EXPECT_LT(sum / count, 0.06);
  fmt::print("mean absolute error of {} steps: {:.2f} %\n", count, 100 * sum / count);
  testing::Page(ASSAY_SOURCE_DIR, "docs/plan-model.md")
      .says("- the single-node grid (# rows of one study): # %,",
            {static_cast<double>(count), 100 * sum / count});
  testing::Page(ASSAY_SOURCE_DIR, "docs/plan.md")
      .says("one study's grid of # steps on one node is within # % on average",
            {static_cast<double>(count), 100 * sum / count});
}

TEST(MeasuredRows, MemoryIsPredictedWithinSevenPercent) {
  double sum = 0;
  int count = 0;
  for (const Row& row : measured_rows()) {
    if (row.flagged || !row.memory_gib) continue;
    const auto best = predict(row, shipped_constants());
    const MemoryNeed need = memory_need(*best->work, shipped_memory_constants());
    sum += std::abs(need.total() / kGibibyte / *row.memory_gib - 1);
    ++count;
  }
  EXPECT_EQ(count, 26);
  EXPECT_LT(sum / count, 0.07);
  fmt::print("mean absolute error of {} memories: {:.2f} %\n", count, 100 * sum / count);
}

// The same job on a board with NVSwitch, on cards in slots, and on pairs of cards whose host has
// few threads and two sockets.
TEST(MeasuredRows, ThreeMachinesWithEightH100) {
  EXPECT_NEAR(predicted("r0000"), 0.7019, 0.10 * 0.7019);
  EXPECT_NEAR(predicted("r0001"), 1.4116, 0.10 * 1.4116);
  EXPECT_NEAR(predicted("r0002"), 2.0315, 0.10 * 2.0315);
}

TEST(Rows, ColumnsMayStandInAnyOrderAndMayBeMissing) {
  const auto rows = rows_of("gpu_type,seq,model,gpus\nH100-SXM5-80GB,8192,Llama3-8B,8\n");
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_FALSE(rows[0].candidates.empty()) << rows[0].reason;
  const Work& work = *predict(rows[0], shipped_constants())->work;
  EXPECT_EQ(work.shape.layers, 32);
  EXPECT_EQ(work.shape.mlp_matrices, 3);
  EXPECT_EQ(work.degrees.fsdp, 8);  // a card does not hold 8 billion parameters and their state
  EXPECT_TRUE(rows[0].assumed);
  EXPECT_TRUE(rows[0].flagged);  // how much a step reads is a guess
  EXPECT_EQ(rows[0].id, "line 2");
}

TEST(Rows, ATableThatCannotBePredictedNamesTheMissingColumn) {
  const auto rows = parse_rows("id,seq,gpu_type\n", "rows.csv");
  ASSERT_FALSE(rows);
  EXPECT_NE(rows.error().what.find("'gpus'"), std::string::npos);
  EXPECT_FALSE(parse_rows("", "rows.csv"));
}

struct Nonsense {
  const char* columns;
  const char* fields;
  const char* says;
};

TEST(Rows, NonsenseHasAReasonAndNoWork) {
  const Nonsense cases[] = {
      {"dp", "-8", "dp: '-8' is not above zero"},
      {"dp", "eight", "dp: 'eight' is not a number"},
      {"dp", "8x", "dp: '8x' is not a number"},
      {"tp", "0", "tp: '0' is not above zero"},
      {"tp", "1.5", "tp: '1.5' is not a whole number"},
      {"vocab", "1e16", "vocab: '1e16' is no size that exists"},
      {"params", "1e999", "params: '1e999' is no size that exists"},
      {"params", "inf", "params: 'inf' is no size that exists"},
      {"step_s", "-1", "step_s: '-1' is not above zero"},
      {"dp,tp", "8,2", "dp * fsdp * tp * pp: 16 ranks, which do not fill 8 gpus"},
      {"dp", "3", "dp * fsdp * tp * pp: 3 ranks, which do not fill 8 gpus"},
      {"heads,tp", "16,3", "tp: 3 ranks of 16 heads"},
      {"heads,tp", "16,64", "tp: 64 ranks of 16 heads"},
      {"pp", "25", "pp: 25 stages of 24 layers"},
      {"ep", "8", "ep: 8 ranks, and the model is not known to have experts"},
      {"experts,top_k,ep,dp", "8,2,3,2", "ep: 3 ranks of 8 experts"},
      {"heads", "33", "heads: 33 of a width of 2048"},
      {"ac", "banana", "ac: 'banana' is none of none, selective, full"},
      {"precision", "int3", "precision: 'int3' is none of bf16, fp16, fp8, mxfp8, nvfp4"},
      {"precision", "fp32", "precision: 'fp32' is none of bf16, fp16, fp8, mxfp8, nvfp4"},
      {"gpus_per_node", "1e12", "gpus_per_node: '1e12' is no size that exists"},
      {"params", "9e10", "params: 9e+10 where such layers have 1.61e+09; experts not stated?"},
      {"notes", "\"open", "a quote is not closed"},
      {"dp", "8,9,10", "has 12 fields where the table has 10 columns"},
  };
  for (const Nonsense& c : cases) {
    const Row row = row_with(c.columns, c.fields);
    EXPECT_EQ(row.reason, c.says);
    EXPECT_TRUE(row.candidates.empty()) << c.says;
    EXPECT_FALSE(predict(row, shipped_constants()));
  }
}

TEST(Rows, MissingEssentialValuesHaveAReason) {
  const std::string columns = "gpus,gpu_type,seq,model\n";
  const auto reason = [&](const std::string& row) { return rows_of(columns + row)[0].reason; };
  EXPECT_EQ(reason(",H100,2048,Llama3-8B\n"), "gpus: not stated");
  EXPECT_EQ(reason("0,H100,2048,Llama3-8B\n"), "gpus: '0' is not above zero");
  EXPECT_EQ(reason("8,,2048,Llama3-8B\n"), "gpu_type: not stated");
  EXPECT_EQ(reason("8,H100,nan,Llama3-8B\n"), "seq: not stated");
  EXPECT_EQ(reason("8,abacus,2048,Llama3-8B\n"), "gpu_type: no data sheet of 'abacus'");
  EXPECT_EQ(reason("8,H100,2048,mine\n"),
            "layers, dim: missing, and neither params nor the model's name implies them");
}

// As jobs are refused.
TEST(Rows, PrecisionsThatTheCardDoesNotHaveAreLeftOut) {
  const auto row = [](const std::string& card, const std::string& precision) {
    return rows_of("gpus,gpu_type,seq,model,dp,micro_batch,grad_accum,step_s,precision\n8," + card +
                   ",2048,Llama3-8B,8,1,1,1.5," + precision + "\n")[0];
  };
  EXPECT_EQ(row("H100", "nvfp4").reason, "precision: 'H100-SXM5-80GB' has no nvfp4");
  EXPECT_EQ(row("H200", "mxfp8").reason, "precision: 'H200-SXM-141GB' has no mxfp8");
  EXPECT_EQ(row("MI355X", "nvfp4").reason, "precision: 'MI355X' has no nvfp4");
  EXPECT_TRUE(row("H100", "nvfp4").candidates.empty());
  EXPECT_FALSE(row("GB200", "nvfp4").candidates.empty());
  EXPECT_FALSE(row("H100", "fp8").candidates.empty());
}

TEST(Rows, FrameworksAreRecognisedByKeywords) {
  const std::pair<const char*, Framework> cases[] = {
      {"nanochat run", Framework::kNanochat},
      {"llm.c", Framework::kLlmc},
      {"FULL_SHARD", Framework::kFoundry},
      {"Megatron-Bridge 25.09", Framework::kMegatronBridge},
      {"NeMo Automodel", Framework::kAutomodel},
      {"Megatron-DeepSpeed", Framework::kMegatronDeepspeed},
      {"Megatron-LM", Framework::kMegatronCore},  // on H100
      {"DeepSpeed ZeRO-3 in Megatron", Framework::kZero3},
      {"KempnerForge", Framework::kKempner},
      {"somebody", Framework::kTorch},
  };
  for (const auto& [source, framework] : cases) {
    const Row row = row_with("source", source);
    ASSERT_FALSE(row.candidates.empty()) << row.reason;
    EXPECT_EQ(row.candidates[0].software.framework, framework) << source;
  }
}

TEST(Rows, AStatedFrameworkIsNotOverriddenByNotes) {
  const auto software = [](const char* framework, const char* compile) {
    const Row row =
        row_with("framework,compile,notes",
                 fmt::format("{},{},compared with Megatron elsewhere", framework, compile));
    return row.candidates.at(0).software.framework;
  };
  EXPECT_EQ(software("torch", "no"), Framework::kTorch);
  EXPECT_EQ(software("PyTorch (ROCm)", "yes"), Framework::kTorchCompiled);
  EXPECT_EQ(software("torch-compiled", ""), Framework::kTorchCompiled);
  EXPECT_EQ(software("zero-3", ""), Framework::kZero3);
  EXPECT_EQ(software("my own", ""), Framework::kMegatronCore);
}

TEST(Rows, NotesSayWordsAndNotTheirParts) {
  const auto work = [](const char* notes) {
    const Row row = row_with("framework,dp,notes", fmt::format("torch,8,{}", notes));
    EXPECT_FALSE(row.candidates.empty()) << row.reason;
    return row.candidates.empty() ? Work() : row.candidates[0];
  };
  EXPECT_TRUE(work("LoRA; rank 16").lora);
  for (const char* notes :
       {"exploration of batch sizes", "run in Colorado", "no LoRA", "lora=false"})
    EXPECT_FALSE(work(notes).lora) << notes;
  EXPECT_TRUE(work("Muon for the matrices").muon);
  EXPECT_FALSE(work("AdamW; not Muon").muon);
  EXPECT_TRUE(work("FULL_SHARD mp=PURE").software.pure_bf16);
  EXPECT_TRUE(work("pure bf16").software.pure_bf16);
  EXPECT_FALSE(work("pure FSDP baseline").software.pure_bf16);
  EXPECT_EQ(work("window S=512; gbs=64").shape.window, 512);
  EXPECT_EQ(work("window SSSL s=512").shape.window, 512);
  for (const char* notes : {"no sliding window; gbs=128", "windows=none gbs=128", "no window s=512",
                            "median of a window of steps; s=512"})
    EXPECT_EQ(work(notes).shape.window, 0) << notes;
}

TEST(Rows, ColumnsSayYesInAnyOfItsSpellings) {
  for (const char* yes : {"yes", "True", "on", "1", "yes (userbuffers)"}) {
    const Work work = row_with("framework,dp,compile,async_tp", fmt::format("torch,8,{0},{0}", yes))
                          .candidates.at(0);
    EXPECT_TRUE(work.software.overlaps_tensor) << yes;
    EXPECT_TRUE(work.software.compiled) << yes;
  }
  for (const char* no : {"no", "false", "0", "not yes", ""}) {
    const Work work = row_with("framework,dp,compile,async_tp", fmt::format("torch,8,{0},{0}", no))
                          .candidates.at(0);
    EXPECT_FALSE(work.software.overlaps_tensor) << no;
    EXPECT_FALSE(work.software.compiled) << no;
  }
}

TEST(Rows, NotesGivePowerWindowsAndThreads) {
  const Row row = row_with("notes", "cards held at 500 W; 128 vCPU over two NUMA nodes");
  ASSERT_FALSE(row.candidates.empty()) << row.reason;
  EXPECT_EQ(row.candidates[0].card.watts, base::Watts(500));
  EXPECT_EQ(row.candidates[0].links.scarce_threads, 16);
  EXPECT_EQ(row_with("notes", "128 vCPU").candidates[0].links.scarce_threads, 0);
  EXPECT_EQ(row_with("notes", "252 vCPU; two NUMA nodes").candidates[0].links.scarce_threads, 0);
}

TEST(Rows, AnUnknownMicroBatchIsTheFastest) {
  const auto rows = rows_of(
      "id,model,seq,gpus,gpu_type,dp,notes\nx,Llama3-8B,2048,8,H100-SXM5-80GB,8,global batch 64\n");
  ASSERT_EQ(rows[0].candidates.size(), 4U);  // 1, 2, 4, 8 of 8 sequences per rank
  const auto best = predict(rows[0], shipped_constants());
  for (const Work& work : rows[0].candidates)
    EXPECT_LE(best->step_s, step_seconds(work, shipped_constants()).count());
}

struct Unsaid {
  const char* columns;
  const char* fields;
  const char* says;
};

TEST(Rows, AssumedValuesAreReported) {
  const Unsaid cases[] = {
      {"source,ac,fsdp,tp,pp", "Megatron-LM,none,1,2,1", "dp 4 assumed"},
      {"source,ac,dp,tp,pp", "Megatron-LM,none,1,2,1", "fsdp 4 assumed"},
      {"source,ac,dp,fsdp,tp", "Megatron-LM,none,2,1,1", "pp 4 assumed"},
      {"source,ac,dp,fsdp,pp", "Megatron-LM,none,2,1,1", "tp 4 assumed"},
      {"source,ac,dp,fsdp,tp,pp", "Megatron-LM,none,2,1,1,1", "cp 4 assumed"},
      {"source,ac", "Megatron-LM,none", "layout unknown: the fastest that fits assumed"},
      {"source,ac,dp", "me,none,8", "software unknown: eager PyTorch assumed"},
      {"ac,tp,pp,dp", "none,2,2,2", "software unknown: megatron-bridge assumed"},
      {"source,dp", "Megatron-LM,8", "ac none assumed"},
  };
  for (const Unsaid& c : cases) {
    const Row row = row_with(c.columns, c.fields);
    EXPECT_EQ(row.reason, c.says);
    EXPECT_TRUE(row.assumed) << c.says;
    EXPECT_FALSE(row.candidates.empty()) << c.says;
  }
  const Row said = row_with("source,ac,dp", "Megatron-LM,none,8");
  EXPECT_EQ(said.reason, "");
  EXPECT_FALSE(said.assumed);
}

// Tokens per second times seconds are tokens: the only use of a measured time.
TEST(Rows, TheBatchFollowsFromWhatWasMeasured) {
  const std::string columns = "model,seq,gpus,gpu_type,dp,grad_accum,tok_per_s,step_s\n";
  const auto rows =
      rows_of(columns + "Llama3-8B,2048,8,H100,8,4,262144,2\n" + "Llama3-8B,2048,8,H100,8,4,,2\n");
  ASSERT_EQ(rows.size(), 2U);
  ASSERT_EQ(rows[0].candidates.size(), 1U);  // 256 sequences are 8 x 4 x 8
  EXPECT_EQ(rows[0].candidates[0].batch.micro_batch, 8);
  EXPECT_FALSE(rows[0].flagged);
  ASSERT_EQ(rows[1].candidates.size(), 1U);
  EXPECT_EQ(rows[1].candidates[0].batch.micros, 4);
  EXPECT_TRUE(rows[1].flagged);
}

// A rate without a batch is compared as a rate: a step of a batch that was taken lasts as long.
TEST(Rows, ARateWithoutABatchIsCompared) {
  const auto rows = rows_of(
      "model,seq,gpus,gpu_type,dp,micro_batch,tok_per_s,mem_gb\nLlama3-8B,2048,8,H100,8,2,80000,"
      "70\n");
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_EQ(rows[0].candidates.size(), 1U) << rows[0].reason;
  const Batch& batch = rows[0].candidates[0].batch;
  EXPECT_EQ(batch.micro_batch, 2);
  EXPECT_EQ(batch.micros, 122);  // 4e6 / (2048 * 2 * 8)
  EXPECT_TRUE(rows[0].by_rate);
  EXPECT_FALSE(rows[0].flagged);
  ASSERT_TRUE(rows[0].step_s);
  EXPECT_DOUBLE_EQ(*rows[0].step_s, 2048.0 * 2 * 122 * 8 / 80'000);
  EXPECT_NE(rows[0].reason.find("compared by tokens/s"), std::string::npos) << rows[0].reason;
}

TEST(Rows, ARateOfAPipelineHasAsManyMicroBatchesAsRowsThatSayThem) {
  const char* columns = "tp,pp,dp,tok_per_s,experts,top_k,notes";
  const auto micros = [&](const char* fields) {
    const auto rows = rows_of(std::string("id,model,layers,dim,seq,gpus,gpu_type,") + columns +
                              "\nx,m,24,2048,4096,2048,H100-SXM5-80GB," + fields + "\n");
    return rows.at(0).candidates.at(0).batch.micros;
  };
  EXPECT_EQ(micros("1,4,512,1e6,,,"), 8 * 4);
  EXPECT_EQ(micros("1,4,512,1e6,64,8,"), 16 * 4);
}

TEST(Rows, APipelineThatShardsGradientsIsNotPyTorchsFsdp) {
  const auto framework = [](const char* fields) {
    return row_with("fsdp,tp,pp,compile,notes", fields).candidates.at(0).software.framework;
  };
  EXPECT_EQ(framework("1,2,4,TE,FSDP with gradients sharded"), Framework::kMegatronBridge);
  EXPECT_EQ(framework("8,1,1,,FSDP with full sharding"), Framework::kTorch);
}

TEST(Rows, HowExpertsAreDispatched) {
  const auto work = [](const char* date, const char* notes) {
    return row_with("framework,experts,top_k,expert_ffn,tp,ep,dp,date,notes",
                    fmt::format("Megatron-LM,8,2,4096,2,4,4,{},{}", date, notes))
        .candidates.at(0);
  };
  EXPECT_FALSE(work("2024-06", "").software.sends_tokens_once);
  EXPECT_TRUE(work("2026-01", "").software.sends_tokens_once);
  EXPECT_FALSE(work("2026-01", "alltoall dispatcher").software.sends_tokens_once);
  EXPECT_TRUE(work("2024-06", "DeepEP").software.sends_tokens_once);
  // Parts of experts until Megatron could do otherwise, or as the row says.
  EXPECT_TRUE(work("2024-06", "").degrees.experts_cut);
  EXPECT_FALSE(work("2026-01", "").degrees.experts_cut);
  EXPECT_TRUE(work("2026-01", "ETP=2").degrees.experts_cut);
  EXPECT_FALSE(work("2024-06", "ETP=1").degrees.experts_cut);
  EXPECT_GT(work("2026-01", "natural routing").degrees.expert_load, 1);
}

TEST(Rows, StateIsSharedInGroupsWhereARowSaysSo) {
  const Row row = row_with("source,ac,dp,zero", "me,none,8,1 (within 4 GPUs)");
  ASSERT_FALSE(row.candidates.empty()) << row.reason;
  EXPECT_EQ(row.candidates[0].degrees.state_shards, 4);
  EXPECT_EQ(row_with("source,ac,dp,zero", "me,none,8,1").candidates[0].degrees.state_shards, 0);
}

// Megatron had flash attention on older cards from the middle of 2023 on, as an option: the memory
// of runs of January 2024 is that of attention without it (docs/plan-model.md, section 5).
TEST(Rows, FlashAttentionByDateAndByName) {
  const auto flash = [](const std::string& fields) {
    const auto rows = rows_of(
        "model,seq,gpus,gpu_type,dp,micro_batch,grad_accum,source,date,notes\n"
        "GPT-1.3B,2048,8,A100-SXM4-80GB,8,1,1," +
        fields + "\n");
    return !rows[0].candidates.empty() && rows[0].candidates[0].software.flash;
  };
  EXPECT_FALSE(flash("Megatron-LM,2021-04,GPT"));
  EXPECT_FALSE(flash("Megatron-LM,2024-02,GPT"));
  EXPECT_TRUE(flash("Megatron-LM,2024-08,GPT"));
  EXPECT_TRUE(flash("Megatron-LM,2022-11,FlashAttention"));
  EXPECT_FALSE(flash("Megatron-LM,2024-02,no flash attention"));
}

// Published: queries through 1024 to 64 heads of 512, one key of 512, the result through 8 x 1024,
// and four residual streams; 284 billion parameters in 43 layers.
TEST(Rows, ShapeOfHyperConnections) {
  const auto rows = rows_of(
      "model,layers,dim,ffn,heads,kv_heads,vocab,seq,gpus,gpu_type,dp,ep,micro_batch,grad_accum,"
      "experts,top_k,expert_ffn,shared_experts,moe_layers,attention\n"
      "DeepSeek-V4-Flash,43,4096,2048,64,1,129280,4096,64,GB200,64,64,1,1,256,6,2048,1,43,csa\n");
  ASSERT_FALSE(rows[0].candidates.empty()) << rows[0].reason;
  const Shape& shape = rows[0].candidates[0].shape;
  EXPECT_EQ(shape.streams, 4);
  EXPECT_NEAR(shape.parameters, 284e9, 0.02 * 284e9);
}

// As published: V3 chooses 4 groups of experts for a token, V2 3, and V2-Lite has no groups.
TEST(Rows, RoutersChooseGroupsOfExpertsWhereTheirModelsDo) {
  for (const auto& [model, groups] :
       {std::pair("DeepSeek-V3", 4.0), std::pair("DeepSeek-V2", 3.0),
        std::pair("DeepSeek-V2-Lite", 0.0), std::pair("deepseek_v2_lite", 0.0)}) {
    const auto rows = rows_of(
        fmt::format("id,model,layers,dim,ffn,heads,seq,micro_batch,grad_accum,gpus,gpu_type,dp,ep,"
                    "experts,top_k,expert_ffn\n"
                    "x,{},27,2048,10944,16,2048,1,8,8,H100-SXM5-80GB,8,8,64,6,1408\n",
                    model));
    ASSERT_FALSE(rows.at(0).candidates.empty()) << rows.at(0).reason;
    EXPECT_EQ(rows.at(0).candidates.at(0).shape.expert_groups, groups) << model;
  }
}

// Ranks that read data, derived from the batch; the others split sequences.
TEST(Rows, TheLayoutFollowsFromTheBatch) {
  const Row row = row_with("fsdp,tp,pp,tok_per_s,step_s", "1,1,1,32768,1");
  ASSERT_EQ(row.candidates.size(), 1U) << row.reason;
  EXPECT_EQ(row.candidates[0].degrees.dp, 4);
  EXPECT_EQ(row.candidates[0].degrees.cp, 2);
}

TEST(Rows, ColumnsInAnyCaseAndIdsAsTheyAre) {
  const auto rows = rows_of("ID, GPUs ,GPU_type,Seq,model\nnan,8,H100,2048,Llama3-8B\n");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].id, "nan");
  EXPECT_FALSE(rows[0].candidates.empty()) << rows[0].reason;
}

TEST(Rows, AModelsDepthFollowsFromItsParameters) {
  const auto rows = rows_of(
      "model,params,dim,ffn,seq,gpus,gpu_type\n"
      "MoE-8E-top2,1.05e10,2048,8192,2048,8,H100\n");
  ASSERT_FALSE(rows[0].candidates.empty()) << rows[0].reason;
  EXPECT_NEAR(rows[0].candidates[0].shape.layers, 24, 2);
}

TEST(RowText, Patterns) {
  EXPECT_TRUE(contains_like("meta llama-3.1-8b it", "llama?3*8b"));
  EXPECT_TRUE(contains_like("llama38b", "llama?3*8b"));
  EXPECT_FALSE(contains_like("llama--38b", "llama?3*8b"));
  EXPECT_FALSE(contains_like("llama3", "llama?3*8b"));
  EXPECT_TRUE(states("mp=pure, use_lora", "lora"));
  EXPECT_TRUE(states("no lora before; lora now", "lora"));
  EXPECT_FALSE(states("without  lora", "lora"));
  EXPECT_FALSE(states("qlora", "lora"));
  EXPECT_TRUE(states("volcano lora", "lora"));
  EXPECT_EQ(parameters_in("llama3.1_405b"), 405e9);
  EXPECT_EQ(parameters_in("opt 1.3 b"), 1.3e9);
  EXPECT_FALSE(parameters_in("8bit"));
  EXPECT_EQ(watts_in("at 450w"), 450);
  EXPECT_FALSE(watts_in("12345 w"));
  EXPECT_EQ(experts_in("moe-64e-top2 x")->experts, 64);
  EXPECT_EQ(number_after("tcp=3 cp=4", "cp=", true), 4);
  EXPECT_EQ(number_before("runpod 160 vcpu", "vcpu"), 160);
}

RC_GTEST_PROP(RowsProperty, AnyBytesAreReadOrRefused, (const std::string& text)) {
  const auto rows = parse_rows(text, "rows.csv");
  RC_ASSERT(rows || !rows.error().what.empty());
}

// Whatever stands in the fields: a finite time above zero, or a reason.
RC_GTEST_PROP(RowsProperty, AnyFieldsHaveAPredictionOrAReason, ()) {
  const auto any = rc::gen::oneOf(
      rc::gen::element<std::string>("", "1", "2", "8", "64", "1e15", "0", "-3", "nan", "x", "llama",
                                    "3 experts-top-7", "global batch 0", "cp=0", "mbs 0; vp=0",
                                    "H100", "window s=0", "full", "deepep", "0b", "1e-300"),
      rc::gen::arbitrary<std::string>());
  const std::string columns =
      "gpus,gpu_type,seq,model,layers,dim,ffn,heads,kv_heads,vocab,params,micro_batch,grad_accum,"
      "gpus_per_node,intra_bw,inter_bw,dp,fsdp,tp,pp,ep,ac,precision,compile,notes,source";
  std::string csv = columns + "\n8,H100,2048,llama-7b";
  for (int i = 4; i < 26; ++i) {
    std::string field = *any;
    std::replace(field.begin(), field.end(), '"', ' ');
    csv += ",\"" + field + '"';
  }
  const auto rows = parse_rows(csv + "\n", "rows.csv");
  RC_ASSERT(rows);
  for (const Row& row : *rows) {
    const auto best = predict(row, shipped_constants());
    RC_ASSERT(best.has_value() || !row.reason.empty());
    if (!best) continue;
    RC_ASSERT(std::isfinite(best->step_s) && best->step_s > 0);
    // What is not finite counts as an exbibyte, and no size but the largest comes near that.
    const base::Bytes total = memory_need(*best->work, shipped_memory_constants()).total();
    RC_ASSERT(total > base::Bytes(0));
    RC_ASSERT(total < kMostOfAPart || csv.find("1e15") != std::string::npos);
  }
}

}  // namespace
}  // namespace assay::plan
