#include "lineage/record/part_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace assay::lineage {
namespace {

const FilterRule kProjectRule{"project", true, ""};
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Part good_part() {
  Part part;
  part.rank = 3;
  part.host = "n4";
  part.wait_status = 256;
  part.gpu.use = {{"kernels", 10, kMost}};
  part.gpu.memory = {{"GPU-1", 1024}};
  part.gpu.collectives = {{"00ff", 4, "all-gather", "bf16", 12, 4096}};
  part.gpu.shares = {{"GPU-1", 5, 1000, "high", true, 6, 7}, {"", {}, {}, "low", false, 0, 0}};
  part.input({"/p/\xff\n", std::nullopt, kMost}, kProjectRule);
  part.output({"/p/moved", {}, 20, store::OutputStatus::kRenamed, "/p/from", {}}, kProjectRule);
  part.left_out({"/p/tmp", true, true}, {"gone", false, ""});
  part.process({12, 1, {"train"}, "/bin/train", -5, 6, 9});
  return part;
}

// Each in one line that says what it is about; decode() puts the file's name before it.
TEST(PartCheck, SaysWhatNoRankCanHave) {
  EXPECT_EQ(problem_in(good_part()), std::nullopt);
  EXPECT_EQ(problem_in(Part()), std::nullopt);
  struct Case {
    const char* problem;
    std::function<void(Part&)> spoil;
  };
  const std::vector<Case> cases = {
      {"rank", [](Part& p) { p.rank = -1; }},
      {"node", [](Part& p) { p.host = "n4\nn5"; }},
      {"node", [](Part& p) { p.host = std::string(300, 'n'); }},
      {"run", [](Part& p) { p.run = "a b"; }},
      {"run", [](Part& p) { p.recorder = std::string(100, 'a'); }},
      {"start", [](Part& p) { p.started_unix_ns = -1; }},
      {"start", [](Part& p) { p.started_unix_ns = kMost; }},
      {"exit status", [](Part& p) { p.wait_status = 0x7f; }},
      {"lost events", [](Part& p) { p.dropped = -1; }},
      {"processor time", [](Part& p) { p.usage.user_s = std::nan(""); }},
      {"processor time", [](Part& p) { p.usage.system_s = -1; }},
      {"processor time", [](Part& p) { p.usage.system_s = HUGE_VAL; }},
      {"memory", [](Part& p) { p.usage.max_rss_bytes = -1; }},
      {"bytes read", [](Part& p) { p.usage.read_bytes = kLeast; }},
      {"bytes written", [](Part& p) { p.usage.written_bytes = -1; }},
      {"no name", [](Part& p) { p.gpu.use[0].quantity = ""; }},
      {"calls", [](Part& p) { p.gpu.use[0].calls = -1; }},
      {"GPU work", [](Part& p) { p.gpu.use[0].amount = -1; }},
      {"GPU memory", [](Part& p) { p.gpu.memory[0].peak_bytes = -1; }},
      {"communicator", [](Part& p) { p.gpu.collectives[0].ranks = -1; }},
      {"collective", [](Part& p) { p.gpu.collectives[0].calls = -1; }},
      {"exchanged", [](Part& p) { p.gpu.collectives[0].bytes = -1; }},
      {"limit of GPU memory", [](Part& p) { p.gpu.shares[0].memory_bytes = 0; }},
      {"share of a GPU", [](Part& p) { p.gpu.shares[0].share_thousandths = 1001; }},
      {"time on a GPU", [](Part& p) { p.gpu.shares[0].busy_ns = -1; }},
      {"waiting for a GPU", [](Part& p) { p.gpu.shares[1].waited_ns = -1; }},
      {"an input has no absolute path", [](Part& p) { p.inputs[0].what.path = "in"; }},
      {"an input has no absolute path",
       [](Part& p) { p.inputs[0].what.path = std::string("/p\0x", 4); }},
      {"size of an input", [](Part& p) { p.inputs[0].what.size = -1; }},
      {"an output has no absolute path", [](Part& p) { p.outputs[0].what.path = ""; }},
      {"former name", [](Part& p) { p.outputs[0].what.from = "from"; }},
      {"size of an output", [](Part& p) { p.outputs[0].what.size = -1; }},
      {"left out has no", [](Part& p) { p.files_left_out[0].what.path = ""; }},
      {"rule", [](Part& p) { p.files_left_out[0].rule.name = ""; }},
      {"id of a process", [](Part& p) { p.processes[0].pid = -1; }},
      {"parent", [](Part& p) { p.processes[0].parent = -1; }},
      {"start of a process", [](Part& p) { p.processes[0].started_ns = kLeast; }},
      {"end of a process", [](Part& p) { p.processes[0].ended_ns = kMost; }},
      {"exit status", [](Part& p) { p.processes[0].wait_status = 0xffff; }},
  };
  for (const Case& one : cases) {
    Part part = good_part();
    one.spoil(part);
    const auto problem = problem_in(part);
    ASSERT_TRUE(problem) << one.problem;
    EXPECT_THAT(*problem, ::testing::HasSubstr(one.problem));
    const auto decoded = decode(encode(part), "/out/rank-3.part");
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().line(), "/out/rank-3.part: " + *problem);
  }
}

}  // namespace
}  // namespace assay::lineage
