// scripts/run-tests with a ctest of this test's own: what it reports as left behind, and what not.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/process/capture.h"
#include "base/testing/temp_dir.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class RunTests : public ::testing::Test {
 protected:
  RunTests() {
    fs::create_directories(folder_.path() / "checkout/scripts");
    fs::create_directories(folder_.path() / "bin");
    fs::create_directories(folder_.path() / "tmp");
    fs::copy_file(ASSAY_SOURCE_DIR "/scripts/run-tests", checkout() / "scripts/run-tests");
    std::ofstream(checkout() / "tracked") << "1";
    std::ofstream(checkout() / ".gitignore") << "ignored\n/build/\n";
    EXPECT_EQ(
        shell("git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm x")
            .exit_code,
        0);
  }
  // Runs the script; `ctest` is what the tests do.
  base::Captured run(const std::string& ctest) {
    const fs::path program = folder_.path() / "bin/ctest";
    std::ofstream(program) << "#!/bin/sh\n" << ctest << "\n";
    fs::permissions(program, fs::perms(0755));
    return shell("scripts/run-tests release");
  }
  [[nodiscard]] base::Captured shell(const std::string& command) const {
    base::Environment environment = base::Environment::from_current();
    for (const char* name : {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"}) environment.unset(name);
    environment.set("PATH", (folder_.path() / "bin:").string() + std::getenv("PATH"));
    environment.set("TMPDIR", (folder_.path() / "tmp").string());
    return *base::run_captured({.arguments = {"bash", "-c", command},
                                .environment = environment,
                                .directory = checkout()});
  }
  [[nodiscard]] fs::path checkout() const { return folder_.path() / "checkout"; }
  // A GPU region as a recorded run has it.
  [[nodiscard]] std::string region() const {
    return "/dev/shm/assay-gpu-runtests" + std::to_string(::getpid());
  }
  void expect_folders_are_gone() const { EXPECT_TRUE(fs::is_empty(folder_.path() / "tmp")); }

  base::testing::TempDir folder_;
};

TEST_F(RunTests, PassesTheResultOn) {
  EXPECT_EQ(
      run("touch $TMPDIR/x $ASSAY_TEST_MEMORY/x; rm $TMPDIR/x $ASSAY_TEST_MEMORY/x").exit_code, 0);
  EXPECT_EQ(run("exit 8").exit_code, 8);
  expect_folders_are_gone();
}

TEST_F(RunTests, ReportsWhatIsLeftInItsFolders) {
  const auto temporary = run("mkdir -m 0 $TMPDIR/closed");
  EXPECT_EQ(temporary.exit_code, 1);
  EXPECT_THAT(temporary.errors, HasSubstr("/closed"));
  const auto memory = run("touch $ASSAY_TEST_MEMORY/mine; echo $ASSAY_TEST_MEMORY");
  EXPECT_EQ(memory.exit_code, 1);
  EXPECT_THAT(memory.errors, HasSubstr("/mine"));
  EXPECT_FALSE(fs::exists(memory.output.substr(0, memory.output.find('\n'))));
  expect_folders_are_gone();
}

TEST_F(RunTests, ReportsNewFilesOfTheTreeAndNotEdits) {
  EXPECT_EQ(run("echo 2 > tracked; touch .tracked.swp; mkdir build; touch build/x").exit_code, 0);
  EXPECT_THAT(run("touch ignored").errors, HasSubstr("the source tree:\nignored\n"));
  EXPECT_THAT(run("touch new").errors, HasSubstr("the source tree:\nnew\n"));
  EXPECT_EQ(run("echo 2 > new").exit_code, 0);  // it was there before
}

TEST_F(RunTests, ReportsRegionsThatNoProcessUses) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm";
  const auto left = run("touch " + region());
  EXPECT_THAT(left.errors, HasSubstr(region()));
  ::unlink(region().c_str());
  // Of a run elsewhere, which goes on.
  const auto used = run(fmt::format("exec 3>{}; sleep 600 >/dev/null 2>&1 & echo $! >{}/sleeper",
                                    region(), folder_.path().string()));
  EXPECT_THAT(used.errors, Not(HasSubstr(region())));
  pid_t sleeper = 0;
  std::ifstream(folder_.path() / "sleeper") >> sleeper;
  ASSERT_GT(sleeper, 0);
  ::kill(sleeper, SIGKILL);
  ::unlink(region().c_str());
}

TEST_F(RunTests, RemovesItsFoldersWhenInterrupted) {
  const auto interrupted = run("touch $TMPDIR/x; kill -INT $PPID; sleep 0.1");
  EXPECT_EQ(interrupted.exit_code, 130);
  expect_folders_are_gone();
}

}  // namespace
}  // namespace assay
