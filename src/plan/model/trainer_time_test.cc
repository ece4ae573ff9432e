// What is priced of our trainer's step against the programs that it executes.
#include "plan/model/trainer_time.h"

#include <gtest/gtest.h>

#include "plan/model/step_time.h"
#include "plan/testing/searches.h"
#include "plan/work_of_job.h"
#include "step/op.h"
#include "step/program.h"

namespace assay::plan {
namespace {

using testing::job_of;

// Read and written by a micro-batch's ops that are neither products nor attention.
double pass_bytes(const spec::JobSpec& job) {
  step::Choices choices = step::choices_of(job);
  choices.accumulate = 1;
  const step::Program program = step::build(job.model, choices).value();
  double bytes = 0;
  for (const step::Op& op : program.ops) {
    const bool is_read = op.kind == step::OpKind::kRead;
    if (op.phase == step::Phase::kOptimizer || op.flops > 0 || is_read) continue;
    bytes += step::moved_bytes(op, program.buffers).total();
  }
  return bytes;
}

// Where nothing but memory takes time, and no cache keeps anything.
TEST(TrainerTime, PassesMoveTheBytesOfTheProgram) {
  const std::vector<std::vector<std::string>> jobs = {
      {},
      {"train.precision=fp8"},
      {"model.extends=gpt2-124m", "batch.sequence=1024", "batch.micro_batch=8"},
      {"model.experts=4", "model.experts_per_token=2", "model.moe_every=2", "model.shared_ffn=512",
       "model.expert_ffn=1024", "model.dense_layers=3"}};
  for (const auto& set : jobs) {
    spec::JobSpec job = job_of("llama3-8b-h200", set);
    job.model.layers = 6;
    job.train.recompute = spec::Recompute::kNone;
    Work work = work_of(job).value();
    constexpr double kRate = 1e12;
    work.card.bf16_flops = work.card.fp8_flops = base::FlopsPerSecond(1e40);
    work.card.memory_rate = base::BytesPerSecond(kRate);
    work.card.cache = base::Bytes(0);
    work.batch.micros = 1;
    Constants constants = shipped_constants();
    constants.mem_eff = constants.own_pass = 1;
    constants.gap_us = 0;
    const StepTime t = step_time(work, constants);
    const double expected = pass_bytes(job);
    const base::Seconds routing = t.routing / kScatteredRows;
    EXPECT_NEAR((t.passes + routing + t.head).count() * kRate / expected, 1, 1e-6);
    EXPECT_EQ(t.routing.count() > 0, job.model.is_moe());
  }
}

// Steps are kept by what they depend on, and what the device takes by its rates.
TEST(TrainerTime, DoesNotDependOnWhatWasAskedBefore) {
  const spec::JobSpec job = job_of("llama3-70b-h200x32");
  const auto alone = [&](double tp, double micro_batch, RecomputeKind recompute, double gemm_eff,
                         Work work) {
    work.degrees.tp = tp;
    work.batch.micro_batch = micro_batch;
    work.recompute = recompute;
    Constants constants = shipped_constants();
    constants.gemm_eff = gemm_eff;
    return step_seconds(work, constants).count();
  };
  const Work shared = work_of(job).value();
  for (const int round : {0, 1}) {
    for (const double tp : {1.0, 8.0}) {
      for (const double micro_batch : {1.0, 2.0}) {
        for (const RecomputeKind kind : {RecomputeKind::kNone, RecomputeKind::kFull}) {
          for (const double gemm_eff : {0.8, 0.9}) {
            EXPECT_EQ(alone(tp, micro_batch, kind, gemm_eff, shared),
                      alone(tp, micro_batch, kind, gemm_eff, work_of(job).value()))
                << round;
          }
        }
      }
    }
  }
}

TEST(TrainerTime, IsOfLayoutsThatAreExecuted) {
  Work work = work_of(job_of("llama3-70b-h200x32")).value();
  EXPECT_NE(trainer_step(work), nullptr);
  work.degrees.tp = 16;  // of 8 heads of keys
  EXPECT_EQ(trainer_step(work), nullptr);
  EXPECT_NE(trainer_step(work_of(job_of("moe-9b-h200x32", {"layout={ep=4,fsdp=8}"})).value()),
            nullptr);
  EXPECT_NE(trainer_step(work_of(job_of("moe-9b-h200x32", {"layout={fsdp=32}"})).value()), nullptr);
  const spec::JobSpec job = job_of("llama3-8b-h200");
  EXPECT_EQ(trainer_step(work_of(job, {.framework = Framework::kTorch}).value()), nullptr);
}

}  // namespace
}  // namespace assay::plan
