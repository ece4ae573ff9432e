// Processes with another root or mount namespace than the collector, and processes that cannot be
// inspected.
#include "observe/collect/call/remote_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "observe/collect/testing/probe.h"

namespace assay::collect::testing {
namespace {

using Lines = std::vector<std::string>;

class RemotePath : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root: cannot change the root or mount";
    RemoteView::views_may_differ();
  }
  void TearDown() override { RemoteView::views_may_differ(false); }

  Lines opened(const std::string& path, int flags, const std::function<void()>& prepare) {
    Lines lines = place.effect_lines(
        [&] { ::syscall(SYS_openat, AT_FDCWD, path.c_str(), flags, 0644); }, prepare);
    if (place.seen.effect) {
      EXPECT_EQ(place.seen.effect->will_succeed, place.seen.result >= 0) << place.seen.result;
    }
    return lines;
  }

  ProbeFolder place;
};

TEST_F(RemotePath, AfterChroot) {
  place.directory("r/d");
  place.file("r/d/a");
  place.file("a");
  place.link("r/absolute", "/d/a");
  place.link("r/upwards", "../../../../d/a");
  place.link("r/dangling", "/d/new");
  const auto enter = [&] {
    ASSERT_EQ(::chroot(place.path("r").c_str()), 0);
    ASSERT_EQ(::chdir("/d"), 0);
  };
  EXPECT_EQ(opened("/d/a", O_RDONLY, enter), (Lines{"read T/r/d/a"}));
  EXPECT_EQ(opened("a", O_RDONLY, enter), (Lines{"read T/r/d/a"}));
  EXPECT_EQ(opened("/absolute", O_RDONLY, enter), (Lines{"read T/r/d/a"}));
  EXPECT_EQ(opened("/upwards", O_RDONLY, enter), (Lines{"read T/r/d/a"}));
  EXPECT_EQ(opened("../../../d/a", O_RDONLY, enter), (Lines{"read T/r/d/a"}));
  EXPECT_EQ(opened(place.path("a"), O_RDONLY, enter), (Lines{}));
  EXPECT_EQ(opened("/dangling", O_WRONLY | O_CREAT, enter), (Lines{"create T/r/d/new no-stamp"}));
}

TEST_F(RemotePath, ACallThatChangesTheRootIsNoticed) {
  RemoteView::views_may_differ(false);
  place.directory("r");
  place.file("r/a");
  const auto enter = [&] { ASSERT_EQ(::chroot(place.path("r").c_str()), 0); };
  place.effect_lines([] { ::syscall(SYS_openat, AT_FDCWD, "/a", O_RDONLY); }, enter);
  EXPECT_FALSE(place.seen.effect->will_succeed);  // the chroot was not observed
  probe(enter);
  EXPECT_EQ(opened("/a", O_RDONLY, enter), (Lines{"read T/r/a"}));
}

TEST_F(RemotePath, InAnotherMountNamespace) {
  place.directory("m");
  place.file("m/a", "ours");
  const auto enter = [&] {
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount("none", place.path("m").c_str(), "tmpfs", 0, nullptr), 0);
    place.file("m/a", "theirs, and longer");
  };
  const Lines lines = opened(place.path("m/a"), O_RDONLY, enter);
  ASSERT_EQ(lines.size(), 1U);
  ASSERT_TRUE(place.seen.effect);
  EXPECT_EQ(place.seen.effect->events[0].stamp.size, 18);
  struct stat ours {};
  ASSERT_EQ(::stat(place.path("m/a").c_str(), &ours), 0);
  EXPECT_NE(place.seen.effect->events[0].stamp.device, ours.st_dev);
}

TEST(UnreadableProcess, IsReported) {
  if (::geteuid() == 0) {
    // Root may read every process: the collector must run as user nobody, in a child.
    EXPECT_EXIT(
        {
          if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
          ::prctl(PR_SET_DUMPABLE, 1);
          const ProbeResult seen =
              probe([] { ::syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY); },
                    [] { ::prctl(PR_SET_DUMPABLE, 0); });
          const bool said = seen.effect && seen.effect->events.size() == 1 &&
                            seen.effect->events[0].op == wire::RecordOp::kMissed &&
                            seen.effect->events[0].path == "unreadable";
          ::_exit(said ? 0 : 2);
        },
        ::testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace assay::collect::testing
