#include "train/disk_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::train {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(DiskRoom, OneMoreThanAreKeptIsThereAtATime) {
  EXPECT_EQ((CheckpointsToCome{.count = 10, .keep = 2}).at_once(), 3);
  EXPECT_EQ((CheckpointsToCome{.count = 1, .keep = 2}).at_once(), 1);
  EXPECT_EQ((CheckpointsToCome{.count = 10, .keep = 2, .existing = 2}).at_once(), 1);
  EXPECT_EQ((CheckpointsToCome{.count = 10, .keep = 2, .existing = 7}).at_once(), 1);
  EXPECT_EQ((CheckpointsToCome{.count = 10, .keep = 0, .existing = 7}).at_once(), 10);
}

TEST(DiskRoom, WhatWillNotFitIsRefused) {
  const CheckpointsToCome coming{.bytes = kGiB, .count = 10, .keep = 2};
  const auto fits = check_room("out", base::Bytes(3 * kGiB), coming);
  ASSERT_TRUE(fits.has_value());
  EXPECT_EQ(*fits, "");
  const auto refused = check_room("out", base::Bytes(3 * kGiB - 1), coming);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ExitCode::kUnfit);
  EXPECT_THAT(refused.error().line(), HasSubstr("needs room for 3 checkpoints of 1.00 GiB"));
}

TEST(DiskRoom, WhereAllAreKeptPeopleMayMoveSomeAway) {
  CheckpointsToCome coming{.bytes = kGiB, .count = 10, .keep = 0};
  const auto warned = check_room("out", base::Bytes(4 * kGiB), coming);
  ASSERT_TRUE(warned.has_value());
  EXPECT_THAT(*warned, HasSubstr("has room for 4 of the 10 checkpoints"));
  EXPECT_FALSE(check_room("out", base::Bytes(kGiB - 1), coming).has_value());
}

TEST(DiskRoom, FreeSpaceIsKnown) {
  const auto free = free_space("/");
  ASSERT_TRUE(free.has_value());
  EXPECT_GT(free->count(), 0);
  EXPECT_FALSE(free_space("/no such folder").has_value());
}

}  // namespace
}  // namespace assay::train
