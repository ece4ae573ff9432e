// The options of a command line, and what they are held against.
#include "share/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "share/limit_plan.h"

namespace assay::share {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::int64_t kGi = std::int64_t{1} << 30U;

TEST(LimitsTest, WhatPeopleWrite) {
  EXPECT_EQ(parse_memory_limit("20GiB"), 20U * static_cast<std::uint64_t>(kGi));
  EXPECT_EQ(parse_memory_limit("1.5GB"), 1'500'000'000U);
  EXPECT_EQ(parse_memory_limit("none"), wire::kGpuUnlimited);
  EXPECT_EQ(parse_compute_limit("30%"), 300U);
  EXPECT_EQ(parse_compute_limit("12.5%"), 125U);
  EXPECT_EQ(parse_compute_limit("0.1%"), 1U);
  EXPECT_EQ(parse_compute_limit("100%"), 1000U);
  EXPECT_EQ(parse_compute_limit("none"), wire::kGpuWholeShare);
  EXPECT_EQ(parse_priority("low"), wire::GpuPriority::kLow);
}

TEST(LimitsTest, AShareWithoutAUnitIsAPercentage) {
  EXPECT_EQ(parse_compute_limit("30"), 300U);
  EXPECT_EQ(parse_compute_limit("12.5"), 125U);
  EXPECT_EQ(parse_compute_limit("1"), 10U);
}

TEST(LimitsTest, ImpossibleOnesAreRefused) {
  for (const char* text :
       {"", "0", "0GiB", "-1GiB", "20 apples", "GiB", "20gib", "1e40GiB", "nan", "0.3B", "20GiB ",
        " 20GiB", "None", "99999999999999GiB", "20", "1.5", "21474836480", "20G"}) {
    const auto limit = parse_memory_limit(text);
    ASSERT_FALSE(limit) << text;
    EXPECT_EQ(limit.error().code, base::ExitCode::kUsage);
    EXPECT_FALSE(limit.error().hint.empty()) << text;
  }
  for (const char* text : {"", "0%", "101%", "100.1%", "-5%", "0.3", "30 %", "%", "0.05%", "30%%",
                           "1e30%", "inf%", "0x10%", "30% "}) {
    const auto share = parse_compute_limit(text);
    ASSERT_FALSE(share) << text;
    EXPECT_EQ(share.error().code, base::ExitCode::kUsage);
  }
  for (const char* text : {"", "High", "urgent"}) EXPECT_FALSE(parse_priority(text)) << text;
}

TEST(LimitsTest, ADeviceByItself) {
  const auto given = parse_device_limits("0=memory:20GiB,compute:30%,priority:high,borrow:yes");
  ASSERT_TRUE(given);
  EXPECT_EQ(given->device, "0");
  EXPECT_EQ(given->limits,
            (Limits{20U * static_cast<std::uint64_t>(kGi), 300, wire::GpuPriority::kHigh, true}));
  EXPECT_EQ(parse_device_limits("GPU-1=compute:5%")->device, "GPU-1");
  for (const char* text : {"", "0", "=memory:1GiB", "0=", "0=memory", "0=memory:", "0=memory:0",
                           "0=memory:1GiB,", "0=,", "0=memory:1GiB,memory:2GiB", "0=ram:1GiB",
                           "0=borrow:maybe", "0=memory=1GiB", "memory:1GiB"}) {
    EXPECT_FALSE(parse_device_limits(text)) << text;
  }
}

RC_GTEST_PROP(LimitsTest, AnyTextIsALimitOrAnError, (const std::string& text)) {
  if (const auto bytes = parse_memory_limit(text)) RC_ASSERT(*bytes > 0U);
  if (const auto share = parse_compute_limit(text)) RC_ASSERT(*share > 0U && *share <= 1000U);
  if (const auto device = parse_device_limits("0=" + text)) RC_ASSERT(!device->limits.empty());
}

RC_GTEST_PROP(LimitsTest, SharesAreExact, ()) {
  const auto tenths = *rc::gen::inRange(1, 1001);
  const auto text = fmt::format("{}.{}%", tenths / 10, tenths % 10);
  RC_ASSERT(parse_compute_limit(text) == static_cast<std::uint32_t>(tenths));
}

TEST(LimitsTest, OptionsCanBeGivenAgain) {
  GpuLimitOptions options{.memory = {"1GiB", "2GiB"},
                          .compute = {"30%"},
                          .devices = {"0=memory:1GiB", "1=compute:5%"},
                          .priority = {"low"},
                          .borrow = true};
  const std::vector<std::string> arguments = to_arguments(options);
  EXPECT_THAT(arguments,
              ElementsAre("--gpu-memory=2GiB", "--gpu-compute=30%", "--gpu=0=memory:1GiB",
                          "--gpu=1=compute:5%", "--gpu-borrow", "--priority=low"));
  GpuLimitOptions again;
  for (const std::string& argument : arguments)
    EXPECT_TRUE(parse_option(argument, again)) << argument;
  EXPECT_EQ(to_arguments(again), arguments);
  EXPECT_FALSE(parse_option("--keep=*.so", again));
  EXPECT_FALSE(parse_option("--gpu-memory", again));
  add_options({.memory = {"3GiB"}, .devices = {"2=memory:1GiB"}}, again);
  EXPECT_THAT(to_arguments(again),
              ElementsAre("--gpu-memory=3GiB", "--gpu-compute=30%", "--gpu=2=memory:1GiB",
                          "--gpu-borrow", "--priority=low"));
}

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() {
    // Two cards, and a third in two slices.
    for (int i = 0; i < 3; ++i) {
      here_.gpus->push_back(
          {.index = i,
           .sliced = i == 2,
           .uuid = fmt::format("GPU-{:08x}-0000-0000-0000-00000000000{}", 0xab + i, i),
           .name = "H200",
           .memory = base::Bytes(141 * kGi)});
    }
    for (int i = 0; i < 2; ++i) {
      here_.gpus->push_back(
          {.index = 2,
           .slice = i,
           .uuid = fmt::format("MIG-{:08x}-0000-0000-0000-000000000000", 0xcd + i),
           .old_id = fmt::format("MIG-GPU-000000ad/{}/0", i + 1),
           .name = "H200",
           .memory = base::Bytes(141 * kGi)});
    }
  }
  std::string error(const GpuLimitOptions& options,
                    base::ExitCode expected = base::ExitCode::kUsage) {
    const auto plan = plan_limits("run", options, here_);
    if (plan) return "none";
    EXPECT_EQ(plan.error().code, expected);
    return plan.error().line();
  }
  std::vector<std::string> visible(const char* text) {
    std::vector<std::string> names;
    for (const auto& gpu : visible_gpus(*here_.gpus, {.visible_devices = text})) {
      names.push_back(short_name(gpu));
    }
    return names;
  }
  LimitContext here_{.gpus = std::vector<machine::GpuName>{}};
};

TEST_F(PlanTest, IsWhatWasRequested) {
  const auto plan = plan_limits(
      "run", {.memory = {"20GiB"}, .devices = {"1=compute:30%"}, .priority = {"high"}}, here_);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->all.bytes, 20U * static_cast<std::uint64_t>(kGi));
  EXPECT_EQ(plan->all.priority, wire::GpuPriority::kHigh);
  ASSERT_THAT(plan->devices, SizeIs(1));
  EXPECT_EQ(plan->devices[0].uuid, wire::parse_uuid((*here_.gpus)[1].uuid));
  EXPECT_EQ(plan->devices[0].limits, (Limits{.thousandths = 300}));
  EXPECT_EQ(plan->devices[0].total, base::Bytes(141 * kGi));
  EXPECT_TRUE(plan_limits("run", {}, {.gpus = std::nullopt})->empty());
}

TEST_F(PlanTest, VisibleDevicesAreCudas) {
  EXPECT_THAT(visible("1,0"), ElementsAre("1", "0"));
  EXPECT_THAT(visible("GPU-000000ab"), ElementsAre("0"));
  EXPECT_THAT(visible(" 1 , GPU-000000ab-0000-0000-0000-000000000000"), ElementsAre("1", "0"));
  EXPECT_THAT(visible("MIG-000000ce"), ElementsAre("2.1"));
  EXPECT_THAT(visible("MIG-GPU-000000ad/1/0"), ElementsAre("2.0"));
  EXPECT_THAT(visible("2"), ElementsAre("2.0"));    // slices stand where their card would
  EXPECT_THAT(visible("1,9,0"), ElementsAre("1"));  // the list ends where it is wrong
  EXPECT_THAT(visible("0,-1,1"), ElementsAre("0"));
  EXPECT_THAT(visible("GPU-000000ad"), SizeIs(0));  // the card has its slices only
  EXPECT_THAT(visible("GPU-"), SizeIs(0));
  EXPECT_THAT(visible("GPU-000000a"), SizeIs(0));  // of two
  EXPECT_THAT(visible(""), SizeIs(0));
  EXPECT_THAT(visible("0,0"), SizeIs(0));
}

TEST_F(PlanTest, ADeviceIsNamedAfterWhatIsVisible) {
  here_.cuda.visible_devices = "1,MIG-000000cd";
  const auto plan =
      plan_limits("run", {.devices = {"0=memory:1GiB", "mig-000000CD=memory:2GiB"}}, here_);
  ASSERT_TRUE(plan) << plan.error().line();
  EXPECT_EQ(plan->devices[0].uuid, wire::parse_uuid((*here_.gpus)[1].uuid));
  EXPECT_EQ(plan->devices[1].uuid, wire::parse_uuid((*here_.gpus)[3].uuid));
  EXPECT_THAT(error({.devices = {"2=memory:1GiB"}}),
              AllOf(HasSubstr("run --gpu: there is no GPU 2"), HasSubstr("will see 2, 0 to 1")));
  EXPECT_THAT(error({.devices = {"GPU-000000ab=memory:1GiB"}}), HasSubstr("there is no GPU"));
  EXPECT_THAT(error({.devices = {"1=memory:1GiB", "MIG-000000cd=compute:1%"}}),
              HasSubstr("named twice"));
  here_.cuda.visible_devices = "";
  EXPECT_THAT(error({.memory = {"1GiB"}}), HasSubstr("CUDA_VISIBLE_DEVICES hides every GPU"));
}

TEST_F(PlanTest, ALimitAboveTheCardIsRefused) {
  EXPECT_EQ(error({.memory = {"141GiB"}}), "none");
  EXPECT_THAT(error({.memory = {"142GiB"}}),
              AllOf(HasSubstr("run --gpu-memory: 142 GiB is more than GPU 0 (H200) has"),
                    HasSubstr("141 GiB")));
  EXPECT_THAT(error({.devices = {"1=memory:1TiB"}}), HasSubstr("more than GPU 1 (H200)"));
  (*here_.gpus)[1].memory = base::Bytes(80 * kGi);
  EXPECT_THAT(error({.memory = {"100GiB"}}), HasSubstr("more than GPU 1"));
  here_.cuda.device_order = "PCI_BUS_ID";
  EXPECT_EQ(error({.memory = {"100GiB"}, .devices = {"1=memory:none"}}), "none");
  (*here_.gpus)[1].memory = std::nullopt;
  EXPECT_EQ(error({.memory = {"100GiB"}}), "none");
}

// Which of unlike cards is 0 only CUDA knows.
TEST_F(PlanTest, UnlikeCardsAreNotNumberedByGuess) {
  (*here_.gpus)[1].name = "T4";
  EXPECT_THAT(error({.devices = {"0=memory:1GiB"}}), HasSubstr("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  EXPECT_EQ(error({.devices = {"GPU-000000ac=memory:1GiB"}}), "none");
  here_.cuda.device_order = "PCI_BUS_ID";
  EXPECT_EQ(error({.devices = {"0=memory:1GiB"}}), "none");
}

TEST_F(PlanTest, WithoutNvml) {
  here_ = {.gpus = std::nullopt, .why_no_gpus = "no driver library"};
  EXPECT_THAT(error({.memory = {"1GiB"}}, base::ExitCode::kUnfit),
              AllOf(HasSubstr("cannot be checked: no driver library"), HasSubstr("ASSAY_GPU=1")));
  here_.unchecked_allowed = true;
  EXPECT_EQ(error({.memory = {"1GiB"}, .compute = {"5%"}}), "none");
  EXPECT_THAT(error({.devices = {"0=memory:1GiB"}}), HasSubstr("give its whole UUID"));
  EXPECT_THAT(error({.devices = {"GPU-000000ac=memory:1GiB"}}), HasSubstr("whole UUID"));
  EXPECT_EQ(error({.devices = {"GPU-000000ac-0000-0000-0000-000000000001=memory:1GiB"}}), "none");
  here_ = {.gpus = std::vector<machine::GpuName>{}};
  EXPECT_THAT(error({.memory = {"1GiB"}}, base::ExitCode::kUnfit),
              HasSubstr("there is no GPU to limit"));
}

TEST_F(PlanTest, ErrorsNameTheOption) {
  EXPECT_THAT(error({.memory = {"0"}}), HasSubstr("run --gpu-memory: "));
  EXPECT_THAT(error({.memory = {"1GiB", ""}}), HasSubstr("run --gpu-memory: "));
  EXPECT_THAT(error({.compute = {"101%"}}), HasSubstr("run --gpu-compute: '101%' is more than"));
  EXPECT_THAT(error({.priority = {"urgent"}}), HasSubstr("run --priority: "));
  EXPECT_THAT(error({.devices = {"0=compute:0%"}}), HasSubstr("run --gpu: "));
}

}  // namespace
}  // namespace assay::share
