#include "lineage/record/merge_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace assay::lineage {
namespace {

using store::OutputStatus;

const FilterRule kKept{"project", true, "it is in the project"};
const FilterRule kGone{"gone", false, "the run created and removed it"};

hash::Digest content(std::uint8_t byte) {
  hash::Digest made;
  made.bytes.fill(byte);
  return made;
}

std::vector<Part> ranks(int count) {
  std::vector<Part> parts(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    Part& part = parts[static_cast<std::size_t>(rank)];
    part.rank = rank;
    part.host = "n" + std::to_string(rank + 1);
    part.started_unix_ns = 1'000'000 + rank;
    part.wait_status = 0;
  }
  return parts;
}

std::vector<std::string> input_paths(const Part& part) {
  std::vector<std::string> paths;
  for (const auto& input : part.inputs) paths.push_back(input.what.path);
  return paths;
}

const store::Output* output_at(const Part& part, const std::string& path) {
  const auto found =
      std::ranges::find_if(part.outputs, [&](const auto& o) { return o.what.path == path; });
  return found == part.outputs.end() ? nullptr : &found->what;
}

TEST(MergeParts, WhatOneRankMadeIsNoInputOfAnother) {
  auto parts = ranks(3);
  parts[0].output({"/p/built-in.tokens", content(1), 5, OutputStatus::kCreated, "", {}}, kKept);
  for (Part& part : parts) part.input({"/p/corpus", content(9), 5}, kKept);
  parts[1].input({"/p/built-in.tokens", content(1), 5}, kKept);
  parts[2].input({"/p/built-in.tokens", content(1), 5}, kKept);
  const Part whole = merge_parts(std::move(parts));
  EXPECT_EQ(input_paths(whole), std::vector<std::string>{"/p/corpus"});
  ASSERT_NE(output_at(whole, "/p/built-in.tokens"), nullptr);
  EXPECT_TRUE(whole.what_was_missed.empty());
}

// Rank 1 writes into a hidden folder that rank 0 renames: rank 0 sees a file that was there under
// another name, rank 1 one that is gone.
TEST(MergeParts, ACheckpointOfSeveralRanksWasCreated) {
  auto parts = ranks(2);
  const std::string hidden = "/p/.step-4.tmp/weights-1";
  const std::string note = "/p/.step-4.tmp/rank-1.json";
  parts[0].input({hidden, content(1), 5}, kKept);
  parts[0].input({note, content(2), 5}, kKept);
  parts[0].output({"/p/step-4/weights-1", content(1), 5, OutputStatus::kRenamed, hidden, {}},
                  kKept);
  parts[0].output({note, {}, 0, OutputStatus::kDeleted, "", {}}, kKept);
  parts[1].left_out({hidden, false, true}, kGone);
  parts[1].left_out({note, false, true}, kGone);
  const Part whole = merge_parts(std::move(parts));
  EXPECT_TRUE(whole.inputs.empty());
  ASSERT_EQ(whole.outputs.size(), 1U);
  EXPECT_EQ(whole.outputs[0].what.path, "/p/step-4/weights-1");
  EXPECT_EQ(whole.outputs[0].what.status, OutputStatus::kCreated);
  EXPECT_EQ(whole.outputs[0].what.from, "");
}

TEST(MergeParts, WhatWasThereBeforeStaysAnInput) {
  auto parts = ranks(2);
  parts[0].output({"/p/state", content(2), 5, OutputStatus::kModified, "", content(1)}, kKept);
  parts[1].input({"/p/state", content(1), 5}, kKept);  // before rank 0 wrote into it
  parts[0].output({"/p/old", {}, 0, OutputStatus::kDeleted, "", {}}, kKept);
  parts[1].input({"/p/old", content(3), 5}, kKept);
  const Part whole = merge_parts(std::move(parts));
  EXPECT_EQ(input_paths(whole), (std::vector<std::string>{"/p/old", "/p/state"}));
  EXPECT_EQ(output_at(whole, "/p/old")->status, OutputStatus::kDeleted);
}

TEST(MergeParts, WhatAnotherRankReplacedAndThisOneThenReadIsNone) {
  auto parts = ranks(2);
  parts[0].output({"/p/state", content(2), 5, OutputStatus::kModified, "", {}}, kKept);
  parts[1].input({"/p/state", content(2), 5}, kKept);
  EXPECT_TRUE(merge_parts(std::move(parts)).inputs.empty());
}

TEST(MergeParts, AFileThatDiffersBetweenNodesIsNamed) {
  auto parts = ranks(2);
  parts[0].input({"/local/corpus", content(1), 5}, kKept);
  parts[1].input({"/local/corpus", content(2), 5}, kKept);
  const Part whole = merge_parts(std::move(parts));
  ASSERT_EQ(whole.what_was_missed.size(), 1U);
  EXPECT_EQ(whole.what_was_missed[0].text,
            "/local/corpus was a different file for rank 1 on n2 than for rank 0 on n1; that of "
            "rank 0 on n1 is recorded");
}

TEST(MergeParts, WhatOtherRanksDidIsNotMissed) {
  auto parts = ranks(2);
  parts[0].left_out({"/p/.assay-secret", false, true}, kGone);
  parts[1].missed({"changed", "/p/.assay-secret was changed by another program during the run"});
  parts[1].missed({"changed", "/p/corpus was changed by another program during the run"});
  const Part whole = merge_parts(std::move(parts));
  ASSERT_EQ(whole.what_was_missed.size(), 1U);
  EXPECT_EQ(whole.what_was_missed[0].text,
            "rank 1 on n2: /p/corpus was changed by another program during the run");
}

TEST(MergeParts, SeveralRanksWriteOneFile) {
  auto parts = ranks(3);
  parts[0].output({"/p/log", content(3), 5, OutputStatus::kCreated, "", {}}, kKept);
  parts[1].output({"/p/log", content(3), 5, OutputStatus::kModified, "", content(1)}, kKept);
  parts[2].output({"/p/log", content(4), 6, OutputStatus::kModified, "", content(3)}, kKept);
  const Part whole = merge_parts(std::move(parts));
  ASSERT_EQ(whole.outputs.size(), 1U);
  EXPECT_EQ(whole.outputs[0].what.status, OutputStatus::kCreated);
  EXPECT_FALSE(whole.outputs[0].what.before);
  EXPECT_FALSE(whole.outputs[0].what.blake3) << "it is not known which one is there";
  EXPECT_EQ(whole.what_was_missed.size(), 1U);
}

TEST(MergeParts, CountersAreAdded) {
  auto parts = ranks(3);
  for (Part& part : parts) {
    part.usage = {1, 2, 100 + part.rank, 3, 4};
    part.dropped = 1;
    part.gpu.use = {{"kernels", 10, 1}};
    part.gpu.collectives = {{"ab", 3, "all-gather", "bf16", 5, 50}};
    part.gpu.memory = {{"GPU-" + std::to_string(part.rank), 7}};
  }
  parts[2].gpu.memory.push_back({"GPU-0", 70});
  const Part whole = merge_parts(std::move(parts));
  EXPECT_EQ(whole.usage.user_s, 3);
  EXPECT_EQ(whole.usage.max_rss_bytes, 102);
  EXPECT_EQ(whole.usage.written_bytes, 12);
  EXPECT_EQ(whole.dropped, 3);
  EXPECT_EQ(whole.gpu.use, (std::vector<store::GpuUse>{{"kernels", 30, 3}}));
  ASSERT_EQ(whole.gpu.collectives.size(), 1U);
  EXPECT_EQ(whole.gpu.collectives[0].bytes, 150);
  ASSERT_EQ(whole.gpu.memory.size(), 3U);
  EXPECT_EQ(whole.gpu.memory[0].peak_bytes, 70);
}

// Whatever wrote a part's file, it must not spoil the other parts.
TEST(MergeParts, ASecondPartOfARankIsRefusedByName) {
  auto parts = ranks(3);
  parts[2].rank = 1;
  parts[1].usage.read_bytes = 3;
  parts[2].usage.read_bytes = 4;
  parts[2].input({"/p/in", content(1), 5}, kKept);
  const Part whole = merge_parts(std::move(parts));
  EXPECT_EQ(whole.usage.read_bytes, 3);
  EXPECT_TRUE(whole.inputs.empty());
  ASSERT_EQ(whole.what_was_missed.size(), 1U);
  EXPECT_EQ(whole.what_was_missed[0].text,
            "what rank 1 on n3 did is not recorded: a second part claims to be this rank's");
}

TEST(MergeParts, CountersThatAreTooLargeAreRefusedByName) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::function<void(Part&, std::int64_t)>> counters = {
      [](Part& part, std::int64_t value) { part.dropped = value; },
      [](Part& part, std::int64_t value) { part.usage.read_bytes = value; },
      [](Part& part, std::int64_t value) { part.usage.written_bytes = value; },
      [](Part& part, std::int64_t value) {
        part.gpu.use = {{"kernels", value, 0}};
      },
      [](Part& part, std::int64_t value) {
        part.gpu.use = {{"kernels", 1, value}};
      },
      [](Part& part, std::int64_t value) {
        part.gpu.collectives = {{"ab", 3, "all-gather", "bf16", value, 1}};
      },
      [](Part& part, std::int64_t value) {
        part.gpu.collectives = {{"ab", 3, "all-gather", "bf16", 1, value}};
      },
      [](Part& part, std::int64_t value) {
        part.gpu.shares = {{"GPU-1", {}, {}, "high", true, value, 0}};
      },
      [](Part& part, std::int64_t value) {
        part.gpu.shares = {{"GPU-1", {}, {}, "high", true, 0, value}};
      }};
  for (const auto& set : counters) {
    auto parts = ranks(4);
    set(parts[0], 1);
    set(parts[1], 2);
    set(parts[2], kMost);
    set(parts[3], 4);
    for (Part& part : parts) part.input({"/p/in-" + part.host, content(1), 5}, kKept);
    const Part whole = merge_parts(std::move(parts));
    Part expected;
    set(expected, 7);
    EXPECT_EQ(whole.dropped, expected.dropped);
    EXPECT_EQ(whole.usage.read_bytes, expected.usage.read_bytes);
    EXPECT_EQ(whole.usage.written_bytes, expected.usage.written_bytes);
    ASSERT_EQ(whole.what_was_missed.size(), 1U);
    EXPECT_EQ(whole.what_was_missed[0].text,
              "what rank 2 on n3 did is not recorded: its counters are too large to be added to "
              "those of the others");
    EXPECT_EQ(input_paths(whole), (std::vector<std::string>{"/p/in-n1", "/p/in-n2", "/p/in-n4"}));
  }
}

TEST(MergeParts, ProcessesOfOtherNodesAreNamedAndTheirTimesShifted) {
  auto parts = ranks(2);
  parts[0].process({10, 1, {"a"}, "/a", 5, 6, 0});
  parts[1].process({10, 1, {"a"}, "/a", 5, 6, 0});
  const Part whole = merge_parts(std::move(parts));
  ASSERT_EQ(whole.processes.size(), 2U);
  EXPECT_EQ(whole.processes[0].host, "");
  EXPECT_EQ(whole.processes[1].host, "n2");
  EXPECT_EQ(whole.processes[1].started_ns, 6);
  EXPECT_EQ(whole.processes[1].ended_ns, 7);
}

}  // namespace
}  // namespace assay::lineage
