// Timestamps that are set: effect_of() reports a coming change and no event.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "observe/collect/testing/effect_test.h"

namespace assay::collect::testing {
namespace {

class TimesEffect : public EffectTest {};

TEST_P(TimesEffect, OfAPath) {
  const std::string a = place.file("a");
  place.link("l", "a");
  place.directory("d");
  const Lines times = {"change times T/a"};
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_utime, a.c_str(), nullptr); }), times);
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_utimes, place.path("l").c_str(), nullptr); }), times);
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_futimesat, AT_FDCWD, a.c_str(), nullptr); }), times);
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_utimensat, AT_FDCWD, a.c_str(), nullptr, 0); }),
            times);
  EXPECT_EQ(effect_lines([&] {
              ::syscall(SYS_utimensat, AT_FDCWD, place.path("l").c_str(), nullptr,
                        AT_SYMLINK_NOFOLLOW);
            }),
            (Lines{}));
  EXPECT_EQ(effect_lines(
                [&] { ::syscall(SYS_utimensat, AT_FDCWD, place.path("d").c_str(), nullptr, 0); }),
            (Lines{}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_utimensat, AT_FDCWD, "/none", nullptr, 0); }),
            (Lines{}));
}

TEST_P(TimesEffect, OfADescriptor) {
  const int a = ::open(place.file("a").c_str(), O_RDONLY);
  const Lines times = {"change times T/a"};
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_utimensat, a, nullptr, nullptr, 0); }), times);
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_utimensat, a, "", nullptr, AT_EMPTY_PATH); }), times);
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_futimesat, a, nullptr, nullptr); }), times);
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_utimensat, 999, nullptr, nullptr, 0); }), (Lines{}));
  ::close(a);
}

INSTANTIATE_TEST_SUITE_P(BothWays, TimesEffect, ::testing::Bool(), way);

}  // namespace
}  // namespace assay::collect::testing
