// assay init --shared: several users record into one store at the same time. Needs root, who can be
// any user.
#include <gmock/gmock.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/scripted_project.h"
#include "support/reachable_copy.h"

namespace assay {
namespace {

using base::Json;
using ::testing::HasSubstr;

constexpr gid_t kGroup = 64201;

class SharedStore : public ScriptedProject {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be several users";
    ASSERT_EQ(::chown(project_.path().c_str(), 64301, kGroup), 0);
    ASSERT_EQ(::chmod(project_.path().c_str(), 02770), 0);
  }
  // With an unhelpful umask, and in the group unless told otherwise.
  support::ProcessResult as(uid_t user, const std::string& script, gid_t group = kGroup) {
    const std::string id = std::to_string(user);
    return shell("export HOME=$PWD; exec setpriv --reuid=" + id + " --regid=" + id +
                 " --groups=" + std::to_string(group) + " sh -c 'umask 077; ASSAY=$1; " + script +
                 "' - '" + support::reachable_program() + "'");
  }
};

TEST_F(SharedStore, SeveralUsersAtOnce) {
  const auto made = as(64301, "$ASSAY init --shared");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("shared with group 64201"));
  struct stat status {};
  ASSERT_EQ(::stat((project_.path() / ".assay").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 02770U);
  EXPECT_EQ(status.st_gid, kGroup);
  // Four users, five runs each, together.
  std::string all;
  for (uid_t user = 64301; user <= 64304; ++user) {
    const std::string id = std::to_string(user);
    all += "(export HOME=$PWD; setpriv --reuid=" + id + " --regid=" + id +
           " --groups=64201 sh -c 'umask 077; for i in 1 2 3 4 5; do \"$0\" run --quiet --archive "
           "-- sh -c \"echo " +
           id + " $i > out-" + id + "-$i\" || echo failed; done' '" + support::reachable_program() +
           "') & ";
  }
  const auto ran = shell(all + "wait");
  EXPECT_EQ(ran.out, "") << ran.err;
  for (uid_t user = 64301; user <= 64304; ++user) {
    const auto log = as(user, "$ASSAY log --all --json");
    ASSERT_TRUE(Json::accept(log.out)) << log.out << log.err;
    EXPECT_EQ(Json::parse(log.out)["runs"].size(), 20U) << log.err;
    const Json runs = Json::parse(log.out)["runs"];
    for (const Json& run : runs) EXPECT_EQ(run["status"], "done");
  }
  // One asks about what another made, and archives beside them.
  const auto asked = as(64302, "$ASSAY lineage out-64301-3 --json");
  EXPECT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_EQ(as(64304, "$ASSAY status >/dev/null; $ASSAY label last done && $ASSAY gc").exit_code,
            0);
  // Everything in the store is the group's, and nothing is anybody else's.
  EXPECT_EQ(shell("find .assay ! -group 64201 -o -perm /o=rwx | head").out, "");
}

TEST_F(SharedStore, OthersAreRefused) {
  ASSERT_EQ(as(64301, "$ASSAY init --shared && $ASSAY run -- sh -c \"echo 1 > one\"").exit_code, 0);
  done("chmod 02775 .");
  const auto stranger = as(64309, "$ASSAY log", 64209);
  EXPECT_EQ(stranger.exit_code, 3) << stranger.out << stranger.err;
  // Nor is a shared store trusted where everybody can put one.
  done("chmod 02777 .");
  const auto planted = as(64302, "$ASSAY log");
  EXPECT_EQ(planted.exit_code, 3) << planted.out;
  EXPECT_THAT(planted.err, HasSubstr("belongs to another user"));
  EXPECT_EQ(as(64301, "$ASSAY log").exit_code, 0);
}

TEST_F(SharedStore, WithoutItAStoreIsItsUsersAlone) {
  ASSERT_EQ(as(64301, "$ASSAY init").exit_code, 0);
  EXPECT_EQ(as(64302, "$ASSAY log").exit_code, 3);
  // Its owner can share it later, and nobody else.
  EXPECT_EQ(as(64302, "$ASSAY init --shared").exit_code, 3);
  ASSERT_EQ(as(64301, "$ASSAY init --shared").exit_code, 0);
  EXPECT_EQ(as(64302, "$ASSAY run -- true").exit_code, 0);
  EXPECT_EQ(as(64302, "$ASSAY show last").exit_code, 0);
  const auto wrong = as(64301, "$ASSAY init --shared --group nobody-has-this");
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_THAT(wrong.err, HasSubstr("there is no group"));
  EXPECT_EQ(as(64301, "$ASSAY init --shared --group 0").exit_code, 64) << "not a member";
}

TEST_F(SharedStore, MayBeSharedAgainAndOnlyAsAWhole) {
  const auto group = [&] { return shell("stat -c %g .assay .assay/assay.db | uniq").out; };
  ASSERT_EQ(as(64301, "$ASSAY init --shared").exit_code, 0);
  // Another member makes folders in it.
  ASSERT_EQ(as(64302, "$ASSAY run --archive -- sh -c \"echo 2 > two\"").exit_code, 0);
  for (const uid_t user : {64301U, 64302U}) {
    const auto again = as(user, "$ASSAY init --shared");
    EXPECT_EQ(again.exit_code, 0) << user << again.err;
  }
  const std::string both = "exec setpriv --reuid=64301 --regid=64301 --groups=64201,64202 ";
  const auto other =
      shell("HOME=$PWD " + both + support::reachable_program() + " init --shared --group 64202");
  EXPECT_EQ(other.exit_code, 3) << other.out;
  EXPECT_THAT(other.err, HasSubstr("only its owner can do that"));
  EXPECT_EQ(group(), "64201\n") << "nothing was changed";
  EXPECT_EQ(as(64302, "$ASSAY log").exit_code, 0);
  // Root may change everything.
  EXPECT_EQ(shell("$ASSAY init --shared --group 64202").exit_code, 0);
  EXPECT_EQ(group(), "64202\n");
}

// Somebody else's killed run is left to them. A user of this test alone: all of their processes are
// killed, also those of tests that run at the same time.
TEST_F(SharedStore, AKilledRunIsRecoveredByItsUser) {
  ASSERT_EQ(as(64311, "$ASSAY init --shared").exit_code, 0);
  as(64311,
     "$ASSAY run -- sh -c \"echo 1 > one; touch started; sleep 30\" & run=$!;"
     " for i in $(seq 500); do [ -e started ] && break; sleep 0.01; done;"
     " pkill -9 -u 64311");
  EXPECT_EQ(as(64302, "$ASSAY log").exit_code, 0);
  const auto before = as(64302, "$ASSAY show last --json");
  EXPECT_EQ(Json::parse(before.out, nullptr, false)["run"]["status"], "running") << before.err;
  const auto after = as(64311, "$ASSAY show last --json");
  const Json run = Json::parse(after.out, nullptr, false);
  EXPECT_EQ(run["run"]["status"], "interrupted") << after.err;
  EXPECT_EQ(run["outputs"].size(), 2U);
}

}  // namespace
}  // namespace assay
