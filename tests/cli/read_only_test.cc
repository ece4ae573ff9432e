// A project that cannot be written: recorded runs can still be queried.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class ReadOnlyCli : public ::testing::Test {
 protected:
  support::ProcessResult shell(const std::string& script) {
    return support::run(
        {{"sh", "-c", "A='" + support::program() + "'; " + script}, "", project_.path()});
  }
  // In a separate mount namespace, with the project mounted read-only.
  support::ProcessResult read_only(const std::string& script) {
    std::ofstream(project_.path().string() + ".sh")
        << "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && cd \"$1\" || exit 77\n"
        << "A='" << support::program() << "'\n"
        << script << "\n";
    const auto outcome = support::run(
        {{"unshare", "-m", "sh", project_.path().string() + ".sh", project_.path().string()},
         "",
         "/"});
    std::filesystem::remove(project_.path().string() + ".sh");
    return outcome;
  }
  base::testing::TempDir project_;
};

TEST_F(ReadOnlyCli, EveryQueryWorks) {
  if (read_only("true").exit_code != 0) GTEST_SKIP() << "mounting is not allowed here";
  shell("$A init -q; echo 1 > in; $A run -- cp in out; $A run -- cp out end");
  // With the log of the last run beside the database, and without.
  for (const char* before : {"true", "$A log"}) {
    shell(before);
    for (const char* verb : {"log", "show", "status", "dag", "lineage end", "diff 1 1"}) {
      const auto outcome = read_only(std::string("$A ") + verb);
      EXPECT_EQ(outcome.exit_code, 0) << verb << ": " << outcome.err;
      EXPECT_EQ(outcome.err, "") << verb;
    }
  }
  const auto written = read_only("$A label last done");
  EXPECT_EQ(written.exit_code, 3);
  EXPECT_THAT(written.err, HasSubstr("attempt to write a readonly database"));
  const auto run = read_only("$A run -- echo hello");
  EXPECT_EQ(run.out, "hello\n");
  EXPECT_THAT(run.err, HasSubstr("this run is not recorded"));
}

TEST_F(ReadOnlyCli, AnEmptyArgumentIsReported) {
  const auto outcome = shell("$A init -q; $A run -- ''");
  EXPECT_EQ(outcome.exit_code, 127);
  EXPECT_EQ(outcome.err, "assay: '': command not found; it is in no directory of PATH\n");
}

}  // namespace
}  // namespace assay
