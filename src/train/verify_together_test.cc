#include "train/verify_together.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <thread>

#include "base/testing/temp_dir.h"
#include "comm/local.h"
#include "train/checkpoint/write.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class VerifyTogether : public ::testing::TestWithParam<int> {
 protected:
  // A checkpoint of several files.
  fs::path write() {
    checkpoint::Snapshot snapshot;
    snapshot.state.step = 3;
    bytes_.assign(1 << 16, std::byte{7});
    for (int i = 0; i < 5; ++i) {
      checkpoint::Tensor tensor;
      tensor.info = {fmt::format("t{}", i), checkpoint::TensorDtype::kF32, {1 << 14}};
      tensor.data = bytes_;
      snapshot.parts.resize(1);
      snapshot.parts[0].name = "weights";
      snapshot.parts[0].tensors.push_back(tensor);
    }
    const auto written =
        checkpoint::write_checkpoint(dir_.path(), snapshot, {.shard_bytes = 1 << 16});
    EXPECT_TRUE(written) << written.error().line();
    return dir_.path() / "step-3";
  }
  std::vector<base::Result<Verified>> on_all(
      const std::function<base::Result<Verified>(comm::Communicator&)>& call) {
    auto ranks = comm::make_local(GetParam());
    std::vector<base::Result<Verified>> results(ranks.size(), Verified{});
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      threads.emplace_back([&, i] { results[i] = call(*ranks[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  base::testing::TempDir dir_;
  std::vector<std::byte> bytes_;
};

INSTANTIATE_TEST_SUITE_P(Ranks, VerifyTogether, ::testing::Values(1, 2, 3, 8));

TEST_P(VerifyTogether, AWholeCheckpointIsOpenOnEveryRank) {
  const fs::path folder = write();
  for (const auto& result :
       on_all([&](auto& ranks) { return verify_together(folder, ranks, 1); })) {
    ASSERT_TRUE(result) << result.error().line();
    EXPECT_TRUE(result->whole);
    EXPECT_EQ(result->damage, "");
  }
}

TEST_P(VerifyTogether, WhicheverFileIsDamagedAllRanksKnow) {
  const fs::path folder = write();
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1, std::ios::end);
    const char before = static_cast<char>(file.peek());
    file.seekp(-1, std::ios::end);
    file.put(static_cast<char>(before ^ 1)).flush();
    for (const auto& result :
         on_all([&](auto& ranks) { return verify_together(folder, ranks, 1); })) {
      ASSERT_TRUE(result) << result.error().line();
      EXPECT_FALSE(result->whole);
      EXPECT_THAT(result->damage, HasSubstr(entry.path().filename().string()));
    }
    file.seekp(-1, std::ios::end);
    file.put(before).flush();
  }
}

// If one rank does not see the folder, falling back to older checkpoints would not help.
TEST_P(VerifyTogether, AFolderThatARankDoesNotSeeIsAnErrorOfThatRank) {
  for (const auto& result :
       on_all([&](auto& ranks) { return verify_together(dir_.path() / "step-9", ranks, 1); })) {
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().line(), HasSubstr("step-9: no such checkpoint"));
    EXPECT_EQ(result.error().where, "rank 0");
  }
}

TEST(VerifyShare, EveryFileIsInExactlyOneShare) {
  // verify() with every share reads as many bytes as without: nothing twice, nothing left out.
  base::testing::TempDir dir;
  checkpoint::Snapshot snapshot;
  snapshot.state.step = 1;
  std::vector<std::vector<std::byte>> contents;
  snapshot.parts.resize(1);
  snapshot.parts[0].name = "weights";
  for (int i = 0; i < 7; ++i) contents.emplace_back(static_cast<std::size_t>(4 << i));
  for (int i = 0; i < 7; ++i) {
    checkpoint::Tensor tensor;
    tensor.info = {fmt::format("t{}", i), checkpoint::TensorDtype::kF32, {1 << i}};
    tensor.data = contents[static_cast<std::size_t>(i)];
    snapshot.parts[0].tensors.push_back(tensor);
  }
  ASSERT_TRUE(checkpoint::write_checkpoint(dir.path(), snapshot, {.shard_bytes = 64}));
  const auto opened = checkpoint::Checkpoint::open(dir.path() / "step-1");
  ASSERT_TRUE(opened);
  std::atomic<std::int64_t> all = 0;
  ASSERT_TRUE(opened->verify({.threads = 1, .progress = [&](std::int64_t n) { all += n; }}));
  for (const std::size_t of : {std::size_t{2}, std::size_t{3}, std::size_t{64}}) {
    std::atomic<std::int64_t> sum = 0;
    for (std::size_t i = 0; i < of; ++i) {
      ASSERT_TRUE(opened->verify(
          {.threads = 1, .progress = [&](std::int64_t n) { sum += n; }, .share = {i, of}}));
    }
    EXPECT_EQ(sum, all);
  }
}

}  // namespace
}  // namespace assay::train
