#include "train/host_memory.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::train {
namespace {

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30U;

TEST(HostMemory, MustHaveRoomForTheSnapshotsOfAllRanksOfAMachine) {
  EXPECT_TRUE(check_snapshots_fit(8 * kGibibyte, 1, 9 * kGibibyte).has_value());
  EXPECT_TRUE(check_snapshots_fit(2 * kGibibyte, 4, 9 * kGibibyte).has_value());
  EXPECT_TRUE(check_snapshots_fit(0, 4, 0).has_value());
  const auto alone = check_snapshots_fit(8 * kGibibyte + 1, 1, 9 * kGibibyte);
  ASSERT_FALSE(alone.has_value());
  EXPECT_EQ(alone.error().code, base::ExitCode::kUnfit);
  // Each of them would fit.
  const auto together = check_snapshots_fit(8 * kGibibyte, 8, 40 * kGibibyte);
  ASSERT_FALSE(together.has_value());
  EXPECT_EQ(together.error().line(),
            "host memory: a checkpoint needs 64.0 GiB for the 8 ranks of this machine, but 40.0 "
            "GiB are available; train a smaller model, or on a host with more memory");
}

}  // namespace
}  // namespace assay::train
