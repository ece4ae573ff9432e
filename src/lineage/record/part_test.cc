#include "lineage/record/part.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace assay::lineage {
namespace {

hash::Digest digest(std::uint8_t byte) {
  hash::Digest made;
  made.bytes.fill(byte);
  return made;
}

Part some_part() {
  Part part;
  part.rank = 3;
  part.host = "n4";
  part.recorder = "0123456789abcdef";
  part.run = "fedcba9876543210";
  part.started_unix_ns = 1'700'000'000'000'000'000;
  part.wait_status = 256;
  part.dropped = 7;
  part.usage = {1.5, 0.25, 1 << 20, 4096, 8192};
  part.gpu.use = {{"kernels", 10, 0}};
  part.gpu.memory = {{"GPU-1", 1024}};
  part.gpu.collectives = {{"00ff", 4, "all-gather", "bf16", 12, 4096}};
  part.gpu.shares = {{"GPU-1", 5, std::nullopt, "high", true, 6, 7}};
  const FilterRule kept{"project", true, "it is in the project"};
  part.input({"/p/in", digest(1), 10}, kept);
  part.input({"/p/\xff\n", std::nullopt, 0}, kept);
  part.output({"/p/out", digest(2), 20, store::OutputStatus::kModified, "", digest(3)}, kept);
  part.output({"/p/moved", digest(4), 20, store::OutputStatus::kRenamed, "/p/from", {}}, kept);
  part.left_out({"/p/tmp", true, true}, {"gone", false, "it is gone"});
  part.process({12, 1, {"train", "--x"}, "/bin/train", 5, 6, 0});
  part.process({13, 12, {}, "", 5, std::nullopt, std::nullopt});
  part.missed({"io_uring", "process 3 uses io_uring"});
  part.problems = {{"context", "git: not there"}};
  return part;
}

TEST(Part, ComesBackFromItsBytes) {
  const std::string bytes = encode(some_part());
  const auto back = decode(bytes, "file");
  ASSERT_TRUE(back) << back.error().line();
  EXPECT_EQ(encode(*back), bytes);
  EXPECT_EQ(back->rank, 3);
  EXPECT_EQ(back->recorder, "0123456789abcdef");
  EXPECT_EQ(back->run, "fedcba9876543210");
  EXPECT_EQ(back->inputs[1].what.path, "/p/\xff\n");
  EXPECT_EQ(back->inputs[0].what.blake3, digest(1));
  EXPECT_FALSE(back->inputs[1].what.blake3);
  EXPECT_EQ(back->outputs[0].what.before, digest(3));
  EXPECT_EQ(back->outputs[1].what.from, "/p/from");
  EXPECT_EQ(back->files_left_out[0].rule.name, "gone");
  EXPECT_EQ(back->processes[0].arguments.size(), 2U);
  EXPECT_EQ(back->gpu, some_part().gpu);
  EXPECT_EQ(back->usage.user_s, 1.5);
  EXPECT_EQ(back->problems[0].text, "git: not there");
}

TEST(Part, IsRefusedByNameWhenCutShortOrEmpty) {
  const std::string bytes = encode(some_part());
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{5}, std::size_t{30}, bytes.size() / 2, bytes.size() - 1}) {
    const auto back = decode(std::string_view(bytes).substr(0, length), "/run/ranks/rank-3.part");
    ASSERT_FALSE(back);
    EXPECT_NE(back.error().line().find("rank-3.part"), std::string::npos);
  }
}

RC_GTEST_PROP(Part, AnyChangedByteIsNoticed, ()) {
  std::string bytes = encode(some_part());
  const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
  const auto bit = *rc::gen::inRange(0, 8);
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
  RC_ASSERT(!decode(bytes, "file"));
}

RC_GTEST_PROP(Part, AnyBytesAreRefused, ()) {
  const auto garbage = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  RC_ASSERT(!decode(garbage, "file"));
  RC_ASSERT(!decode("assay part 2\n" + garbage, "file"));
}

}  // namespace
}  // namespace assay::lineage
