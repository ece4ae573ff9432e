// exec: effect_of() compared with what the kernel did.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "observe/collect/testing/effect_test.h"

namespace assay::collect::testing {
namespace {

// /bin/true and its loader by their canonical names.
std::string real(const std::string& path) {
  return std::filesystem::canonical(path).string();
}

class ExecEffect : public EffectTest {
 protected:
  const std::string program = real("/bin/true");
  const std::string loader = real("/lib64/ld-linux-x86-64.so.2");

  Lines executed(
      const std::string& path, std::vector<std::string> arguments,
      const std::function<void()>& prepare = [] {}) {
    std::vector<char*> pointers;
    for (std::string& word : arguments) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return effect_lines([&] { ::syscall(SYS_execve, path.c_str(), pointers.data(), nullptr); },
                        prepare);
  }
  std::string script(const std::string& name, const std::string& text, mode_t mode = 0755) {
    const std::string path = place.file(name, text);
    ::chmod(path.c_str(), mode);
    return path;
  }
};

TEST_P(ExecEffect, AProgramAndItsLoader) {
  EXPECT_EQ(executed("/bin/true", {"true", "a b", ""}),
            (Lines{"exec " + program + " true|a b|", "read " + program, "read " + loader}));
  struct stat file {};
  ASSERT_EQ(::stat("/bin/true", &file), 0);
  EXPECT_EQ(place.seen.effect->events[0].stamp.inode, file.st_ino);
}

TEST_P(ExecEffect, LongArgumentListsAreCut) {
  const std::string word(1000, 'w');
  executed("/bin/true", std::vector<std::string>(100, word));
  ASSERT_TRUE(place.seen.effect);
  const std::string& arguments = place.seen.effect->events[0].other;
  EXPECT_LE(arguments.size(), 32U << 10U);
  EXPECT_GT(arguments.size(), 31U << 10U);
  EXPECT_TRUE(arguments.starts_with(word + '\0' + word + '\0'));
  executed("/bin/true", {"sh", std::string(20'000, 's')});
  ASSERT_TRUE(place.seen.effect);
  EXPECT_EQ(place.seen.effect->events[0].other.size(), 20'003U);
}

TEST_P(ExecEffect, AScriptAndItsInterpreters) {
  const std::string shell = real("/bin/sh");
  script("a", "#!/bin/sh -e\n");
  EXPECT_EQ(executed(place.path("a"), {"a"}),
            (Lines{"exec T/a a", "read T/a", "read " + shell, "read " + loader}));
  script("b", "#! " + place.path("a") + "\n");
  EXPECT_EQ(executed(place.path("b"), {"b"}),
            (Lines{"exec T/b b", "read T/b", "read T/a", "read " + shell, "read " + loader}));
  script("missing", "#!/none/such\n");
  EXPECT_EQ(executed(place.path("missing"), {"m"}),
            (Lines{"exec T/missing m", "read T/missing", "fails"}));
  script("loop", "#!" + place.path("loop") + "\n");
  EXPECT_EQ(executed(place.path("loop"), {"l"}).back(), "fails");
}

TEST_P(ExecEffect, WhatCannotBeExecuted) {
  script("plain", "#!/bin/sh\n", 0644);
  EXPECT_EQ(executed(place.path("plain"), {"p"}).back(), "fails");
  EXPECT_EQ(executed(place.path(), {"d"}), (Lines{}));
  EXPECT_EQ(executed(place.path("none"), {"n"}), (Lines{}));
  if (::access("/proc/sys/fs/binfmt_misc/register", F_OK) != 0) {
    script("nothing", "echo no header\n");
    EXPECT_EQ(executed(place.path("nothing"), {"n"}).back(), "fails");
  }
}

TEST_P(ExecEffect, ByDescriptor) {
  const Lines expected{"exec " + program, "read " + program, "read " + loader};
  const auto prepare = [&] { ::dup2(::open("/bin/true", O_PATH), 100); };
  EXPECT_EQ(effect_lines([] { ::syscall(SYS_execveat, 100, "", nullptr, nullptr, AT_EMPTY_PATH); },
                         prepare),
            expected);
  EXPECT_EQ(executed("/proc/self/fd/100", {}, prepare), expected);
  EXPECT_EQ(effect_lines([] { ::syscall(SYS_execveat, 100, "true", nullptr, nullptr, 0); },
                         [] { ::dup2(::open("/bin", O_PATH), 100); }),
            expected);
  place.link("l", "/bin/true");
  EXPECT_EQ(effect_lines([&] {
              ::syscall(SYS_execveat, AT_FDCWD, place.path("l").c_str(), nullptr, nullptr,
                        AT_SYMLINK_NOFOLLOW);
            }),
            (Lines{}));
}

TEST_P(ExecEffect, RightsThatAreNotGranted) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: cannot give files away";
  ::chmod(place.path().c_str(), 0755);
  const std::string path = place.path("true");
  std::filesystem::copy_file("/bin/true", path);
  ASSERT_EQ(::chmod(path.c_str(), 04755), 0);
  const auto as_nobody = [] { ::setuid(65534); };
  EXPECT_EQ(executed(path, {"t"}, as_nobody).size(), 3U);  // not restrained: it gets its rights
  const Lines lines = executed(path, {"t"}, [] {
    ::setuid(65534);
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  });
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[1], "missed setuid T/true is setuid and ran without its privileges no-stamp");
  EXPECT_EQ(executed(path, {"t"}, [] { ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }).size(), 3U);
}

INSTANTIATE_TEST_SUITE_P(BothWays, ExecEffect, ::testing::Bool(), way);

}  // namespace
}  // namespace assay::collect::testing
