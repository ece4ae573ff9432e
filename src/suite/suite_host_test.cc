// A missing requirement is reported with what is needed and what there is.
#include "suite/suite_host.h"

#include <gtest/gtest.h>

namespace assay::suite {
namespace {

constexpr base::Bytes kGib(std::int64_t{1} << 30);

SuiteHost machine_with(int gpus, int nvlinks) {
  SuiteHost host;
  host.path = "/nowhere:/bin:/usr/bin";
  host.tracer_problem = [](const std::string& tracer) -> std::optional<std::string> {
    if (tracer == "preload") return std::nullopt;
    return "the kernel refuses it";
  };
  host.works = [](const std::string& command) { return command == "true"; };
  host.machine.gpu_source = gpus > 0 ? machine::GpuSource::kNvml : machine::GpuSource::kNone;
  for (int i = 0; i < gpus; ++i) {
    host.machine.gpus.push_back({.index = i, .name = "a card", .memory = kGib * 80});
    for (int j = 0; j < i; ++j)
      host.machine.gpu_links.push_back({.a = j, .b = i, .nvlinks = nvlinks});
  }
  return host;
}

TEST(MissingRequirement, Gpus) {
  EXPECT_EQ(missing_requirement({}, machine_with(0, 0)), std::nullopt);
  EXPECT_EQ(missing_requirement({.gpus = 2, .nvlink = true}, machine_with(0, 0)),
            "needs 2 GPUs with NVLink; this machine has none");
  EXPECT_EQ(missing_requirement({.gpus = 1}, machine_with(0, 0)),
            "needs a GPU; this machine has none");
  EXPECT_EQ(missing_requirement({.gpus = 8}, machine_with(2, 0)),
            "needs 8 GPUs; this machine has 2");
  EXPECT_EQ(missing_requirement({.gpus = 2, .nvlink = true}, machine_with(2, 0)),
            "needs 2 GPUs with NVLink; this machine's GPUs have none between them");
  EXPECT_EQ(missing_requirement({.gpus = 2, .nvlink = true}, machine_with(2, 18)), std::nullopt);
  EXPECT_EQ(missing_requirement({.gpus = 1, .gpu_memory = kGib * 120}, machine_with(1, 0)),
            "needs GPUs of 120 GiB; a card has 80");
  SuiteHost silent = machine_with(1, 0);
  silent.machine.gpu_source = machine::GpuSource::kPci;
  EXPECT_EQ(missing_requirement({.gpus = 1}, silent),
            "needs a GPU; the GPU driver does not respond");
}

TEST(MissingRequirement, TracersProgramsAndProbes) {
  const SuiteHost host = machine_with(0, 0);
  EXPECT_EQ(missing_requirement({.tracer = "preload"}, host), std::nullopt);
  EXPECT_EQ(missing_requirement({.tracer = "ebpf"}, host),
            "needs the tracer ebpf: the kernel refuses it");
  EXPECT_EQ(missing_requirement({.programs = {"sh"}}, host), std::nullopt);
  EXPECT_EQ(missing_requirement({.programs = {"sh", "no-such-program"}, .hint = "build it"}, host),
            "needs the program no-such-program, which was not found; build it");
  EXPECT_EQ(missing_requirement({.works = "true"}, host), std::nullopt);
  EXPECT_EQ(missing_requirement({.works = "false"}, host), "'false' fails on this machine");
  EXPECT_EQ(missing_requirement({.works = "false", .hint = "needs a moon"}, host), "needs a moon");
}

}  // namespace
}  // namespace assay::suite
