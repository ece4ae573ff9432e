// Making, opening and refusing stores. What happens when a process dies is in kill_test.cc, damaged
// files are in damage_test.cc.
#include "store/store.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/files.h"
#include "store/migrate.h"
#include "store/run_reader.h"
#include "store/run_writer.h"
#include "store/testing/child.h"
#include "store/testing/kill_vfs.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::in_child;
using ::testing::IsEmpty;
using testing::line_of;
using ::testing::MatchesRegex;
using testing::mode_of;
using testing::program_with;

class StoreTest : public testing::ProjectTest {};

TEST_F(StoreTest, IsMadeOnceAndOpenedAgain) {
  std::string id;
  {
    auto store = Store::create(location_, {.version = "1.2.3"});
    ASSERT_TRUE(store) << line_of(store);
    EXPECT_THAT(store->notes(), IsEmpty());
    EXPECT_EQ(store->schema_version(), static_cast<int>(embedded_migrations().size()));
    EXPECT_THAT(store->project().id, MatchesRegex("[0-9a-f]{32}"));
    EXPECT_THAT(store->project().created_at, MatchesRegex("20..-..-..T..:..:...*Z"));
    EXPECT_EQ(store->project().created_by, "1.2.3");
    EXPECT_EQ(store->project().root, location_.project);
    EXPECT_TRUE(store->check());
    id = store->project().id;
  }
  EXPECT_EQ(Store::create(location_, {.version = "9"})->project().id, id);
  EXPECT_EQ(Store::open(location_, {.version = "9"})->project().id, id);
  EXPECT_EQ(Store::open(location_, {.version = "9"})->project().created_by, "1.2.3");
}

TEST_F(StoreTest, HasTheDocumentedSettings) {
  auto store = Store::create(location_, {.version = "1"});
  Database& database = store->database();
  EXPECT_EQ(*database.text("PRAGMA journal_mode"), "wal");
  EXPECT_EQ(*database.integer("PRAGMA synchronous"), 1);  // NORMAL
  EXPECT_EQ(*database.integer("PRAGMA foreign_keys"), 1);
  EXPECT_EQ(*database.integer("PRAGMA busy_timeout"), 5000);
  EXPECT_EQ(*database.integer("PRAGMA trusted_schema"), 0);
  EXPECT_EQ(*database.integer("PRAGMA application_id"), kApplicationId);
}

TEST_F(StoreTest, AcceptsOnlyRowsThatMakeSense) {
  auto store = Store::create(location_, {.version = "1"});
  for (const char* sql :
       {"INSERT INTO project VALUES (2, '00000000000000000000000000000000', "
        "'2026-01-01T00:00:00Z', '1', '/')",
        "UPDATE project SET id = 'XYZ'", "UPDATE project SET created_at = 'yesterday'",
        "UPDATE project SET root = ''", "UPDATE migration SET version = 0"}) {
    EXPECT_THAT(line_of(store->database().exec(sql)), HasSubstr("constraint failed")) << sql;
  }
}

TEST_F(StoreTest, ErrorsNameInitWhenThereIsNone) {
  const auto none = Store::open(location_, {.version = "1"});
  EXPECT_EQ(line_of(none), location_.database.string() +
                               ": nothing is recorded here or above; cd to the project, or record "
                               "something: assay run -- COMMAND");
  EXPECT_FALSE(fs::exists(location_.directory));
}

TEST_F(StoreTest, IsMadeByTheFirstVerbThatNeedsIt) {
  fs::create_directories(location_.project / ".git");
  fs::create_directories(location_.project / "a/b");
  auto store = Store::open_or_create(location_.project / "a/b", {.version = "1"});
  ASSERT_TRUE(store) << line_of(store);
  EXPECT_EQ(store->location().project, location_.project);
  EXPECT_EQ(Store::open_or_create(location_.project / "a", {.version = "1"})->project().id,
            store->project().id);
  EXPECT_EQ(testing::read(location_.directory / ".gitignore"), "*\n");
}

TEST_F(StoreTest, IsPrivateUnderAnyUmask) {
  for (const mode_t mask : {0U, 022U, 077U, 0777U}) {
    const fs::path project = directory("umask" + std::to_string(mask));
    fs::permissions(project, fs::perms(0777));
    const auto outcome = in_child([&](const testing::Child::Report& report) {
      testing::become_nobody();  // a umask of 0777 means nothing to root
      ::umask(mask);
      auto store = Store::create(location_in(project), {.version = "1"});
      report(line_of(store));
      for (const char* name : {"", "assay.db", "assay.db-wal", "assay.db-shm"}) {
        report(fmt::format(" {:o}", mode_of(project / ".assay" / name)));
      }
    });
    EXPECT_EQ(outcome.reported, " 700 600 600 600") << mask;
  }
}

TEST_F(StoreTest, RemovesPermissionsOfOtherUsers) {
  ASSERT_TRUE(Store::create(location_, {.version = "1"}));
  fs::permissions(location_.database, fs::perms(0664));
  auto store = Store::open(location_, {.version = "1"});
  ASSERT_TRUE(store) << line_of(store);
  EXPECT_EQ(mode_of(location_.database), 0600U);
  EXPECT_EQ(mode_of(location_.database.string() + "-wal"), 0600U);
  ASSERT_EQ(store->notes().size(), 1U);
  EXPECT_THAT(store->notes()[0], HasSubstr("other users could read it"));
}

TEST_F(StoreTest, FinishesWhatAKillLeft) {
  // After mkdir; after an empty .gitignore; after an empty database, with the mode a umask left.
  fs::create_directories(location_.directory);
  fs::permissions(location_.directory, fs::perms::none);
  ASSERT_TRUE(Store::create(location_, {.version = "1"}));
  EXPECT_EQ(mode_of(location_.directory), 0700U);
  fs::remove(location_.database);
  testing::write(location_.directory / ".gitignore", "");
  testing::write(location_.directory / "creating", "");
  testing::write(location_.database, "");
  fs::permissions(location_.database, fs::perms::none);
  const auto store = Store::create(location_, {.version = "1"});
  EXPECT_TRUE(store) << line_of(store);
  EXPECT_EQ(mode_of(location_.database), 0600U);
  EXPECT_EQ(testing::read(location_.directory / ".gitignore"), "*\n");
  EXPECT_FALSE(fs::exists(location_.directory / "creating"));
}

// `: > .assay/assay.db`, or a disk that lost it: nothing takes its place unasked.
TEST_F(StoreTest, AnEmptiedStoreIsAnErrorAndStaysEmpty) {
  ASSERT_TRUE(Store::create(location_, {.version = "1"}));
  testing::write(location_.database, "");
  for (const auto& refused : {Store::open(location_, {.version = "1"}),
                              Store::open(location_, {.version = "1"}, Access::kRead),
                              Store::open_or_create(location_.project, {.version = "1"})}) {
    EXPECT_EQ(line_of(refused), location_.database.string() +
                                    ": the store is empty: what was recorded in it is lost; "
                                    "restore a copy of it, or begin a new one in its place: assay "
                                    "init");
    EXPECT_EQ(refused.error().code, base::ExitCode::kUnfit);
  }
  EXPECT_EQ(fs::file_size(location_.database), 0U);
  // Asked, as for what an earlier version left that was killed here.
  const auto made = Store::create(location_, {.version = "2"});
  ASSERT_TRUE(made) << line_of(made);
  EXPECT_TRUE(made->created());
}

// It was killed after it had made the tables, or it failed and another process made them.
TEST_F(StoreTest, AMarkOfCreationDoesNotOutliveIt) {
  ASSERT_TRUE(Store::create(location_, {.version = "1"}));
  testing::write(location_.directory / "creating", "");
  ASSERT_TRUE(Store::open(location_, {.version = "1"}));
  EXPECT_FALSE(fs::exists(location_.directory / "creating"));
  testing::write(location_.database, "");
  EXPECT_THAT(line_of(Store::open(location_, {.version = "1"})), HasSubstr("the store is empty"));
}

TEST_F(StoreTest, KeepsAPersonsGitignore) {
  fs::create_directories(location_.directory);
  testing::write(location_.directory / ".gitignore", "assay.db-*\n");
  ASSERT_TRUE(Store::create(location_, {.version = "1"}));
  EXPECT_EQ(testing::read(location_.directory / ".gitignore"), "assay.db-*\n");
}

TEST_F(StoreTest, RefusesWhatIsNotAFile) {
  fs::create_directories(location_.database);
  EXPECT_THAT(line_of(Store::create(location_, {.version = "1"})), HasSubstr("not a regular file"));
  fs::remove(location_.database);
  testing::write(scratch() / "target", "");
  fs::create_symlink(scratch() / "target", location_.database);
  EXPECT_THAT(line_of(Store::create(location_, {.version = "1"})), HasSubstr("not a regular file"));
  fs::remove(location_.database);
  ASSERT_EQ(::mkfifo(location_.database.c_str(), 0600), 0);
  EXPECT_THAT(line_of(Store::open(location_, {.version = "1"})), HasSubstr("not a regular file"));
}

TEST_F(StoreTest, RefusesAForeignDatabaseAndLeavesItAlone) {
  fs::create_directories(location_.directory);
  ASSERT_TRUE(make_private_file(location_.database));
  ASSERT_TRUE(Database::open(location_.database)->exec("CREATE TABLE theirs (x)"));
  fs::permissions(location_.database, fs::perms(0644));
  const std::string before = testing::read(location_.database);
  const auto refused = Store::create(location_, {.version = "1"});
  EXPECT_THAT(line_of(refused), HasSubstr("is an SQLite database but not an Assay store"));
  EXPECT_EQ(refused.error().code, base::ExitCode::kUnfit);
  EXPECT_EQ(testing::read(location_.database), before);
  EXPECT_EQ(mode_of(location_.database), 0644U);
}

TEST_F(StoreTest, RefusesANewerSchemaAndLeavesItAlone) {
  // Committed but not yet moved from the log into the file: closing must not move it.
  in_child([&](const testing::Child::Report&) {
    auto store = Store::create(location_, program_with(3));
    if (store) static_cast<void>(store->database().exec("DELETE FROM entry"));
    ::_exit(0);
  });
  const fs::path log = location_.database.string() + "-wal";
  const std::string before = testing::read(location_.database);
  const std::string log_before = testing::read(log);
  EXPECT_FALSE(log_before.empty());
  const auto refused = Store::open(location_, program_with(1));
  EXPECT_EQ(line_of(refused),
            location_.database.string() +
                ": the store has schema version 3 (written by assay 0.3.0), and this program"
                " (assay 0.1.0) knows 1; upgrade assay");
  EXPECT_EQ(refused.error().code, base::ExitCode::kUnfit);
  EXPECT_EQ(testing::read(location_.database), before);
  EXPECT_EQ(testing::read(log), log_before);
  EXPECT_TRUE(Store::open(location_, program_with(3)));
}

TEST_F(StoreTest, AReadOnlyDirectoryIsReported) {
  const Location empty = location_in(directory("empty"));
  ASSERT_TRUE(Store::create(location_, {.version = "1"}));
  for (const fs::path& path : {location_.directory, location_.database, empty.project}) {
    const uid_t owner = ::geteuid() == 0 ? testing::kNobody : ::geteuid();
    ASSERT_EQ(::chown(path.c_str(), owner, static_cast<gid_t>(-1)), 0);
  }
  fs::permissions(location_.directory, fs::perms(0500));
  fs::permissions(empty.project, fs::perms(0500));
  const auto outcome = in_child([&](const testing::Child::Report& report) {
    testing::become_nobody();
    report(line_of(Store::create(empty, {.version = "1"})) + "\n");
    report(line_of(Store::create(location_, {.version = "1"})) + "\n");
    ::chmod(location_.directory.c_str(), 0700);
    ::chmod(location_.database.c_str(), 0400);
    report(line_of(Store::open(location_, {.version = "1"})) + "\n");
  });
  EXPECT_THAT(
      outcome.reported,
      MatchesRegex(".*/empty/.assay: cannot create: Permission denied; make its directory .*\n"
                   ".*/assay.db: attempt to write a readonly database .*; make the file and .*\n"
                   ".*/assay.db: attempt to write a readonly database .*; make the file and .*\n"));
}

TEST_F(StoreTest, DoesNotTrustAnotherUsersStore) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs two users";
  ASSERT_TRUE(Store::create(location_, {.version = "1"}));
  fs::permissions(location_.directory, fs::perms(0777));
  fs::permissions(location_.database, fs::perms(0666));
  const auto outcome = in_child([&](const testing::Child::Report& report) {
    testing::become_nobody();
    report(line_of(Store::open(location_, {.version = "1"})));
  });
  EXPECT_THAT(outcome.reported, HasSubstr("belongs to another user (uid 0)"));
}

TEST_F(StoreTest, WorksWithoutAWriteAheadLogAndReportsIt) {
  const testing::KillVfs vfs(false);
  auto store = Store::create(location_, {.version = "1"});
  ASSERT_TRUE(store) << line_of(store);
  EXPECT_EQ(*store->database().text("PRAGMA journal_mode"), "delete");
  EXPECT_EQ(*store->database().integer("PRAGMA synchronous"), 2);  // FULL
  ASSERT_EQ(store->notes().size(), 1U);
  EXPECT_THAT(store->notes()[0], HasSubstr("no write-ahead log on this file system"));
}

TEST_F(StoreTest, RecognisesNetworkFileSystems) {
  EXPECT_TRUE(is_shared_between_machines(std::int64_t{0x6969}));       // NFS
  EXPECT_TRUE(is_shared_between_machines(std::int64_t{0xff534d42}));   // CIFS
  EXPECT_FALSE(is_shared_between_machines(std::int64_t{0xef53}));      // ext4
  EXPECT_FALSE(is_shared_between_machines(std::int64_t{0x01021994}));  // tmpfs
  EXPECT_TRUE(is_shared_between_machines(scratch()));
  EXPECT_THAT(line_of(is_shared_between_machines(scratch() / "gone")), HasSubstr("No such file"));
}

TEST_F(StoreTest, AProjectThatMovesKeepsItsPaths) {
  const std::filesystem::path before = directory("before");
  const std::filesystem::path after = scratch() / "after it";
  {
    Store store = *Store::create(location_in(before), {});
    RunRecord run = testing::run_of("make in=1 -> out=2 /elsewhere/x=3", before.string());
    run.redirects = {"1>>" + (before / "log").string(), "0</elsewhere/in"};
    run.context.git = Git{.root = before.string()};
    ASSERT_TRUE(record_run(store, run));
    testing::record(store, "make /other=1", before.string() + "2");
  }
  std::filesystem::rename(before, after);
  Store store = *Store::open(location_in(after), {});
  const RunRecord run = *load_run(store, 1);
  EXPECT_EQ(run.directory, after.string());
  EXPECT_EQ(run.inputs[0].path, after / "in");
  EXPECT_THAT(run.outputs,
              ::testing::UnorderedElementsAre(::testing::Field(&Output::path, "/elsewhere/x"),
                                              ::testing::Field(&Output::path, after / "out")));
  EXPECT_THAT(run.redirects,
              ::testing::ElementsAre("1>>" + (after / "log").string(), "0</elsewhere/in"));
  EXPECT_EQ(run.context.git->root, after.string());
  EXPECT_EQ(load_run(store, 2)->directory, before.string() + "2");
  // Run again there, by another command, it is the same stage.
  EXPECT_EQ(
      load_run(store, testing::record(store, "made in=1 -> out=2 /elsewhere/x=3", after.string()))
          ->stage,
      1);
}

}  // namespace
}  // namespace assay::store
