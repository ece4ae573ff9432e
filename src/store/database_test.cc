#include "store/database.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "store/files.h"
#include "store/sqlite_error.h"
#include "store/testing/fixture.h"

namespace assay::store {
namespace {

using ::testing::HasSubstr;
using testing::line_of;

class DatabaseTest : public testing::StoreTest {
 protected:
  DatabaseTest() : path_(scratch() / "test.db") {
    EXPECT_TRUE(make_private_file(path_));
    EXPECT_TRUE(open().exec("CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB) STRICT"));
  }
  Database open() { return *Database::open(path_); }
  std::filesystem::path path_;
};

TEST_F(DatabaseTest, KeepsValuesOfEveryType) {
  Database database = open();
  auto insert = database.prepare("INSERT INTO t VALUES (?1, ?2, ?3, ?4)");
  ASSERT_TRUE(insert) << line_of(insert);
  const std::string text("a\0é", 4);
  const std::vector<unsigned char> blob = {0, 255, 7};
  ASSERT_TRUE(insert->bind(std::numeric_limits<std::int64_t>::min(), 0.1, text, blob));
  ASSERT_TRUE(insert->run());
  ASSERT_TRUE(insert->bind(std::nullopt, std::optional<double>(), "", std::vector<char>()));
  ASSERT_TRUE(insert->run());
  EXPECT_EQ(database.changes(), 1);
  EXPECT_EQ(database.last_insert_rowid(), 2);

  Statement select = *database.prepare("SELECT i, r, s, b FROM t ORDER BY rowid");
  ASSERT_TRUE(*select.next_row());
  EXPECT_EQ(select.integer(0), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(select.real(1), 0.1);
  EXPECT_EQ(select.text(2), text);
  EXPECT_EQ(select.blob(3), (std::vector{std::byte{0}, std::byte{255}, std::byte{7}}));
  ASSERT_TRUE(*select.next_row());
  EXPECT_TRUE(select.is_null(0));
  EXPECT_TRUE(select.is_null(1));
  EXPECT_FALSE(select.is_null(2));  // an empty text is not NULL
  EXPECT_FALSE(select.is_null(3));
  EXPECT_FALSE(*select.next_row());
}

TEST_F(DatabaseTest, BindingStopsAtTheFirstError) {
  Database database = open();
  Statement insert = *database.prepare("INSERT INTO t (i) VALUES (?1)");
  EXPECT_THAT(line_of(insert.bind(1, 2, 3)), HasSubstr("out of range"));
}

TEST_F(DatabaseTest, RollsBackUnlessCommitted) {
  Database database = open();
  {
    auto transaction = Transaction::begin(database);
    ASSERT_TRUE(transaction) << line_of(transaction);
    ASSERT_TRUE(database.exec("INSERT INTO t (i) VALUES (1)"));
  }
  EXPECT_FALSE(database.in_transaction());
  EXPECT_EQ(*database.integer("SELECT count(*) FROM t"), 0);
  {
    auto transaction = Transaction::begin(database);
    ASSERT_TRUE(database.exec("INSERT INTO t (i) VALUES (1)"));
    ASSERT_TRUE(transaction->commit());
  }
  EXPECT_EQ(*database.integer("SELECT count(*) FROM t"), 1);
}

TEST_F(DatabaseTest, AStatementThatFailedDoesNotHoldTheTransaction) {
  Database database = open();
  ASSERT_TRUE(database.exec("CREATE UNIQUE INDEX u ON t (i); INSERT INTO t (i) VALUES (1)"));
  Statement insert = *database.prepare("INSERT INTO t (i) VALUES (1)");
  {
    auto transaction = Transaction::begin(database);
    const auto result = insert.run();
    EXPECT_THAT(line_of(result), HasSubstr("UNIQUE constraint failed"));
    EXPECT_EQ(result.error().code, base::ExitCode::kNo);
  }
  EXPECT_TRUE(Transaction::begin(database));
}

TEST_F(DatabaseTest, AStatementOutlivesItsDatabaseObject) {
  auto database = std::make_unique<Database>(open());
  Statement select = *database->prepare("SELECT 42");
  database.reset();
  EXPECT_TRUE(*select.next_row());
  EXPECT_EQ(select.integer(0), 42);
}

TEST_F(DatabaseTest, WaitsForAnotherWriterThenReportsIt) {
  Database holder = open();
  auto held = Transaction::begin(holder);
  Database waiter = open();
  EXPECT_EQ(*waiter.integer("PRAGMA busy_timeout"), 5000);
  ASSERT_TRUE(waiter.set_busy_timeout(std::chrono::milliseconds(300)));
  const auto start = std::chrono::steady_clock::now();
  const auto refused = Transaction::begin(waiter);
  const auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, std::chrono::milliseconds(250));
  EXPECT_LT(waited, std::chrono::seconds(60));
  EXPECT_EQ(*waiter.integer("PRAGMA busy_timeout"), 300);  // not the 5 s of other connections
  EXPECT_EQ(line_of(refused),
            path_.string() +
                ": database is locked (SQLite code 5); another process is writing;"
                " try again, or find it with: fuser -v '" +
                path_.string() + "'");
  EXPECT_EQ(refused.error().code, base::ExitCode::kUnfit);
  ASSERT_TRUE(held->commit());
  EXPECT_TRUE(Transaction::begin(waiter));
}

TEST_F(DatabaseTest, AFullDiskHasAHint) {
  Database database = open();
  ASSERT_TRUE(database.exec("PRAGMA max_page_count = 3"));
  auto transaction = Transaction::begin(database);
  const auto full = database.exec("INSERT INTO t (b) VALUES (zeroblob(100000))");
  EXPECT_THAT(line_of(full), HasSubstr("disk is full"));
  EXPECT_THAT(line_of(full), HasSubstr("free some space"));
  EXPECT_EQ(full.error().code, base::ExitCode::kUnfit);
}

TEST_F(DatabaseTest, NeverCreatesAFile) {
  const auto missing = Database::open(scratch() / "missing.db");
  EXPECT_THAT(line_of(missing), HasSubstr("unable to open database file"));
  EXPECT_THAT(line_of(missing), HasSubstr("check that the file exists"));
  EXPECT_FALSE(std::filesystem::exists(scratch() / "missing.db"));
}

TEST_F(DatabaseTest, EveryTroubleOfTheMachineHasItsHint) {
  // Codes from sqlite3.h: busy, read-only, I/O, corrupt, full, cannot open, not a database.
  for (const int code : {5, 8, 10, 11, 13, 14, 26}) {
    for (const int extended : {code, code | 1 << 8, code | 2 << 8}) {
      const base::Error error = sqlite_error("p.db", extended, "message");
      EXPECT_FALSE(error.hint.empty()) << extended;
      EXPECT_EQ(error.code, base::ExitCode::kUnfit) << extended;
    }
  }
}

TEST_F(DatabaseTest, TurnsTheWriteAheadLogOnAndOff) {
  Database database = open();
  EXPECT_TRUE(*database.set_wal(true));
  EXPECT_EQ(*database.text("PRAGMA journal_mode"), "wal");
  EXPECT_FALSE(*database.set_wal(false));
  EXPECT_EQ(*database.text("PRAGMA journal_mode"), "delete");
}

}  // namespace
}  // namespace assay::store
