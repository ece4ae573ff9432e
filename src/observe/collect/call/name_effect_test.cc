// Names removed, changed and added: effect_of() compared with what the kernel did.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "observe/collect/testing/effect_test.h"

namespace assay::collect::testing {
namespace {

class NameEffect : public EffectTest {
 protected:
  Lines unlinked(const std::string& name) {
    return effect_lines([&] { ::syscall(SYS_unlink, place.path(name).c_str()); });
  }
  Lines renamed(const std::string& from, const std::string& to, unsigned flags = 0) {
    return effect_lines([&] {
      ::syscall(SYS_renameat2, AT_FDCWD, place.path(from).c_str(), AT_FDCWD, place.path(to).c_str(),
                flags);
    });
  }
  Lines linked(const std::string& from, const std::string& to, int flags = 0) {
    return effect_lines([&] {
      ::syscall(SYS_linkat, AT_FDCWD, place.path(from).c_str(), AT_FDCWD, place.path(to).c_str(),
                flags);
    });
  }
};

TEST_P(NameEffect, Unlink) {
  place.directory("d");
  place.file("d/a");
  place.file("b");
  place.link("to-d", "d");
  place.link("to-b", "b");
  EXPECT_EQ(unlinked("to-d/a"), (Lines{"change name T/d/a", "delete T/d/a"}));
  EXPECT_EQ(unlinked("to-b"), (Lines{"relink T/to-b no-stamp"}));
  EXPECT_EQ(unlinked("d"), (Lines{}));
  EXPECT_EQ(unlinked("none"), (Lines{}));
  EXPECT_EQ(unlinked("b/"), (Lines{}));
  EXPECT_EQ(unlinked("d/.."), (Lines{}));
  EXPECT_EQ(effect_lines(
                [&] { ::syscall(SYS_unlinkat, AT_FDCWD, place.path("d").c_str(), AT_REMOVEDIR); }),
            (Lines{}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_unlinkat, AT_FDCWD, "b", 0); },
                         [&] { ::chdir(place.path().c_str()); }),
            (Lines{"change name T/b", "delete T/b"}));
}

TEST_P(NameEffect, Rename) {
  place.directory("d");
  place.file("a", "1");
  place.file("b", "22");
  EXPECT_EQ(renamed("a", "c"), (Lines{"change name T/a", "rename T/a T/c"}));
  EXPECT_EQ(place.seen.effect->events[0].stamp.size, 1);
  EXPECT_EQ(renamed("c", "b"), (Lines{"change name T/b", "change name T/c", "rename T/c T/b"}));
  EXPECT_EQ(place.seen.effect->changes[0].stamp.size, 2);
  EXPECT_EQ(renamed("b", "none/b"), (Lines{}));
  EXPECT_EQ(renamed("none", "b"), (Lines{}));
  EXPECT_EQ(renamed("b", "b"), (Lines{}));
  EXPECT_EQ(renamed("b", "d"), (Lines{"change name T/b", "rename T/b T/d", "fails"}));
  EXPECT_EQ(renamed("b", "c/"), (Lines{"change name T/b", "rename T/b T/c", "fails"}));
  EXPECT_EQ(renamed("b", "d/b"), (Lines{"change name T/b", "rename T/b T/d/b"}));
  const int d = ::open(place.path("d").c_str(), O_PATH | O_DIRECTORY);
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_renameat, d, "b", d, "../x"); }),
            (Lines{"change name T/d/b", "rename T/d/b T/x"}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_rename, place.path("x").c_str(), "y"); },
                         [&] { ::fchdir(d); }),
            (Lines{"change name T/x", "rename T/x T/d/y"}));
  ::close(d);
}

TEST_P(NameEffect, RenameWithFlags) {
  place.file("a");
  place.file("b");
  place.directory("d");
  EXPECT_EQ(renamed("a", "b", RENAME_NOREPLACE),
            (Lines{"change name T/b", "change name T/a", "rename T/a T/b", "fails"}));
  EXPECT_EQ(renamed("a", "c", RENAME_NOREPLACE), (Lines{"change name T/a", "rename T/a T/c"}));
  EXPECT_EQ(renamed("c", "b", RENAME_EXCHANGE),
            (Lines{"change name T/b", "change name T/c", "rename T/c T/b exchange"}));
  EXPECT_EQ(renamed("c", "none", RENAME_EXCHANGE),
            (Lines{"change name T/c", "rename T/c T/none exchange", "fails"}));
  EXPECT_EQ(renamed("d", "b", RENAME_EXCHANGE),
            (Lines{"change name T/b", "rename T/d T/b exchange"}));
}

TEST_P(NameEffect, RenameOfDirectories) {
  place.directory("d/e");
  place.file("d/a");
  place.directory("empty");
  place.directory("full/x");
  place.file("f");
  EXPECT_EQ(renamed("d", "d/e/x"), (Lines{"rename T/d T/d/e/x", "fails"}));
  EXPECT_EQ(renamed("d", "full"), (Lines{"rename T/d T/full", "fails"}));
  EXPECT_EQ(renamed("d", "f"), (Lines{"change name T/f", "rename T/d T/f", "fails"}));
  EXPECT_EQ(renamed("d/", "empty/"), (Lines{"rename T/d T/empty"}));
  EXPECT_EQ(renamed("empty", "new"), (Lines{"rename T/empty T/new"}));
}

TEST_P(NameEffect, RenameOfLinksAndSecondNames) {
  place.file("a");
  std::filesystem::create_hard_link(place.path("a"), place.path("same"));
  place.link("l", "a");
  place.link("m", "a");
  EXPECT_EQ(renamed("a", "same"), (Lines{}));
  EXPECT_EQ(renamed("l", "new"), (Lines{"relink T/new no-stamp"}));
  EXPECT_EQ(renamed("new", "a"), (Lines{"change name T/a", "delete T/a", "relink T/a no-stamp"}));
  EXPECT_EQ(renamed("same", "m"),
            (Lines{"change name T/same", "rename T/same T/m", "relink T/m no-stamp"}));
  place.link("n", "d");
  EXPECT_EQ(linked("n", "o"), (Lines{"relink T/o no-stamp"}));
  EXPECT_EQ(renamed("m", "o", RENAME_EXCHANGE),
            (Lines{"change name T/m", "rename T/m T/o exchange", "relink T/o no-stamp"}));
}

TEST_P(NameEffect, Symlink) {
  place.directory("d");
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_symlink, "d", place.path("l").c_str()); }),
            (Lines{"relink T/l no-stamp"}));
  const int d = ::open(place.path("d").c_str(), O_PATH | O_DIRECTORY);
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_symlinkat, "x", d, "m"); }),
            (Lines{"relink T/d/m no-stamp"}));
  ::close(d);
}

TEST_P(NameEffect, RenameAcrossMounts) {
  place.file("a");
  const std::string there = "/dev/shm/assay-test-" + std::to_string(::getpid());
  struct stat here {};
  struct stat shm {};
  ASSERT_EQ(::stat(place.path().c_str(), &here), 0);
  if (::stat("/dev/shm", &shm) != 0 || here.st_dev == shm.st_dev) GTEST_SKIP() << "one mount";
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_rename, place.path("a").c_str(), there.c_str()); }),
            (Lines{"change name T/a", "rename T/a " + there, "fails"}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_link, place.path("a").c_str(), there.c_str()); }),
            (Lines{"link T/a " + there, "fails"}));
}

TEST_P(NameEffect, Link) {
  place.directory("d");
  place.file("a");
  place.link("l", "a");
  EXPECT_EQ(
      effect_lines([&] { ::syscall(SYS_link, place.path("a").c_str(), place.path("b").c_str()); }),
      (Lines{"link T/a T/b"}));
  EXPECT_EQ(linked("a", "b"), (Lines{"link T/a T/b", "fails"}));
  EXPECT_EQ(linked("d", "c"), (Lines{}));
  EXPECT_EQ(linked("l", "link"), (Lines{"relink T/link no-stamp"}));
  EXPECT_EQ(linked("l", "followed", AT_SYMLINK_FOLLOW), (Lines{"link T/a T/followed"}));
}

TEST_P(NameEffect, ANamelessFileGetsAName) {
  const auto prepare = [&] { ::dup2(::open(place.path().c_str(), O_TMPFILE | O_RDWR, 0644), 100); };
  const auto by_proc = [&](const char* source, const std::string& to) {
    return effect_lines(
        [&] { ::linkat(AT_FDCWD, source, AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW); }, prepare);
  };
  const Lines first = by_proc("/proc/self/fd/100", place.path("a"));
  struct stat made {};
  ASSERT_EQ(::stat(place.path("a").c_str(), &made), 0);
  ASSERT_TRUE(place.seen.effect);
  EXPECT_EQ(place.seen.effect->events[0].stamp.inode, made.st_ino);
  EXPECT_EQ(first, (Lines{"link T/#" + std::to_string(made.st_ino) + " (deleted) T/a"}));
  EXPECT_EQ(by_proc("/dev/fd/100", place.path("b")).size(), 1U);

  effect_lines([&] { ::linkat(100, "", AT_FDCWD, place.path("c").c_str(), AT_EMPTY_PATH); },
               prepare);
  ASSERT_TRUE(place.seen.effect);
  EXPECT_EQ(place.seen.effect->events[0].other, place.path("c"));
  // A file that was deleted stays so.
  effect_lines(
      [&] {
        ::linkat(AT_FDCWD, "/proc/self/fd/100", AT_FDCWD, place.path("z").c_str(),
                 AT_SYMLINK_FOLLOW);
      },
      [&] {
        const std::string gone = place.file("gone");
        ::dup2(::open(gone.c_str(), O_RDWR), 100);
        ::unlink(gone.c_str());
      });
  ASSERT_TRUE(place.seen.effect);
  EXPECT_FALSE(place.seen.effect->will_succeed);
}

TEST_P(NameEffect, RightsOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: there is no other user to be";
  place.directory("sticky");
  ::chmod(place.path().c_str(), 0755);
  ::chmod(place.path("sticky").c_str(), 01777);
  place.file("a");
  place.file("sticky/a");
  const auto as_nobody = [] { ::setuid(65534); };
  EXPECT_EQ(effect_lines([&] { ::unlink(place.path("a").c_str()); }, as_nobody),
            (Lines{"change name T/a", "delete T/a", "fails"}));
  EXPECT_EQ(effect_lines([&] { ::unlink(place.path("sticky/a").c_str()); }, as_nobody),
            (Lines{"change name T/sticky/a", "delete T/sticky/a", "fails"}));
}

INSTANTIATE_TEST_SUITE_P(BothWays, NameEffect, ::testing::Bool(), way);

}  // namespace
}  // namespace assay::collect::testing
