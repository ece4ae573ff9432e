// Migrating a store from one version of the schema to the next.
#include "store/migrate.h"

#include "store/store.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::line_of;
using testing::program_with;

class MigrateTest : public testing::ProjectTest {
 protected:
  // A store of version 1, then a failing upgrade to the migrations given.
  std::string failure_of(std::vector<Migration> added) {
    EXPECT_TRUE(Store::create(location_, program_with(1)));
    std::vector<Migration> all(program_with(1).migrations.begin(),
                               program_with(1).migrations.end());
    all.insert(all.end(), added.begin(), added.end());
    return line_of(Store::open(location_, {.version = "9", .migrations = all}));
  }
  void expect_version_1() {
    auto store = Store::open(location_, program_with(1));
    ASSERT_TRUE(store) << line_of(store);
    EXPECT_TRUE(store->check());
    EXPECT_EQ(*store->database().integer("SELECT count(*) FROM sqlite_schema"), 2);
    EXPECT_EQ(*store->database().integer("SELECT count(*) FROM migration"), 1);
  }
};

TEST_F(MigrateTest, GoesForwardAndKeepsABackup) {
  const std::string id = Store::create(location_, program_with(1))->project().id;
  auto store = Store::open(location_, program_with(3));
  ASSERT_TRUE(store) << line_of(store);
  EXPECT_EQ(store->schema_version(), 3);
  EXPECT_EQ(store->project().id, id);
  Database& database = store->database();
  EXPECT_EQ(*database.integer("PRAGMA user_version"), 3);
  EXPECT_EQ(*database.integer("PRAGMA foreign_keys"), 1);
  EXPECT_EQ(*database.text("SELECT group_concat(version || ' ' || name || ' ' || program, ', ')"
                           " FROM migration"),
            "1 0001_project 0.1.0, 2 0002_entry 0.3.0, 3 0003_entry_owner 0.3.0");
  EXPECT_EQ(*database.text("SELECT group_concat(n || payload || owner) FROM entry"), "1one1,2two1");

  // The backup is a store of the old program, and as private as the store.
  const fs::path backup = location_.database.string() + ".v1";
  EXPECT_EQ(testing::mode_of(backup), 0600U);
  EXPECT_FALSE(fs::exists(backup.string() + ".partial"));
  const Location restored = location_in(directory("restored"));
  fs::create_directories(restored.directory);
  fs::copy(backup, restored.database);
  auto old = Store::open(restored, program_with(1));
  ASSERT_TRUE(old) << line_of(old);
  EXPECT_TRUE(old->check());
  EXPECT_EQ(old->project().id, id);
}

TEST_F(MigrateTest, ANewStoreHasNoBackup) {
  ASSERT_TRUE(Store::create(location_, program_with(3)));
  ASSERT_TRUE(Store::open(location_, program_with(3)));
  for (const auto& entry : fs::directory_iterator(location_.directory)) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::AnyOf("assay.db", ".gitignore"));
  }
}

TEST_F(MigrateTest, AMigrationThatFailsChangesNothing) {
  // The one before it succeeds and is undone too: the old program must still be able to work.
  EXPECT_THAT(
      failure_of({{2, "0002_good", "CREATE TABLE good (x)"},
                  {3, "0003_bad", "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1)"}}),
      AllOf(HasSubstr("cannot apply migration 0003_bad: no such table: nowhere"),
            HasSubstr("the store is unchanged")));
  expect_version_1();
}

TEST_F(MigrateTest, AMigrationMayNotEndItsTransaction) {
  EXPECT_THAT(failure_of({{2, "0002_bad", "ROLLBACK"}}), HasSubstr("ends its own transaction"));
  expect_version_1();
}

TEST_F(MigrateTest, AMigrationMayNotLeaveRowsThatReferToNothing) {
  EXPECT_THAT(failure_of({{2, "0002_bad",
                           "CREATE TABLE child (p INTEGER REFERENCES project (only_row));"
                           "INSERT INTO child VALUES (7)"}}),
              HasSubstr("a row of table child would refer to nothing"));
  expect_version_1();
}

TEST_F(MigrateTest, ABackupThatCannotBeMadeStopsTheUpgrade) {
  ASSERT_TRUE(Store::create(location_, program_with(1)));
  fs::create_directories(location_.database.string() + ".v1/in the way");
  EXPECT_THAT(line_of(Store::open(location_, program_with(3))), HasSubstr("cannot keep a backup"));
  expect_version_1();
}

TEST_F(MigrateTest, TheDocumentationDescribesEveryColumn) {
  const std::string page = testing::read(ASSAY_STORE_PAGE);
  auto store = Store::create(location_, {});
  ASSERT_TRUE(store) << line_of(store);
  Statement columns = *store->database().prepare(
      "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c"
      " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'");
  int described = 0;
  for (; *columns.next_row(); ++described) {
    const std::size_t start = page.find("\n### " + columns.text(0) + "\n");
    ASSERT_NE(start, std::string::npos) << "no section for table " << columns.text(0);
    const std::string section = page.substr(start, page.find("\n##", start + 1) - start);
    EXPECT_THAT(section, HasSubstr("| `" + columns.text(1) + "` |"));
  }
  EXPECT_GE(described, 9);
}

}  // namespace
}  // namespace assay::store
