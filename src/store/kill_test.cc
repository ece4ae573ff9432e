// "A process killed at any write leaves a readable database": the process is killed at the first
// operation, the second, the third, … until it survives, before and half-way through each.
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <ostream>

#include "store/files.h"
#include "store/store.h"
#include "store/testing/child.h"
#include "store/testing/kill_vfs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using testing::Child;
using testing::ChildResult;
using testing::KillPoint;
using testing::line_of;
using testing::program_with;

enum class Journal { kWriteAhead, kRollback };

// Part of the test's name.
void PrintTo(Journal journal, std::ostream* out) {
  *out << (journal == Journal::kWriteAhead ? "WriteAhead" : "Rollback");
}

class KillTest : public testing::ProjectTest, public ::testing::WithParamInterface<Journal> {
 protected:
  // Kills `work` at every operation and calls `examine` on what each death left in location_. Each
  // life starts from what location_ held on entry. Returns how many deaths were examined.
  int at_every_operation(const std::function<void(const Child::Report&)>& work,
                         const std::function<void(const ChildResult&)>& examine) {
    const Location start = location_in(directory("start"));
    replace(location_, start);
    int deaths = 0;
    for (const KillPoint death : {KillPoint::kBefore, KillPoint::kHalfWay}) {
      for (int nth = 1;; ++nth) {
        SCOPED_TRACE(
            fmt::format("{} operation {}", death == KillPoint::kBefore ? "before" : "in", nth));
        replace(start, location_);
        const ChildResult outcome = testing::in_child([&](const Child::Report& report) {
          testing::KillVfs::kill_at(nth, death);
          work(report);
        });
        if (outcome.killed) {
          ++deaths;
        } else {
          EXPECT_EQ(outcome.exit_code, 0);
        }
        examine_copy(nth);
        examine(outcome);
        if (!outcome.killed || HasFailure()) break;
      }
    }
    return deaths;
  }

  // Reads with another program than ours, on a copy, so that both see the files as the kill left
  // them. Starting a process takes time, so only some are checked.
  void examine_copy(int nth) {
    if (nth % 16 != 1 || !fs::exists(location_.database)) return;
    replace(location_, copy_);
    const auto verdict = testing::sqlite3_shell(copy_.database, "PRAGMA integrity_check");
    EXPECT_EQ(verdict.value_or("ok\n"), "ok\n");
  }

  // Opens it as the next run of the program would.
  base::Result<Store> next_run(const StoreProgram& program) {
    auto store = Store::create(location_, program);
    EXPECT_TRUE(store) << line_of(store);
    if (store) {
      EXPECT_EQ(*store->database().text("PRAGMA integrity_check"), "ok");
    }
    return store;
  }

  static void replace(const Location& from, const Location& to) {
    fs::remove_all(to.directory);
    if (fs::exists(from.directory)) fs::copy(from.directory, to.directory);
  }

  testing::KillVfs vfs_{GetParam() == Journal::kWriteAhead};
  Location copy_ = location_in(directory("copy"));
};

INSTANTIATE_TEST_SUITE_P(Journals, KillTest,
                         ::testing::Values(Journal::kWriteAhead, Journal::kRollback),
                         ::testing::PrintToStringParamName());

TEST_P(KillTest, WhileMakingAStore) {
  const int deaths = at_every_operation(
      [&](const Child::Report& report) {
        if (auto store = Store::create(location_, program_with(3))) report(store->project().id);
      },
      [&](const ChildResult& outcome) {
        auto store = next_run(program_with(3));
        ASSERT_TRUE(store);
        // What was promised is kept; what was not is made now. Never twice.
        EXPECT_TRUE(outcome.reported.empty() || outcome.reported == store->project().id);
        EXPECT_EQ(*store->database().integer("SELECT count(*) FROM migration"), 3);
        EXPECT_EQ(*store->database().integer("SELECT count(*) FROM project"), 1);
      });
  EXPECT_GT(deaths, 20);
}

TEST_P(KillTest, WhileCommitting) {
  constexpr int kTransactions = 6;
  constexpr int kRows = 3;
  ASSERT_TRUE(Store::create(location_, program_with(3))->database().exec("DELETE FROM entry"));
  const auto commit = [&](Database& database, int number) {
    auto transaction = Transaction::begin(database);
    auto insert = database.prepare("INSERT INTO entry (payload, owner) VALUES (?1, 1)");
    if (!transaction || !insert) return false;
    for (int row = 0; row < kRows; ++row) {
      // Longer than a page, so that a transaction writes several.
      if (!insert->bind(std::string(3000, static_cast<char>('a' + number))) || !insert->run()) {
        return false;
      }
    }
    return transaction->commit().has_value();
  };
  const int deaths = at_every_operation(
      [&](const Child::Report& report) {
        auto store = Store::open(location_, program_with(3));
        if (!store) ::_exit(1);
        for (int number = 1; number <= kTransactions; ++number) {
          if (!commit(store->database(), number)) ::_exit(2);
          report("x");
          // Checkpoints the log: once as during normal work, once as when it is emptied.
          if (number == 2) static_cast<void>(store->database().exec("PRAGMA wal_checkpoint"));
          if (number == 4) {
            static_cast<void>(store->database().exec("PRAGMA wal_checkpoint(TRUNCATE)"));
          }
        }
      },
      [&](const ChildResult& outcome) {
        auto store = next_run(program_with(3));
        ASSERT_TRUE(store);
        const auto promised = static_cast<std::int64_t>(outcome.reported.size());
        const std::int64_t rows = *store->database().integer("SELECT count(*) FROM entry");
        EXPECT_EQ(rows % kRows, 0) << "half a transaction";
        EXPECT_GE(rows / kRows, promised) << "a committed transaction is gone";
        EXPECT_LE(rows / kRows, promised + 1) << "a transaction from nowhere";
        // The first ones, in order.
        EXPECT_EQ(
            *store->database().integer("SELECT count(*) FROM entry"
                                       " WHERE unicode(payload) <> unicode('a') + (n + 2) / 3"),
            0);
      });
  EXPECT_GT(deaths, 100);
}

TEST_P(KillTest, WhileMigrating) {
  ASSERT_TRUE(Store::create(location_, program_with(1)));
  const std::string id = Store::open(location_, program_with(1))->project().id;
  bool seen_old = false;
  const int deaths = at_every_operation(
      [&](const Child::Report& report) {
        if (Store::open(location_, program_with(3))) report("migrated");
      },
      [&](const ChildResult& outcome) {
        replace(location_, copy_);
        // All of it or nothing of it: either the old program still works or the new one does.
        auto old = Store::open(copy_, program_with(1));
        seen_old = seen_old || old.has_value();
        if (old) {
          EXPECT_EQ(outcome.reported, "");
          EXPECT_EQ(*old->database().integer("SELECT count(*) FROM sqlite_schema"), 2);
        } else {
          EXPECT_THAT(line_of(old), ::testing::HasSubstr("has schema version 3"));
        }
        auto store = next_run(program_with(3));
        ASSERT_TRUE(store);
        EXPECT_EQ(store->project().id, id);
        EXPECT_EQ(*store->database().integer("SELECT count(*) FROM migration"), 3);
        EXPECT_EQ(*store->database().integer("SELECT sum(n) FROM entry"), 3);
        const fs::path backup = location_.database.string() + ".v1";
        EXPECT_TRUE(fs::exists(backup));
        EXPECT_FALSE(fs::exists(backup.string() + ".partial"));
        EXPECT_EQ(*Database::open(backup)->integer("PRAGMA user_version"), 1);
      });
  EXPECT_GT(deaths, 20);
  EXPECT_TRUE(seen_old);
}

class KillFilesTest : public testing::StoreTest {};

// Directory, .gitignore, empty file and modes: killed at the entry and the exit of every system
// call.
TEST_F(KillFilesTest, WhileMakingTheFilesThatSqliteDoesNotMake) {
  const Location location = location_in(directory("project"));
  for (int nth = 1;; ++nth) {
    fs::remove_all(location.directory);
    Child child([&](const Child::Report&) {
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      ::raise(SIGSTOP);
      if (!make_files(location)) ::_exit(1);
    });
    int status = 0;
    ::waitpid(child.pid(), &status, 0);
    if (WIFEXITED(status)) GTEST_SKIP() << "this machine does not let a process trace its child";
    bool alive = true;
    for (int call = 0; call < nth && alive; ++call) {
      ::ptrace(PTRACE_SYSCALL, child.pid(), nullptr, nullptr);
      ::waitpid(child.pid(), &status, 0);
      alive = WIFSTOPPED(status);
    }
    if (!alive) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      EXPECT_GT(nth, 10);
      break;
    }
    child.kill();
    child.wait();
    const auto store = Store::create(location, program_with(1));
    ASSERT_TRUE(store) << "call " << nth << ": " << line_of(store);
    EXPECT_EQ(testing::mode_of(location.database), 0600U);
    EXPECT_EQ(testing::read(location.directory / ".gitignore"), "*\n");
  }
}

}  // namespace
}  // namespace assay::store
