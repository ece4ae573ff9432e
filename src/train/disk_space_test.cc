#include "train/disk_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::train {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(DiskRoom, OneMoreThanAreKeptIsThereAtATime) {
  EXPECT_EQ((FutureCheckpoints{.count = 10, .keep = 2}).at_once(), 3);
  EXPECT_EQ((FutureCheckpoints{.count = 1, .keep = 2}).at_once(), 1);
  EXPECT_EQ((FutureCheckpoints{.count = 10, .keep = 2, .existing = 2}).at_once(), 1);
  EXPECT_EQ((FutureCheckpoints{.count = 10, .keep = 2, .existing = 7}).at_once(), 1);
  EXPECT_EQ((FutureCheckpoints{.count = 10, .keep = 0, .existing = 7}).at_once(), 10);
}

TEST(DiskRoom, WhatWillNotFitIsRefused) {
  const FutureCheckpoints future{.bytes = kGiB, .count = 10, .keep = 2};
  const auto fits = check_disk_space("out", base::Bytes(3 * kGiB), future);
  ASSERT_TRUE(fits.has_value());
  EXPECT_EQ(*fits, "");
  const auto refused = check_disk_space("out", base::Bytes(3 * kGiB - 1), future);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ExitCode::kUnfit);
  EXPECT_THAT(refused.error().line(), HasSubstr("needs room for 3 checkpoints of 1.00 GiB"));
}

TEST(DiskRoom, WhereAllAreKeptPeopleMayMoveSomeAway) {
  FutureCheckpoints future{.bytes = kGiB, .count = 10, .keep = 0};
  const auto warned = check_disk_space("out", base::Bytes(4 * kGiB), future);
  ASSERT_TRUE(warned.has_value());
  EXPECT_THAT(*warned, HasSubstr("has room for 4 of the 10 checkpoints"));
  EXPECT_FALSE(check_disk_space("out", base::Bytes(kGiB - 1), future).has_value());
}

TEST(DiskRoom, FreeSpaceIsKnown) {
  const auto free = free_space("/");
  ASSERT_TRUE(free.has_value());
  EXPECT_GT(free->count(), 0);
  EXPECT_FALSE(free_space("/no such folder").has_value());
}

}  // namespace
}  // namespace assay::train
