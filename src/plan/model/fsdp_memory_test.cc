// Against PyTorch itself: tests/torch/fsdp_memory.py counts what fake tensors hold.
#include "plan/model/fsdp_memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "plan/testing/searches.h"
#include "plan/work_of_job.h"

namespace assay::plan {
namespace {

struct Counted {
  std::string name;
  std::string model;
  Degrees degrees;
  Batch batch;
  RecomputeKind recompute = RecomputeKind::kNone;
  double gib = 0;  // the most that was alive, without context and libraries
};

Work counted_work(const Counted& given, Framework framework = Framework::kTorch) {
  const spec::JobSpec job =
      testing::job_of("llama3-8b-h200", {"model.extends=" + given.model, "batch.sequence=1024"});
  Work work = work_of(job, {.framework = framework}).value();
  work.degrees = given.degrees;
  work.degrees.sequence_parallel = given.degrees.tp > 1;
  work.degrees.ranks = given.degrees.fsdp * given.degrees.tp;
  work.batch = given.batch;
  work.recompute = given.recompute;
  return work;
}

double gib(base::Bytes bytes) {
  return static_cast<double>(bytes.count()) / std::pow(2.0, 30);
}

// Of PyTorch 2.15, logits freed before the backward pass.
std::vector<Counted> counted() {
  using enum RecomputeKind;
  const Degrees on_8{.fsdp = 8};
  const Degrees on_64{.fsdp = 64};
  const Degrees on_128{.fsdp = 128};
  const Batch one{8192, 1, 1};
  const Batch two{8192, 2, 1};
  const Batch small{1024, 1, 1};
  const Degrees cut_in_2{.fsdp = 8, .tp = 2};
  const Degrees cut_in_8{.fsdp = 8, .tp = 8};
  const Degrees large_in_8{.fsdp = 16, .tp = 8};
  const std::string of_8b = "llama3-8b";
  const std::string of_70b = "llama3-70b";
  return {{"Kept", of_8b, on_8, one, kNone, 66.080},
          {"Full", of_8b, on_8, one, kFull, 27.047},
          {"Selective", of_8b, on_8, one, kSelective, 40.578},
          {"KeptOn64", of_8b, on_64, two, kNone, 109.164},
          {"FullOn64", of_8b, on_64, two, kFull, 31.098},
          {"SelectiveOn64", of_8b, on_64, two, kSelective, 58.160},
          {"ShortKept", of_8b, on_8, small, kNone, 21.143},
          {"ShortFull", of_8b, on_8, small, kFull, 20.340},
          {"Accumulated", of_8b, on_8, {8192, 1, 2}, kFull, 30.786},
          {"LargeFull", of_70b, on_128, one, kFull, 32.156},
          {"LargeSelective", of_70b, on_128, one, kSelective, 98.477},
          {"KeptByTensorRanks", of_8b, cut_in_2, one, kNone, 37.032},
          {"SelectiveByTensorRanks", of_8b, cut_in_8, one, kSelective, 7.870},
          {"LargeFullByTensorRanks", of_70b, large_in_8, one, kFull, 11.492}};
}

class FsdpMemory : public ::testing::TestWithParam<Counted> {};

TEST_P(FsdpMemory, IsWhatPyTorchHasAlive) {
  const Work work = counted_work(GetParam());
  ASSERT_TRUE(has_fsdp_moments(work));
  const MemoryNeed need =
      fsdp_memory(work, rank_share(work, shipped_constants()), {4, 4, 8}, /*base=*/0);
  EXPECT_NEAR(gib(need.total()) / GetParam().gib, 1, 0.002);
}

INSTANTIATE_TEST_SUITE_P(Oracle, FsdpMemory, ::testing::ValuesIn(counted()),
                         [](const auto& tested) { return tested.param.name; });

// The plan of a job has these bytes, and what context and libraries take.
TEST(FsdpMemoryOfAPlan, HasAContext) {
  const Work work = counted_work(counted().front());
  const double base = shipped_memory_constants().base_gib;
  EXPECT_NEAR(gib(memory_need(work, shipped_memory_constants()).total()),
              counted().front().gib + base, 0.1);
}

// Compiled programs keep no result of an activation, and their loss has the logits' gradient alone.
TEST(FsdpMemoryOfAPlan, IsLessWhereCompiled) {
  for (const Counted& each : counted()) {
    if (each.degrees.tp > 1) continue;
    const auto total = [&](Framework framework) {
      return memory_need(counted_work(each, framework), shipped_memory_constants()).total();
    };
    EXPECT_LE(total(Framework::kTorchCompiled), total(Framework::kTorch)) << each.name;
  }
}

// Pipelines, mixtures and other software are counted by sums.
TEST(FsdpMemoryOfAPlan, IsOfDenseModelsWithoutAPipeline) {
  Work work = counted_work(counted().front());
  work.degrees.pp = 2;
  EXPECT_FALSE(has_fsdp_moments(work));
  work = counted_work(counted().front());
  work.degrees.fsdp = 1;
  EXPECT_FALSE(has_fsdp_moments(work));
  EXPECT_FALSE(has_fsdp_moments(counted_work(counted().front(), Framework::kMegatronCore)));
}

}  // namespace
}  // namespace assay::plan
