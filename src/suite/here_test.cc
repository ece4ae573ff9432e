// What a step misses on a machine is said in words that name both.
#include "suite/here.h"

#include <gtest/gtest.h>

namespace assay::suite {
namespace {

constexpr base::Bytes kGib(std::int64_t{1} << 30);

Here machine_with(int gpus, int nvlinks) {
  Here here;
  here.path = "/nowhere:/bin:/usr/bin";
  here.tracer_trouble = [](const std::string& tracer) -> std::optional<std::string> {
    if (tracer == "preload") return std::nullopt;
    return "the kernel refuses it";
  };
  here.works = [](const std::string& command) { return command == "true"; };
  here.machine.gpu_source = gpus > 0 ? machine::GpuSource::kNvml : machine::GpuSource::kNone;
  for (int i = 0; i < gpus; ++i) {
    here.machine.gpus.push_back({.index = i, .name = "a card", .memory = kGib * 80});
    for (int j = 0; j < i; ++j)
      here.machine.gpu_links.push_back({.a = j, .b = i, .nvlinks = nvlinks});
  }
  return here;
}

TEST(MissingHere, Gpus) {
  EXPECT_EQ(missing_here({}, machine_with(0, 0)), std::nullopt);
  EXPECT_EQ(missing_here({.gpus = 2, .nvlink = true}, machine_with(0, 0)),
            "needs 2 GPUs with NVLink; this machine has none");
  EXPECT_EQ(missing_here({.gpus = 1}, machine_with(0, 0)), "needs a GPU; this machine has none");
  EXPECT_EQ(missing_here({.gpus = 8}, machine_with(2, 0)), "needs 8 GPUs; this machine has 2");
  EXPECT_EQ(missing_here({.gpus = 2, .nvlink = true}, machine_with(2, 0)),
            "needs 2 GPUs with NVLink; this machine's GPUs have none between them");
  EXPECT_EQ(missing_here({.gpus = 2, .nvlink = true}, machine_with(2, 18)), std::nullopt);
  EXPECT_EQ(missing_here({.gpus = 1, .gpu_memory = kGib * 120}, machine_with(1, 0)),
            "needs GPUs of 120 GiB; a card has 80");
  Here silent = machine_with(1, 0);
  silent.machine.gpu_source = machine::GpuSource::kPci;
  EXPECT_EQ(missing_here({.gpus = 1}, silent),
            "needs a GPU; this machine's driver does not answer");
}

TEST(MissingHere, TracersProgramsAndProbes) {
  const Here here = machine_with(0, 0);
  EXPECT_EQ(missing_here({.tracer = "preload"}, here), std::nullopt);
  EXPECT_EQ(missing_here({.tracer = "ebpf"}, here), "needs the tracer ebpf: the kernel refuses it");
  EXPECT_EQ(missing_here({.programs = {"sh"}}, here), std::nullopt);
  EXPECT_EQ(missing_here({.programs = {"sh", "no-such-program"}, .hint = "build it"}, here),
            "needs the program no-such-program, which is not here; build it");
  EXPECT_EQ(missing_here({.works = "true"}, here), std::nullopt);
  EXPECT_EQ(missing_here({.works = "false"}, here), "'false' fails here");
  EXPECT_EQ(missing_here({.works = "false", .hint = "needs a moon"}, here), "needs a moon");
}

}  // namespace
}  // namespace assay::suite
