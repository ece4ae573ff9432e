#include "train/checkpoint/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>

#include "base/testing/temp_dir.h"
#include "train/checkpoint/tensor.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

using testing::snapshot_of_step;
using testing::spread;

Snapshot of_floats(std::vector<float> values) {
  const auto bytes = std::as_bytes(std::span(values));
  Snapshot snapshot;
  snapshot.state.step = 1;
  snapshot.parts = {
      {"weights",
       {owned_tensor({"w", TensorDtype::kF32, {static_cast<std::int64_t>(values.size())}},
                     {bytes.begin(), bytes.end()})}}};
  return snapshot;
}

class DiffTest : public ::testing::Test {
 protected:
  Difference compare(const Snapshot& a, const Snapshot& b) {
    const base::testing::MemoryDir other;
    const auto left = Checkpoint::open(write_checkpoint(directory_.path(), a)->folder);
    const auto right =
        Checkpoint::open(testing::write_by_ranks(other.path(), spread(b, 3, 5))->folder);
    EXPECT_TRUE(left && right);
    const auto found = diff(*left, *right);
    EXPECT_TRUE(found.has_value());
    return found.value_or(Difference{});
  }

  base::testing::MemoryDir directory_;
};

TEST_F(DiffTest, EqualToTheBitWhateverTheLayout) {
  const Snapshot snapshot = snapshot_of_step(4, 100);
  const Difference found = compare(snapshot, snapshot);
  EXPECT_TRUE(found.equal());
  EXPECT_EQ(found.compared_tensors, 8);
  std::int64_t bytes = 0;
  for (const SnapshotPart& part : snapshot.parts) {
    for (const Tensor& tensor : part.tensors)
      bytes += static_cast<std::int64_t>(tensor.data.size());
  }
  EXPECT_EQ(found.compared_bytes, bytes);
}

TEST_F(DiffTest, CountsWhatDiffersAndNamesTheFirst) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto nan = [](std::uint32_t low) { return std::bit_cast<float>(0x7fc00000U | low); };
  std::vector<float> a(3'000'000, 1.0F);  // more than a chunk
  std::vector<float> b = a;
  a[5] = b[5] = nan(1);  // the same not-a-number
  EXPECT_TRUE(compare(of_floats(a), of_floats(b)).equal());
  b[2'000'000] = 1.5F;
  b[2'900'000] = -2.0F;
  Difference found = compare(of_floats(a), of_floats(b));
  ASSERT_EQ(found.tensors.size(), 1U);
  EXPECT_EQ(found.tensors[0].name, "w");
  EXPECT_EQ(found.tensors[0].differing, 2);
  EXPECT_EQ(found.tensors[0].first, 2'000'000);
  EXPECT_EQ(found.tensors[0].first_a, 1.0);
  EXPECT_EQ(found.tensors[0].first_b, 1.5);
  EXPECT_EQ(found.tensors[0].largest, 3.0);
  b[5] = nan(2);
  b[6] = -0.0F;
  a[6] = 0.0F;
  found = compare(of_floats(a), of_floats(b));
  EXPECT_EQ(found.tensors[0].differing, 4);
  EXPECT_EQ(found.tensors[0].first, 5);
  EXPECT_EQ(found.tensors[0].nans, 1);
  EXPECT_EQ(found.tensors[0].largest, 3.0);
  b[7] = kInfinity;
  EXPECT_EQ(compare(of_floats(a), of_floats(b)).tensors[0].largest, kInfinity);
}

TEST_F(DiffTest, NamesStateAndTensorsThatOnlyOneHas) {
  const Snapshot a = snapshot_of_step(4);
  Snapshot b = a;
  b.state.tokens += 1;
  b.state.data_cursor["offset"] = 5;
  b.parts[0].tensors[0].info.name = "renamed";
  b.parts[0].tensors[1].info.shape = {8, 3};
  b.parts[1].name = "momentum";
  const Difference found = compare(a, b);
  ASSERT_EQ(found.state.size(), 2U);
  EXPECT_EQ(found.state[0].key, "tokens");
  EXPECT_EQ(found.state[1].key, "data_cursor.offset");
  std::vector<std::string> list;
  for (const TensorDifference& tensor : found.tensors) {
    list.push_back(std::to_string(static_cast<int>(tensor.relation)) + " " + tensor.part + "/" +
                   tensor.name);
  }
  EXPECT_THAT(list, ::testing::UnorderedElementsAre(
                        "0 weights/embedding", "2 weights/layers.0.qkv", "1 weights/renamed",
                        "0 optimizer/first", "0 optimizer/remainders", "0 optimizer/counts",
                        "0 optimizer/position", "1 momentum/first", "1 momentum/remainders",
                        "1 momentum/counts", "1 momentum/position"));
}

TEST_F(DiffTest, OfTextsInTheStateTheLinesThatDiffer) {
  Snapshot a = snapshot_of_step(4);
  a.state.extra = {{"model", "layers = 4\ndim = 8\n"}, {"batch", {{"sequence", 8}, {"rows", 2}}}};
  Snapshot b = a;
  b.state.extra["model"] = "layers = 5\ndim = 8\n";
  b.state.extra["batch"]["rows"] = 3;
  b.state.extra["batch"]["mix"] = "more";
  const Difference found = compare(a, b);
  ASSERT_EQ(found.state.size(), 3U);
  EXPECT_EQ(found.state[0].key, "extra.model");
  EXPECT_EQ(found.state[0].a, base::Json::array({"layers = 4"}));
  EXPECT_EQ(found.state[0].b, base::Json::array({"layers = 5"}));
  EXPECT_EQ(found.state[1].key, "extra.batch.rows");
  EXPECT_EQ(found.state[2].key, "extra.batch.mix");
  EXPECT_TRUE(found.state[2].a.is_null());
}

// Hashes alone tell that these are equal; whether they are the files' is still found out.
TEST_F(DiffTest, FilesWithTheSameHashesAreNotReadTwice) {
  const Snapshot snapshot = snapshot_of_step(4, 100);
  const base::testing::MemoryDir other;
  const auto left = Checkpoint::open(write_checkpoint(directory_.path(), snapshot)->folder);
  const auto right = Checkpoint::open(write_checkpoint(other.path(), snapshot)->folder);
  std::int64_t progress = 0;
  const auto found =
      diff(*left, *right, {.progress = [&](std::int64_t more) { progress += more; }});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->equal());
  EXPECT_EQ(found->compared_tensors, 8);
  EXPECT_EQ(found->compared_bytes, compare(snapshot, snapshot).compared_bytes);
  EXPECT_EQ(progress, found->compared_bytes);
}

TEST_F(DiffTest, NotesDoNotCount) {
  Snapshot a = snapshot_of_step(4);
  Snapshot b = a;
  a.state.extra = {{"tuned", {{"for", 1}}}};
  b.state.extra = {{"tuned", {{"for", 2}}}};
  const auto left = Checkpoint::open(write_checkpoint(directory_.path(), a)->folder);
  const base::testing::MemoryDir other;
  const auto right = Checkpoint::open(write_checkpoint(other.path(), b)->folder);
  EXPECT_FALSE(diff(*left, *right)->equal());
  const auto found = diff(*left, *right, {.notes = {"extra.tuned"}});
  EXPECT_TRUE(found->equal());
  ASSERT_EQ(found->notes.size(), 1U);
  EXPECT_EQ(found->notes[0].key, "extra.tuned.for");
  EXPECT_FALSE(diff(*left, *right, {.notes = {"extra.tun"}})->equal());
}

TEST_F(DiffTest, DamageIsAnErrorAndNoDifference) {
  const Snapshot snapshot = snapshot_of_step(4);
  const auto written = write_checkpoint(directory_.path(), snapshot);
  const base::testing::MemoryDir other;
  const auto left = Checkpoint::open(written->folder);
  const auto right = Checkpoint::open(write_checkpoint(other.path(), snapshot)->folder);
  std::fstream file(written->folder / "weights.safetensors", std::ios::in | std::ios::out);
  file.seekp(-2, std::ios::end);
  file.put('\x55');
  file.close();
  for (const auto& found : {diff(*left, *right), diff(*right, *left)}) {
    ASSERT_FALSE(found.has_value());
    EXPECT_THAT(found.error().line(), ::testing::HasSubstr("weights.safetensors: differs from"));
  }
}

// One changed bit anywhere is found, and only there.
RC_GTEST_PROP(Diff, FindsAnyChangedBit, ()) {
  const base::testing::MemoryDir directory;
  const base::testing::MemoryDir other;
  const Snapshot a = snapshot_of_step(2, 30);
  Snapshot b = a;
  SnapshotPart& part = b.parts[*rc::gen::inRange<std::size_t>(0, 2)];
  Tensor& tensor = part.tensors[*rc::gen::inRange<std::size_t>(0, 3)];
  std::vector<std::byte> bytes(tensor.data.begin(), tensor.data.end());
  const std::size_t at = *rc::gen::inRange<std::size_t>(0, bytes.size());
  bytes[at] ^= static_cast<std::byte>(1U << *rc::gen::inRange(0U, 8U));
  tensor = owned_tensor(tensor.info, bytes);
  const auto left =
      testing::write_by_ranks(directory.path(), spread(a, *rc::gen::inRange(1, 5), 1));
  const auto right = testing::write_by_ranks(other.path(), spread(b, *rc::gen::inRange(1, 5), 2));
  const auto found = diff(*Checkpoint::open(left->folder), *Checkpoint::open(right->folder));
  RC_ASSERT(found.has_value());
  RC_ASSERT(found->state.empty());
  RC_ASSERT(found->tensors.size() == 1U);
  RC_ASSERT(found->tensors[0].part == part.name);
  RC_ASSERT(found->tensors[0].name == tensor.info.name);
  RC_ASSERT(found->tensors[0].differing == 1);
  RC_ASSERT(found->tensors[0].first ==
            static_cast<std::int64_t>(at) / dtype_bytes(tensor.info.dtype));
}

double value(TensorDtype dtype, std::uint64_t bits) {
  const auto bytes = std::as_bytes(std::span(&bits, 1));
  return element_value(dtype, bytes.first(static_cast<std::size_t>(dtype_bytes(dtype))));
}

TEST(ElementValue, OfEveryType) {
  EXPECT_EQ(value(TensorDtype::kF32, 0x3fc00000), 1.5);
  EXPECT_EQ(value(TensorDtype::kBf16, 0xc040), -3.0);
  EXPECT_EQ(value(TensorDtype::kF16, 0x3c00), 1.0);
  EXPECT_EQ(value(TensorDtype::kF16, 0xfbff), -65504.0);
  EXPECT_EQ(value(TensorDtype::kF16, 0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(value(TensorDtype::kF16, 0x7c00), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value(TensorDtype::kF16, 0x7c01)));
  EXPECT_EQ(value(TensorDtype::kF8E4m3, 0x38), 1.0);
  EXPECT_EQ(value(TensorDtype::kF8E4m3, 0x7e), 448.0);
  EXPECT_EQ(value(TensorDtype::kF8E4m3, 0x81), -std::ldexp(1.0, -9));
  EXPECT_TRUE(std::isnan(value(TensorDtype::kF8E4m3, 0x7f)));
  EXPECT_EQ(value(TensorDtype::kU16, 0xffff), 65535.0);
  EXPECT_EQ(value(TensorDtype::kI32, 0xffffffff), -1.0);
  EXPECT_EQ(value(TensorDtype::kU8, 200), 200.0);
  EXPECT_EQ(value(TensorDtype::kI64, ~0ULL), -1.0);
}

}  // namespace
}  // namespace assay::checkpoint
