// Queries of stores that cannot be written.
#include <unistd.h>

#include <filesystem>

#include "store/sqlite_error.h"
#include "store/store.h"
#include "store/testing/child.h"
#include "store/testing/fixture.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::line_of;
using testing::program_with;
using ::testing::StartsWith;

class ReadOnlyTest : public testing::StoreTest {
 protected:
  // A store of two versions with an entry; with its write-ahead log beside it, as after a run.
  void make(bool with_log) {
    testing::in_child([&](const testing::Child::Report&) {
      auto store = Store::create(location_, program_with(2));
      if (!store || !store->database().exec("INSERT INTO entry VALUES (3, 'three')")) ::_exit(1);
      if (with_log) ::_exit(0);  // it is not closed
    });
    EXPECT_EQ(fs::exists(location_.database.string() + "-wal"), with_log);
  }
  // The error for a user without write permission.
  std::string asked(int versions, Access access = Access::kRead) {
    const uid_t owner = ::geteuid() == 0 ? testing::kNobody : ::geteuid();
    for (const auto& entry : fs::directory_iterator(location_.directory)) {
      EXPECT_EQ(::chown(entry.path().c_str(), owner, static_cast<gid_t>(-1)), 0);
      fs::permissions(entry.path(), fs::perms(0400));
    }
    fs::permissions(location_.directory, fs::perms(0555));
    const auto outcome = testing::in_child([&](const testing::Child::Report& report) {
      testing::become_nobody();
      auto store = Store::open(location_, program_with(versions), access);
      if (!store) return report(line_of(store));
      report(store->is_read_only() ? "read-only" : "writable");
      for (const std::string& note : store->notes()) report(" " + note);
      const auto entry = store->database().integer("SELECT count(*) FROM entry");
      report(entry ? " " + std::to_string(*entry) : line_of(entry));
      report(" " + line_of(store->database().exec("DELETE FROM entry")));
    });
    fs::permissions(location_.directory, fs::perms(0755));
    return outcome.reported;
  }

  Location location_ = location_in(directory("a %41?#"));
};

TEST_F(ReadOnlyTest, IsReadWithAndWithoutALog) {
  for (const bool with_log : {false, true}) {
    fs::remove_all(location_.directory);
    make(with_log);
    EXPECT_THAT(asked(2), StartsWith("read-only 3 ")) << with_log;
    EXPECT_THAT(asked(2), HasSubstr("attempt to write a readonly database"));
    EXPECT_THAT(asked(2, Access::kWrite), HasSubstr("attempt to write a readonly database"));
  }
}

TEST_F(ReadOnlyTest, AnOlderSchemaIsRefused) {
  make(false);
  EXPECT_THAT(asked(3), HasSubstr("assay.db: the store has schema version 2 and must be brought to "
                                  "3 first, which needs to write to it; make the file"));
}

TEST_F(ReadOnlyTest, AMovedProjectIsReported) {
  make(false);
  const fs::path elsewhere = scratch() / "elsewhere";
  fs::rename(location_.project, elsewhere);
  location_ = location_in(elsewhere);
  EXPECT_THAT(asked(2), HasSubstr("the project has moved from "));
}

TEST_F(ReadOnlyTest, WhatIsWritableIsNotMadeReadOnly) {
  make(false);
  const auto store = Store::open(location_, program_with(3), Access::kRead);
  ASSERT_TRUE(store) << line_of(store);
  EXPECT_FALSE(store->is_read_only());
}

TEST_F(ReadOnlyTest, WhatCannotBeReadIsToBeMadeReadable) {
  make(false);
  fs::permissions(location_.directory, fs::perms::none);
  const auto outcome = testing::in_child([&](const testing::Child::Report& report) {
    testing::become_nobody();
    report(line_of(Store::open(location_, program_with(2), Access::kRead)));
  });
  fs::permissions(location_.directory, fs::perms::owner_all);
  EXPECT_THAT(outcome.reported, HasSubstr("make it and its directory readable for you"));
}

TEST_F(ReadOnlyTest, NoSpaceForTheLogsIndexIsAFullDisk) {
  for (const int code : {13, 4874}) {  // SQLITE_FULL, SQLITE_IOERR_SHMSIZE
    EXPECT_THAT(sqlite_error("p.db", code, "disk I/O error").line(),
                StartsWith("p.db: the disk is full (SQLite code "));
  }
  EXPECT_THAT(sqlite_error("p.db", 266, "disk I/O error").line(),
              StartsWith("p.db: disk I/O error"));
}

}  // namespace
}  // namespace assay::store
