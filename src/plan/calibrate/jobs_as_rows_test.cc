// A job and the row that describes the same run are one work: what rows say of a framework's errors
// is true of jobs only then.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "plan/calibrate/rows.h"
#include "plan/model/memory.h"
#include "plan/model/step_time.h"
#include "plan/testing/searches.h"
#include "plan/work_of_job.h"

namespace assay::plan {
namespace {

struct DescribedRun {
  std::string layout;  // of the test's name
  int dp = 1;
  int fsdp = 1;
  int tp = 1;
  int accumulate = 1;
  std::string recompute = "none";
  int cp = 1;
};

struct NamedProgram {
  std::string name;  // as --framework has it
  std::string columns;
  std::string fields;
};

Work work_of_row(const NamedProgram& program, const DescribedRun& run) {
  const std::string csv = fmt::format(
      "id,model,params,layers,dim,ffn,heads,kv_heads,vocab,seq,micro_batch,grad_accum,gpus,"
      "gpus_per_node,gpu_type,dp,fsdp,tp,cp,pp,ep,ac,precision,date,{}\n"
      "x,Llama3-8B,8030261248,32,4096,14336,32,8,128256,4096,1,{},8,8,H100-SXM5-80GB,{},{},{},{},1,"
      "1,"
      "{},bf16,2026-09,{}\n",
      program.columns, run.accumulate, run.dp, run.fsdp, run.tp, run.cp, run.recompute,
      program.fields);
  const auto rows = parse_rows(csv, "rows.csv");
  EXPECT_TRUE(rows) << csv;
  EXPECT_EQ(rows->at(0).candidates.size(), 1U) << rows->at(0).reason;
  return rows->at(0).candidates.at(0);
}

Work work_of_job(const NamedProgram& program, const DescribedRun& run) {
  const spec::JobSpec job =
      testing::job_of("llama3-8b-h200",
                      {"cluster.extends=h100-sxm-8", "batch.sequence=4096", "batch.micro_batch=1",
                       "train.precision=bf16", fmt::format("batch.accumulate={}", run.accumulate),
                       fmt::format("layout.dp={}", run.dp), fmt::format("layout.fsdp={}", run.fsdp),
                       fmt::format("layout.tp={}", run.tp), fmt::format("layout.cp={}", run.cp),
                       "train.recompute=" + run.recompute});
  return work_of(job, {.framework = parse_framework(program.name)}).value();
}

TEST(JobsAsRows, AreTheSameWork) {
  const NamedProgram programs[] = {
      {"torch", "source", "PyTorch FSDP"},
      {"torch-compiled", "source,compile", "PyTorch FSDP,yes"},
      {"automodel", "source", "NeMo Automodel"},
      {"megatron-core", "framework", "Megatron-Core"},
      {"megatron-bridge", "framework", "NeMo"},
      {"megatron-deepspeed", "source", "Megatron-DeepSpeed"},
      {"zero-3", "source", "DeepSpeed ZeRO-3"},
      {"kempner", "source", "KempnerForge"},
      {"xla", "framework", "MaxText"},
  };
  const DescribedRun runs[] = {
      {"Fsdp8", 1, 8, 1, 1, "none"},          {"Fsdp8Full", 1, 8, 1, 4, "full"},
      {"Tp4Fsdp2", 1, 2, 4, 1, "none"},       {"Tp4Replicas", 2, 1, 4, 1, "none"},
      {"Tp4Accumulates", 2, 1, 4, 4, "full"}, {"Replicas", 8, 1, 1, 2, "full"},
      {"Cp4Fsdp2", 1, 2, 1, 1, "full", 4},    {"Cp8", 1, 1, 1, 2, "full", 8},
      {"Cp2Replicas", 4, 1, 1, 2, "full", 2},
  };
  for (const NamedProgram& program : programs) {
    for (const DescribedRun& run : runs) {
      const Work row = work_of_row(program, run);
      Work job = work_of_job(program, run);
      // Rows do not say it; it is what their software does.
      job.degrees.sequence_parallel = row.degrees.sequence_parallel;
      EXPECT_EQ(to_text(row.software.framework), program.name);
      const double expected = step_seconds(row, shipped_constants()).count();
      const double made = step_seconds(job, shipped_constants()).count();
      EXPECT_NEAR(made, expected, 0.005 * expected) << program.name << ' ' << run.layout;
      const MemoryConstants memory = shipped_memory_constants();
      EXPECT_NEAR(memory_need(job, memory).total() / memory_need(row, memory).total(), 1, 0.02)
          << program.name << ' ' << run.layout;
    }
  }
}

// Routers that choose groups of experts send a token to fewer nodes than there are.
TEST(JobsAsRows, MixturesOverNodesAreTheSameWork) {
  struct Mixture {
    const char* model;
    const char* row;  // as rows name it
    double groups;
  };
  for (const Mixture& mixture :
       {Mixture{"deepseek-v3", "DeepSeek-V3", 4}, Mixture{"qwen3-30b-a3b", "Qwen3-30B-A3B", 0}}) {
    for (const auto& [framework, column] :
         {std::pair("megatron-core", "Megatron-Core"), std::pair("megatron-bridge", "NeMo")}) {
      const auto rows = parse_rows(
          fmt::format("id,model,seq,micro_batch,grad_accum,gpus,gpus_per_node,gpu_type,dp,fsdp,tp,"
                      "pp,ep,ac,precision,date,framework\n"
                      "x,{},4096,1,8,64,8,B200-SXM-180GB,64,1,1,1,64,full,bf16,2026-09,{}\n",
                      mixture.row, column),
          "rows.csv");
      ASSERT_TRUE(rows);
      ASSERT_EQ(rows->at(0).candidates.size(), 1U) << rows->at(0).reason;
      const Work row = rows->at(0).candidates.at(0);
      const Work job = work_of(testing::job_of("llama3-8b-h200",
                                               {std::string("model.extends=") + mixture.model,
                                                "cluster.extends=b200-sxm-8", "cluster.nodes=8",
                                                "batch.sequence=4096", "batch.micro_batch=1",
                                                "batch.accumulate=8", "train.precision=bf16",
                                                "train.recompute=full", "layout={ep=64}"}),
                               {.framework = parse_framework(framework)})
                           .value();
      EXPECT_EQ(row.shape.expert_groups, mixture.groups);
      EXPECT_EQ(job.shape.expert_groups, mixture.groups);
      const double expected = step_seconds(row, shipped_constants()).count();
      const double made = step_seconds(job, shipped_constants()).count();
      EXPECT_NEAR(made, expected, 0.01 * expected) << framework << ' ' << mixture.model;
    }
  }
}

}  // namespace
}  // namespace assay::plan
