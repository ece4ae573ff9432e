// Opens, creations and truncations: what effect_of() says beforehand, and whether the kernel
// agrees.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "observe/collect/testing/effect_test.h"

namespace assay::collect::testing {
namespace {

class OpenEffect : public EffectTest {
 protected:
  Lines opened(
      const std::string& path, int flags, const std::function<void()>& prepare = [] {}) {
    return effect_lines([&] { ::syscall(SYS_openat, AT_FDCWD, path.c_str(), flags, 0644); },
                        prepare);
  }
  // Of T/d/a, by a name with links on the way.
  Lines read_by(const std::string& name) {
    return {GetParam() ? "read T/d/a" : "read T/d/a T/" + name};
  }
  // Of a name that is not there. After a chroot, absolute names cannot be told.
  Lines absent(const std::string& name) {
    return GetParam() ? Lines{} : Lines{"absent T/" + name + " no-stamp", "fails"};
  }
};

TEST_P(OpenEffect, OfAnExistingFile) {
  const std::string a = place.file("a");
  EXPECT_EQ(opened(a, O_RDONLY), (Lines{"read T/a"}));
  EXPECT_EQ(opened(a, O_RDWR), (Lines{"change content-readable T/a", "read T/a writable"}));
  EXPECT_EQ(opened(a, O_WRONLY), (Lines{"change content T/a", "write T/a"}));
  EXPECT_EQ(opened(a, O_WRONLY | O_APPEND), (Lines{"change content T/a", "write T/a"}));
  EXPECT_EQ(opened(a, O_WRONLY | O_CREAT), (Lines{"change content T/a", "write T/a"}));
  EXPECT_EQ(opened(a, O_RDONLY | O_CREAT), (Lines{"read T/a"}));
  EXPECT_EQ(opened(a, O_WRONLY | O_CREAT | O_EXCL),
            (Lines{"change content T/a", "write T/a", "fails"}));
  EXPECT_EQ(opened(a, O_RDONLY | O_PATH), (Lines{}));
  EXPECT_EQ(opened(a, O_RDONLY | O_DIRECTORY), (Lines{}));
  EXPECT_EQ(opened(a, O_ACCMODE), (Lines{}));
}

TEST_P(OpenEffect, OfAFileThatIsCut) {
  for (const int mode : {O_RDONLY, O_WRONLY, O_RDWR}) {
    const std::string a = place.file("a");
    EXPECT_EQ(opened(a, mode | O_TRUNC), (Lines{"change cut T/a", "truncate T/a"}));
    EXPECT_EQ(std::filesystem::file_size(a), 0U);
  }
  const std::string b = place.file("b");
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_creat, b.c_str(), 0644); }),
            (Lines{"change cut T/b", "truncate T/b"}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_truncate, b.c_str(), 3); }),
            (Lines{"change content T/b", "truncate T/b"}));
  EXPECT_EQ(std::filesystem::file_size(b), 3U);
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_truncate, b.c_str(), 0); }),
            (Lines{"change cut T/b", "truncate T/b"}));
}

TEST_P(OpenEffect, TheStampIsTheFilesState) {
  const std::string a = place.file("a", "12345");
  struct stat before {};
  ASSERT_EQ(::stat(a.c_str(), &before), 0);
  opened(a, O_WRONLY | O_TRUNC);
  ASSERT_TRUE(place.seen.effect);
  for (const wire::Stamp& stamp :
       {place.seen.effect->events.at(0).stamp, place.seen.effect->changes.at(0).stamp}) {
    EXPECT_EQ(stamp.device, before.st_dev);
    EXPECT_EQ(stamp.inode, before.st_ino);
    EXPECT_EQ(stamp.size, 5);
    EXPECT_EQ(stamp.mtime_ns, before.st_mtim.tv_sec * 1'000'000'000 + before.st_mtim.tv_nsec);
    EXPECT_EQ(stamp.ctime_ns, before.st_ctim.tv_sec * 1'000'000'000 + before.st_ctim.tv_nsec);
  }
}

TEST_P(OpenEffect, OfAFileToBeMade) {
  EXPECT_EQ(opened(place.path("a"), O_WRONLY | O_CREAT), (Lines{"create T/a no-stamp"}));
  EXPECT_EQ(opened(place.path("b"), O_RDONLY | O_CREAT | O_EXCL), (Lines{"create T/b no-stamp"}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_creat, place.path("c").c_str(), 0644); }),
            (Lines{"create T/c no-stamp"}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_mknod, place.path("d").c_str(), S_IFREG | 0644, 0); }),
            (Lines{"create T/d no-stamp"}));
  EXPECT_EQ(
      effect_lines([&] { ::syscall(SYS_mknodat, AT_FDCWD, place.path("d").c_str(), 0644, 0); }),
      (Lines{"create T/d no-stamp", "fails"}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_mknod, place.path("e").c_str(), S_IFIFO | 0644, 0); }),
            (Lines{}));
  EXPECT_EQ(opened(place.path("none/a"), O_WRONLY | O_CREAT), (Lines{}));
  EXPECT_EQ(opened(place.path("x/"), O_WRONLY | O_CREAT), (Lines{}));
  EXPECT_EQ(opened(place.path("none"), O_WRONLY), absent("none"));
  EXPECT_EQ(opened(place.path(), O_TMPFILE | O_RDWR), (Lines{"create T unnamed no-stamp"}));
}

TEST_P(OpenEffect, OfWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(place.path("fifo").c_str(), 0644), 0);
  EXPECT_EQ(opened(place.path("fifo"), O_RDONLY | O_NONBLOCK), (Lines{}));
  EXPECT_EQ(opened(place.path(), O_RDONLY), (Lines{"list T no-stamp"}));
  EXPECT_EQ(opened(place.path(), O_RDONLY | O_DIRECTORY), (Lines{"list T no-stamp"}));
  EXPECT_EQ(opened("/dev/null", O_RDWR), (Lines{}));
  EXPECT_EQ(effect_lines([] { ::syscall(SYS_openat, AT_FDCWD, nullptr, O_RDONLY); }), (Lines{}));
  EXPECT_EQ(opened("", O_RDONLY), (Lines{}));
  EXPECT_EQ(opened(std::string(5000, 'x'), O_RDONLY), (Lines{}));
  EXPECT_EQ(opened(place.path(std::string(300, 'x')), O_RDONLY | O_CREAT), (Lines{}));
}

TEST_P(OpenEffect, SymbolicLinksAreFollowedAsTheKernelDoes) {
  place.directory("d");
  place.file("d/a");
  place.link("to-d", "d");
  place.link("to-a", place.path("to-d/a"));
  place.link("dangling", "d/new");
  place.link("twice", "to-d/../dangling");
  place.link("loop", "loop");
  EXPECT_EQ(opened(place.path("to-a"), O_RDONLY), read_by("to-a"));
  EXPECT_EQ(opened(place.path("to-d/a"), O_RDONLY | O_NOFOLLOW), read_by("to-d/a"));
  EXPECT_EQ(opened(place.path("to-a"), O_RDONLY | O_NOFOLLOW), (Lines{}));
  EXPECT_EQ(opened(place.path("twice"), O_RDONLY), absent("twice"));
  EXPECT_EQ(opened(place.path("dangling"), O_WRONLY | O_CREAT | O_EXCL), (Lines{}));
  EXPECT_EQ(opened(place.path("dangling"), O_WRONLY | O_CREAT | O_NOFOLLOW), (Lines{}));
  EXPECT_EQ(opened(place.path("twice"), O_WRONLY | O_CREAT), (Lines{"create T/d/new no-stamp"}));
  EXPECT_EQ(opened(place.path("loop"), O_WRONLY | O_CREAT), (Lines{}));
  EXPECT_TRUE(std::filesystem::exists(place.path("d/new")));
}

TEST_P(OpenEffect, TheNameThatWasGivenIsKeptWhereLinksAreOnTheWay) {
  if (GetParam()) GTEST_SKIP() << "names mean other files after a chroot";
  place.directory("d");
  place.file("d/a");
  place.link("to-d", "d");
  const auto given = [&](const std::string& path, const std::string& folder) {
    opened(path, O_RDONLY, [&] { ASSERT_EQ(::chdir(place.path(folder).c_str()), 0); });
    return place.seen.effect->events.at(0).other;
  };
  EXPECT_EQ(given(place.path("to-d/a"), "d"), place.path("to-d/a"));
  EXPECT_EQ(given("../to-d/a", "d"), place.path("d/../to-d/a"));
  EXPECT_EQ(given(place.path("d/a"), "d"), "");
  EXPECT_EQ(given("a", "d"), "");
  EXPECT_EQ(given("./../d/a", "d"), "");
}

TEST_P(OpenEffect, OfAskingWhatIsThereAndWhatIsNot) {
  const std::string a = place.file("a");
  const auto there = [](const std::string& name, const std::string& flags) {
    return GetParam() ? Lines{} : Lines{"queried T/" + name + " no-stamp" + flags};
  };
  struct stat status {};
  const auto asked = [&](const std::string& path) {
    return effect_lines([&] { ::syscall(SYS_newfstatat, AT_FDCWD, path.c_str(), &status, 0); });
  };
  EXPECT_EQ(asked(a), there("a", " size"));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_access, a.c_str(), R_OK); }), there("a", ""));
  EXPECT_EQ(asked(place.path("none")), absent("none"));
  EXPECT_EQ(asked("/usr/none"), (Lines{}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_access, place.path("no").c_str(), R_OK); }),
            absent("no"));
}

TEST_P(OpenEffect, RelativePathsAreTheChildsOwn) {
  place.directory("d/e");
  place.file("a");
  place.file("d/b");
  const auto enter = [&] { ASSERT_EQ(::chdir(place.path("d/e").c_str()), 0); };
  EXPECT_EQ(opened("../b", O_RDONLY, enter), (Lines{"read T/d/b"}));
  EXPECT_EQ(opened(".././/../a", O_RDONLY, enter), (Lines{"read T/a"}));
  EXPECT_EQ(opened("new", O_WRONLY | O_CREAT, enter), (Lines{"create T/d/e/new no-stamp"}));

  const int d = ::open(place.path("d").c_str(), O_PATH | O_DIRECTORY);
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_openat, d, "b", O_RDONLY); }), (Lines{"read T/d/b"}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_openat, d, place.path("a").c_str(), O_RDONLY); }),
            (Lines{"read T/a"}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_openat, 999, "b", O_RDONLY); }), (Lines{}));
  EXPECT_EQ(effect_lines([&] { ::syscall(SYS_open, "b", O_RDONLY); }, [&] { ::fchdir(d); }),
            (Lines{"read T/d/b"}));
  ::close(d);
}

TEST_P(OpenEffect, Openat2) {
  place.directory("d");
  place.file("d/a");
  place.link("d/out", "/a");
  const int d = ::open(place.path("d").c_str(), O_PATH | O_DIRECTORY);
  const auto open2 = [&](const char* path, std::uint64_t flags, std::uint64_t resolve) {
    return effect_lines([=] {
      open_how how{.flags = flags, .mode = (flags & O_CREAT) != 0 ? 0644U : 0U, .resolve = resolve};
      ::syscall(SYS_openat2, d, path, &how, sizeof how);
    });
  };
  EXPECT_EQ(open2("a", O_RDONLY, 0), (Lines{"read T/d/a"}));
  EXPECT_EQ(open2("a", O_RDWR, RESOLVE_BENEATH),
            (Lines{"change content-readable T/d/a", "read T/d/a writable"}));
  EXPECT_EQ(open2("out", O_RDONLY, RESOLVE_IN_ROOT), (Lines{"read T/d/a"}));
  EXPECT_EQ(open2("/../a", O_RDONLY, RESOLVE_IN_ROOT), (Lines{"read T/d/a"}));
  EXPECT_EQ(open2("/new", O_WRONLY | O_CREAT, RESOLVE_IN_ROOT), (Lines{"create T/d/new no-stamp"}));
  EXPECT_EQ(open2("out", O_RDONLY, RESOLVE_NO_SYMLINKS), (Lines{}));
  EXPECT_EQ(open2("../d/a", O_RDONLY, RESOLVE_BENEATH), (Lines{}));
  ::close(d);
}

TEST_P(OpenEffect, ProcSelfIsTheChilds) {
  const std::string a = place.file("a");
  const std::string b = place.file("b");
  // Descriptors that only the child has.
  const auto prepare = [&] {
    ::dup2(::open(a.c_str(), O_RDONLY), 100);
    ::dup2(::open(b.c_str(), O_RDONLY), 0);
    ASSERT_EQ(::chdir(place.path().c_str()), 0);
  };
  place.link("to-100", "/dev/fd/100");
  EXPECT_EQ(opened("/proc/self/fd/100", O_RDONLY, prepare), (Lines{"read T/a"}));
  EXPECT_EQ(opened("/proc/thread-self/fd/100", O_RDONLY, prepare), (Lines{"read T/a"}));
  EXPECT_EQ(opened("/dev/fd/100", O_RDWR, prepare),
            (Lines{"change content-readable T/a", "read T/a writable"}));
  EXPECT_EQ(opened("/dev/stdin", O_RDONLY, prepare), (Lines{"read T/b"}));
  EXPECT_EQ(opened("to-100", O_RDONLY, prepare),
            (Lines{GetParam() ? "read T/a" : "read T/a T/to-100"}));
  EXPECT_EQ(opened("/proc/self/cwd/b", O_RDONLY, prepare), (Lines{"read T/b"}));
  EXPECT_EQ(opened("/proc/self/root" + a, O_RDONLY, prepare), (Lines{"read T/a"}));
  EXPECT_EQ(opened("/dev/fd/101", O_RDONLY, prepare), (Lines{}));
  const Lines maps = opened("/proc/self/maps", O_RDONLY);
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_THAT(maps[0], ::testing::MatchesRegex("read /proc/[0-9]+/maps"));
  EXPECT_NE(maps[0], "read /proc/" + std::to_string(::getpid()) + "/maps");
  // Made up as it is written: there is no content to be taken first.
  const Lines score = opened("/proc/self/oom_score_adj", O_WRONLY);
  ASSERT_EQ(score.size(), 1U);
  EXPECT_THAT(score[0], ::testing::MatchesRegex("write /proc/[0-9]+/oom_score_adj"));
}

TEST_P(OpenEffect, DeletedDirectoriesAndNamelessFiles) {
  place.directory("d");
  place.file("a");
  const auto prepare = [&] {
    std::filesystem::create_directory(place.path("gone"));
    ASSERT_EQ(::chdir(place.path("gone").c_str()), 0);
    std::filesystem::remove(place.path("gone"));
  };
  EXPECT_EQ(opened("a", O_RDONLY, prepare), (Lines{}));
  EXPECT_EQ(opened("../a", O_RDONLY, prepare), (Lines{"read T/a"}));
  EXPECT_EQ(opened("/proc/self/fd/100", O_RDONLY, [] { ::dup2(::memfd_create("m", 0), 100); }),
            (Lines{}));
}

TEST_P(OpenEffect, LongPaths) {
  // Absolute up to PATH_MAX, and relative below a directory whose own path fills most of it.
  std::string deep = place.path();
  const std::string part(200, 'x');
  while (deep.size() + part.size() + 10 < PATH_MAX) deep += "/" + part;
  std::filesystem::create_directories(deep);
  const std::string fits(PATH_MAX - 1 - deep.size() - 1, 'y');
  ASSERT_LE(fits.size(), 255U);
  const std::string path = deep + "/" + fits;
  EXPECT_EQ(opened(path, O_WRONLY | O_CREAT).size(), 1U);
  ASSERT_TRUE(place.seen.effect);
  EXPECT_EQ(place.seen.effect->events[0].path, path);
  opened("./" + fits, O_RDONLY, [&] { ASSERT_EQ(::chdir(deep.c_str()), 0); });
  ASSERT_TRUE(place.seen.effect);
  EXPECT_EQ(place.seen.effect->events[0].path, path);
}

TEST_P(OpenEffect, APathThatCrossesPages) {
  const std::string a = place.file("a");
  EXPECT_EQ(effect_lines([&] {
              char* pages = static_cast<char*>(::mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE,
                                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
              ::mprotect(pages + 2 * 4096, 4096, PROT_NONE);
              char* across = pages + 4096 - 3;
              char* end = pages + 2 * 4096 - a.size() - 1;
              a.copy(across, a.size());
              a.copy(end, a.size());
              ::syscall(SYS_openat, AT_FDCWD, across, O_RDONLY);
            }),
            (Lines{"read T/a"}));
  EXPECT_EQ(effect_lines([&] {
              char* pages = static_cast<char*>(::mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE,
                                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
              ::mprotect(pages + 4096, 4096, PROT_NONE);
              char* end = pages + 4096 - a.size() - 1;
              a.copy(end, a.size());
              ::syscall(SYS_openat, AT_FDCWD, end, O_RDONLY);
            }),
            (Lines{"read T/a"}));
}

TEST_P(OpenEffect, RightsOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: there is no other user to be";
  ::chmod(place.path().c_str(), 0755);
  const std::string a = place.file("a");
  const std::string secret = place.file("secret");
  ::chmod(secret.c_str(), 0600);
  const auto as_nobody = [] {
    ASSERT_EQ(::setgid(65534), 0);
    ASSERT_EQ(::setuid(65534), 0);
  };
  EXPECT_EQ(opened(a, O_RDONLY, as_nobody), (Lines{"read T/a"}));
  EXPECT_EQ(opened(a, O_WRONLY, as_nobody), (Lines{"change content T/a", "write T/a", "fails"}));
  EXPECT_EQ(opened(secret, O_RDONLY, as_nobody), (Lines{"read T/secret", "fails"}));
  EXPECT_EQ(opened(place.path("n"), O_WRONLY | O_CREAT, as_nobody),
            (Lines{"create T/n no-stamp", "fails"}));
}

// A 64-bit program can make 32-bit calls: another table, arguments cut to four bytes.
TEST_P(OpenEffect, The32BitInterface) {
  const std::string a = place.file("a");
  const auto call32 = [&](long number, long flags) {
    return effect_lines([&, number, flags] {
      char* low = static_cast<char*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0));
      a.copy(low, a.size());
      long result = number;
      asm volatile("int $0x80" : "+a"(result) : "b"(low), "c"(flags), "d"(0644) : "memory");
    });
  };
  const Lines read = call32(5, O_RDONLY);
  if (place.seen.result == -ENOSYS) GTEST_SKIP() << "no 32-bit calls in this kernel";
  EXPECT_EQ(read, (Lines{"read T/a"}));
  EXPECT_EQ(call32(5, O_WRONLY | O_TRUNC), (Lines{"change cut T/a", "truncate T/a"}));
  EXPECT_EQ(call32(193, 2), (Lines{"change content T/a", "truncate T/a"}));
  EXPECT_EQ(call32(10, 0), (Lines{"change name T/a", "delete T/a"}));
}

TEST_P(OpenEffect, WhatCannotBeFollowedIsReported) {
  const auto missed = [&](const std::function<void()>& act) {
    place.effect_lines(act);
    if (!place.seen.effect || place.seen.effect->events.size() != 1) return std::string("nothing");
    const CallEffect::ExpectedEvent& event = place.seen.effect->events[0];
    EXPECT_EQ(event.op, wire::RecordOp::kMissed);
    EXPECT_THAT(event.other, ::testing::MatchesRegex("/.*_test[a-z_]* \\(process [0-9]+\\) .*"));
    return event.path;
  };
  std::array<char, 120> parameters{};
  EXPECT_EQ(missed([&] { ::syscall(SYS_io_uring_setup, 4, parameters.data()); }), "nothing");
  parameters[8] = 2;  // SQPOLL
  EXPECT_EQ(missed([&] { ::syscall(SYS_io_uring_setup, 4, parameters.data()); }), "io_uring");
  EXPECT_EQ(missed([] { ::syscall(SYS_pidfd_getfd, 3, 0, 0); }), "pidfd_getfd");
  EXPECT_EQ(missed([] { ::syscall(SYS_open_by_handle_at, 3, nullptr, 0); }), "open_by_handle_at");
  EXPECT_EQ(missed([] { ::syscall(SYS_fanotify_init, 0, 0); }), "fanotify");
  EXPECT_EQ(missed([] { ::syscall(SYS_fanotify_init, 0x200, 0); }), "nothing");
  EXPECT_EQ(missed([] { ::syscall(SYS_seccomp, 1, 8, nullptr); }), "seccomp");
  EXPECT_EQ(missed([] { ::syscall(SYS_seccomp, 1, 0, nullptr); }), "nothing");
  EXPECT_EQ(missed([] { ::syscall(SYS_mount, nullptr, "/none", nullptr, 0, nullptr); }),
            "namespace");
  EXPECT_EQ(missed([] { ::syscall(SYS_unshare, 0x40000000 /* CLONE_NEWNET */); }), "nothing");
  RemoteView::views_may_differ(GetParam());
}

INSTANTIATE_TEST_SUITE_P(BothWays, OpenEffect, ::testing::Bool(), way);

}  // namespace
}  // namespace assay::collect::testing
