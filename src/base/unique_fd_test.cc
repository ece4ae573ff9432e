// Who closes a descriptor, and when.
#include "base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

namespace assay::base {
namespace {

int opened() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

TEST(UniqueFd, ClosesWhatItOwns) {
  const int fd = opened();
  {
    const UniqueFd owner(fd);
    EXPECT_TRUE(owner.valid());
    EXPECT_EQ(owner.get(), fd);
    EXPECT_TRUE(is_open(fd));
  }
  EXPECT_FALSE(is_open(fd));
}

TEST(UniqueFd, OwnsNothingByDefault) {
  const UniqueFd owner;
  EXPECT_FALSE(owner.valid());
  EXPECT_EQ(owner.get(), -1);
}

TEST(UniqueFd, MovesOwnership) {
  const int fd = opened();
  UniqueFd first(fd);
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first.valid());
  EXPECT_EQ(second.get(), fd);

  const int other = opened();
  UniqueFd third(other);
  third = std::move(second);
  EXPECT_FALSE(is_open(other));
  EXPECT_TRUE(is_open(fd));
  EXPECT_EQ(third.get(), fd);
}

TEST(UniqueFd, AssigningItselfKeepsIt) {
  UniqueFd owner(opened());
  UniqueFd& alias = owner;
  owner = std::move(alias);
  EXPECT_TRUE(owner.valid());
  EXPECT_TRUE(is_open(owner.get()));
}

TEST(UniqueFd, ReleaseAndReset) {
  UniqueFd owner(opened());
  const int fd = owner.release();
  EXPECT_FALSE(owner.valid());
  EXPECT_TRUE(is_open(fd));
  owner.reset(fd);
  owner.reset();
  EXPECT_FALSE(is_open(fd));
}

}  // namespace
}  // namespace assay::base
