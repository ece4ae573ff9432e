#include "train/state_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/testing/temp_dir.h"
#include "train/checkpoint/write.h"

namespace assay::train {
namespace {

constexpr std::int64_t kRows = 40;
constexpr std::int64_t kCols = 25;

// A checkpoint with two parts, in which every element is a different number.
class StateReader : public ::testing::Test {
 protected:
  void SetUp() override {
    checkpoint::Snapshot snapshot;
    snapshot.state.step = 3;
    float value = 0;
    values_.reserve(20);
    for (const char* name : {"weights", "optimizer"}) {
      snapshot.parts.push_back({.name = name});
      parts_.push_back({.name = name});
      for (int i = 0; i < 6; ++i) {
        std::vector<float>& values = values_.emplace_back();
        for (std::int64_t k = 0; k < kRows * kCols; ++k) values.push_back(value++);
        StateTensor tensor{.name = fmt::format("{}-{}", name, i), .rows = kRows, .cols = kCols};
        tensor.slice = {
            .whole_rows = kRows, .whole_cols = kCols, .rows = {{0, kRows}}, .cols = {0, kCols}};
        tensor.own = {0, kRows * kCols};
        tensor.view = {static_cast<step::BufferId>(values_.size() - 1), 0, kRows, kCols, kCols};
        checkpoint::Tensor stored;
        stored.info = file_info(tensor);
        stored.data = std::as_bytes(std::span(values));
        snapshot.parts.back().tensors.push_back(stored);
        parts_.back().tensors.push_back(tensor);
      }
    }
    const auto written =
        checkpoint::write_checkpoint(dir_.path(), snapshot, {.shard_bytes = 1 << 13});
    ASSERT_TRUE(written) << written.error().line();
  }
  base::Result<void> read(const ReadAhead& ahead, const TakeState& take) {
    ASSAY_TRY(const auto from, checkpoint::Checkpoint::open(dir_.path() / "step-3"));
    return read_state(
        from, parts_,
        [](const StateTensor& tensor) { return base::usage_error(tensor.name, "is missing"); },
        take, ahead);
  }

  base::testing::TempDir dir_;
  std::vector<std::vector<float>> values_;
  std::vector<StatePart> parts_;
};

TEST_F(StateReader, GivesEveryElementOnceAndInOrder) {
  for (const ReadAhead ahead : {ReadAhead{1, 1, 1 << 20}, ReadAhead{4, 3, 292}, ReadAhead{8, 2, 4},
                                ReadAhead{2, 8, 1000}}) {
    std::vector<float> all;
    step::BufferId last = 0;
    const auto done = read(ahead, [&](const step::View& to, std::span<const std::byte> bytes) {
      EXPECT_EQ(static_cast<std::size_t>(to.elements()) * 4, bytes.size());
      EXPECT_LE(static_cast<std::int64_t>(bytes.size()), ahead.piece_bytes);
      EXPECT_GE(to.buffer, last);
      last = to.buffer;
      const std::size_t before = all.size();
      EXPECT_EQ(before, static_cast<std::size_t>(to.buffer * kRows * kCols + to.offset));
      all.resize(before + bytes.size() / 4);
      std::memcpy(all.data() + before, bytes.data(), bytes.size());
      return base::Result<void>{};
    });
    ASSERT_TRUE(done.has_value()) << done.error().line();
    ASSERT_EQ(all.size(), 12U * kRows * kCols);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<float>(i));
  }
}

// Threads that wait for a free slot end, too.
TEST_F(StateReader, EndsWithTheFirstError) {
  int taken = 0;
  const auto refused = read({4, 2, 100}, [&](const step::View&, std::span<const std::byte>) {
    return ++taken < 5 ? base::Result<void>{}
                       : base::Result<void>(base::fail(base::failed_error("device", "is full")));
  });
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(taken, 5);
  const auto take = [](const step::View&, std::span<const std::byte>) {
    return base::Result<void>{};
  };
  parts_[1].tensors[2].cols += 1;
  const auto missing = read({}, take);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().where, "optimizer-2");
}

}  // namespace
}  // namespace assay::train
