// Plans: composed of the parts, and the same after a trip through JSON.
#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing/searches.h"
#include "spec/enum_names.h"

namespace assay::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Plan read_back(const Plan& plan) {
  const base::Json json = base::Json::parse(base::json_text(to_json(plan)));
  auto read = plan_from_json(json);
  EXPECT_TRUE(read.has_value()) << read.error().line();
  return read.value_or(Plan{});
}

TEST(Plan, IsWhatThePartsPredict) {
  const spec::JobSpec job = testing::job_of("llama3-70b-h200x32");
  const Plan plan = plan_of("llama3-70b-h200x32", job);
  const auto made = predict(job);
  ASSERT_TRUE(made && plan.step && plan.memory);
  EXPECT_EQ(plan.step->time.total, made->step.total);
  EXPECT_EQ(plan.step->mfu, made->mfu);
  EXPECT_EQ(plan.memory->fits(), made->fits);
  EXPECT_EQ(plan.device, "NVIDIA H200");
  EXPECT_EQ(plan.ranks, 32);
  EXPECT_LT(plan.step->low(), plan.step->high());
  EXPECT_THAT(plan.unknown, IsEmpty());
  base::Seconds sum;
  for (const StepPart& part : step_parts()) sum = sum + plan.step->time.*part.time;
  EXPECT_NEAR(sum / plan.step->time.total, 1, 1e-9);
}

// What the trainer cannot execute is counted otherwise, and the plan says why.
TEST(Plan, CountsInClosedFormWhatHasNoProgram) {
  const Plan shared = plan_of("moe", testing::job_of("moe-9b-h200x32", {"layout={fsdp=8,cp=4}"}));
  EXPECT_FALSE(shared.exchange->counted || shared.memory->counted);
  EXPECT_THAT(shared.exchange->not_counted, HasSubstr("layout.cp: "));
  EXPECT_EQ(shared.refused, shared.exchange->not_counted);
  const Plan spread = plan_of("moe", testing::job_of("moe-9b-h200x32", {"layout={fsdp=8,ep=4}"}));
  EXPECT_TRUE(spread.exchange->counted && spread.memory->counted);
  EXPECT_EQ(spread.refused, "");
  const Plan mixture = plan_of("moe", testing::job_of("moe-9b-h200x32", {"layout={fsdp=32}"}));
  EXPECT_TRUE(mixture.exchange->counted && mixture.memory->counted);
  EXPECT_EQ(mixture.refused, "");
  const spec::JobSpec job = testing::job_of("llama3-8b-h200");
  const Plan ours = plan_of("8b", job);
  EXPECT_TRUE(ours.exchange->counted && ours.memory->counted);
  EXPECT_EQ(ours.exchange->not_counted, "");
  const Plan theirs = plan_of("8b", job, {.assumed = {.framework = Framework::kTorch}});
  EXPECT_FALSE(theirs.exchange->counted || theirs.memory->counted);
  EXPECT_EQ(theirs.exchange->not_counted, "");
  EXPECT_EQ(ours.refused + theirs.refused, "");
  EXPECT_EQ(theirs.memory->need.total(),
            predict(job, {.framework = Framework::kTorch})->memory.total());
}

// The line that `assay train` ends with.
TEST(Plan, SaysWhatTheTrainerWouldRefuse) {
  const spec::JobSpec job =
      testing::job_of("llama3-13b-h200x32", {"train.optimizer=\"muon\"", "layout={fsdp=32}"});
  const Plan plan = plan_of("13b", job);
  step::Choices choices = step::choices_of(job);
  choices.layout = step::layout_of(job.layout, 0).value();
  EXPECT_EQ(plan.refused, step::build(job.model, choices).error().line());
  EXPECT_THAT(plan.refused, HasSubstr("layout.zero: Muon updates whole matrices"));
  EXPECT_EQ(read_back(plan).refused, plan.refused);
  const spec::JobSpec wide = testing::job_of("llama3-8b-h200", {"model.head_dim=256"});
  EXPECT_THAT(plan_of("wide", wide).refused, HasSubstr("model.head_dim: 256 cannot be trained"));
}

// As docs/plan.md has it.
TEST(Plan, CutModelsAreThoseOfMegatronWhereTheTrainerRefuses) {
  const auto software = [](std::vector<std::string> sets) {
    sets.insert(sets.begin(), "cluster.extends=mi300x-8");
    const spec::JobSpec job = testing::job_of("llama3-8b-h200", sets);
    EXPECT_EQ(to_text(*framework_instead(job)), plan_of("8b", job).framework);
    return plan_of("8b", job).framework;
  };
  EXPECT_EQ(software({"layout.fsdp=8"}), "torch-compiled");
  EXPECT_EQ(software({"layout.tp=8", "layout.dp=1"}), "megatron-core");
  EXPECT_EQ(software({"layout.pp=2", "layout.fsdp=4", "batch.accumulate=8"}), "megatron-core");
}

TEST(Plan, SchedulesThatSoftwareDoesNotHaveAreNotPlanned) {
  const auto planned = [](const std::string& schedule, Framework framework) {
    const spec::JobSpec job = testing::job_of(
        "llama3-13b-h200x32", {"layout={pp=4,fsdp=8," + schedule + "}", "batch.accumulate=16"});
    return to_json(plan_of("13b", job, {.assumed = {.framework = framework}}));
  };
  const std::string plain = "pp_schedule=\"1f1b\"";
  const std::string late = "pp_schedule=\"zb-h1\"";
  const std::string chunks = "pp_schedule=\"interleaved\",pp_chunks=2";
  for (const Framework framework : {Framework::kMegatronCore, Framework::kMegatronBridge}) {
    EXPECT_EQ(planned(late, framework), planned(plain, framework));
    EXPECT_NE(planned(chunks, framework), planned(plain, framework));
  }
  for (const Framework framework : {Framework::kTorch, Framework::kTorchCompiled}) {
    EXPECT_NE(planned(late, framework), planned(plain, framework));
    EXPECT_NE(planned(chunks, framework), planned(plain, framework));
  }
  EXPECT_EQ(planned(chunks, Framework::kZero3), planned(plain, Framework::kZero3));
}

// The policy that the trainer would choose, by the same memory.
TEST(Plan, ChoosesTheRecomputationByProgramsMemory) {
  for (const char* memory : {"160 GiB", "141 GiB", "100 GiB", "90 GiB", "80 GiB"}) {
    const spec::JobSpec job = testing::job_of(
        "llama3-8b-h200", {"train.recompute=auto", std::string("cluster.device.memory=") + memory});
    const Plan plan = plan_of("8b", job);
    const auto found = rank_footprints(job, device_of(job));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(plan.recompute, spec::to_text(found->recompute));
    EXPECT_EQ(plan.memory->need.total(), memory_of(found->largest(), device_of(job).extra).total());
    EXPECT_TRUE(plan.memory->fits() || plan.recompute == "full");
  }
}

TEST(Plan, SurvivesJsonToTheLastBit) {
  for (const char* preset : {"llama3-8b-h200", "moe-9b-h200x32", "nanochat-d26-h100"}) {
    const Plan plan = plan_of(preset, testing::job_of(preset));
    const Plan read = read_back(plan);
    EXPECT_EQ(to_json(read), to_json(plan)) << preset;
    ASSERT_TRUE(read.step && read.memory);
    EXPECT_EQ(read.step->high(), plan.step->high());
    EXPECT_EQ(read.memory->need.total(), plan.memory->need.total());
  }
}

TEST(Plan, WithoutAStepHasTheReason) {
  const spec::JobSpec job = testing::job_of("llama3-8b-h200");
  Plan plan = plan_without_step("mine", job, "2 cores", "it runs on CPUs");
  EXPECT_TRUE(to_json(plan)["step_s"].is_null());
  plan.memory = PlannedMemory{.need = {.workspace = base::Bytes(123'456'789)}, .counted = true};
  const Plan read = read_back(plan);
  EXPECT_FALSE(read.step);
  EXPECT_EQ(read.memory->need.total().count(), 123'456'789);
  EXPECT_TRUE(read.memory->counted);
  EXPECT_THAT(read.unknown, ::testing::ElementsAre("it runs on CPUs"));

  spec::JobSpec on_cpu = job;
  on_cpu.cluster.device.kind = spec::DeviceKind::kCpu;
  const Plan refused = plan_of("mine", on_cpu);
  EXPECT_FALSE(refused.step);
  EXPECT_TRUE(refused.memory->counted && refused.exchange->counted);
  ASSERT_THAT(refused.unknown, SizeIs(1));
  EXPECT_THAT(refused.unknown.front(), HasSubstr("not for CPUs"));
}

TEST(Plan, AnyOtherJsonIsRefused) {
  const base::Json whole = to_json(plan_of("p", testing::job_of("llama3-8b-h200")));
  EXPECT_FALSE(plan_from_json(base::Json::array()));
  EXPECT_FALSE(plan_from_json(nullptr));
  for (const auto& [key, value] : whole.items()) {
    base::Json wrong = whole;
    wrong[key] = base::Json::object({{"x", 1}});
    EXPECT_EQ(plan_from_json(wrong).has_value(), key.starts_with("step_") && key != "step_s")
        << key;
  }
  base::Json later = whole;
  later["added_later"] = 1;
  EXPECT_TRUE(plan_from_json(later));
}

TEST(Plan, TheVersionOfConstantsFollowsTheirValues) {
  ModelConstants other;
  EXPECT_EQ(constants_version(other), constants_version({}));
  other.memory.base_gib *= 1.0000001;
  EXPECT_NE(constants_version(other), constants_version({}));
}

}  // namespace
}  // namespace assay::plan
