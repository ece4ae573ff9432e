// Several processes on one store: when it is created, when it is migrated, and while they are
// killed.
#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <thread>

#include "base/check.h"
#include "store/store.h"
#include "store/testing/child.h"
#include "store/testing/fixture.h"

namespace assay::store {
namespace {

using testing::Child;
using testing::line_of;
using testing::program_with;

// Counters that parent and children share.
class SharedCounters {
 public:
  static constexpr std::size_t kCount = 8;
  SharedCounters() {
    void* memory = ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSAY_CHECK(memory != MAP_FAILED, "a test can map memory");
    counters_ = new (memory) Counters();
  }
  SharedCounters(const SharedCounters&) = delete;
  SharedCounters& operator=(const SharedCounters&) = delete;
  ~SharedCounters() { ::munmap(counters_, sizeof(Counters)); }
  std::atomic<int>& operator[](std::size_t index) { return (*counters_)[index]; }

 private:
  using Counters = std::array<std::atomic<int>, kCount>;
  Counters* counters_ = nullptr;
};

class ConcurrencyTest : public testing::StoreTest {
 protected:
  // Runs `open` in eight processes at the same moment; what they said.
  static std::multiset<std::string> in_eight(const std::function<base::Result<Store>()>& open) {
    SharedCounters counters;
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < 8; ++i) {
      children.push_back(std::make_unique<Child>([&](const Child::Report& report) {
        ++counters[0];
        while (counters[0] < 8) std::this_thread::yield();
        const auto store = open();
        report(store ? store->project().id : store.error().line());
      }));
    }
    std::multiset<std::string> reported;
    for (const auto& child : children) reported.insert(child->wait().reported);
    return reported;
  }
};

TEST_F(ConcurrencyTest, EightProcessesMakeOneStore) {
  for (int round = 0; round < 10; ++round) {
    const Location location = location_in(directory("project" + std::to_string(round)));
    const auto reported = in_eight([&] { return Store::create(location, program_with(3)); });
    auto store = Store::open(location, program_with(3));
    ASSERT_TRUE(store) << line_of(store);
    EXPECT_EQ(reported.count(store->project().id), 8U) << ::testing::PrintToString(reported);
    EXPECT_EQ(*store->database().integer("SELECT count(*) FROM migration"), 3);
  }
}

TEST_F(ConcurrencyTest, EightProcessesUpgradeItOnce) {
  for (int round = 0; round < 10; ++round) {
    const Location location = location_in(directory("project" + std::to_string(round)));
    const std::string id = Store::create(location, program_with(1))->project().id;
    const auto reported = in_eight([&] { return Store::open(location, program_with(3)); });
    EXPECT_EQ(reported.count(id), 8U) << ::testing::PrintToString(reported);
    auto store = Store::open(location, program_with(3));
    EXPECT_EQ(*store->database().integer("SELECT count(*) FROM entry"), 2);
  }
}

// Kills at any instruction, not only between SQLite's operations, while others go on writing.
TEST_F(ConcurrencyTest, WritersKilledAtRandomLoseNothingTheyPromised) {
  constexpr int kWriters = 3;
  const Location location = location_in(directory("project"));
  {
    auto store = Store::create(location, program_with(3));
    ASSERT_TRUE(store->database().exec(
        "CREATE TABLE work (writer INTEGER, n INTEGER, PRIMARY KEY (writer, n))"));
  }
  SharedCounters promised;
  const auto start_writer = [&](std::size_t writer) {
    return std::make_unique<Child>([&, writer](const Child::Report& report) {
      auto store = Store::open(location, program_with(3));
      if (!store) return report(line_of(store));
      Database& database = store->database();
      // A log of 50 pages at most, so that kills also meet checkpoints.
      static_cast<void>(database.exec("PRAGMA wal_autocheckpoint = 50"));
      for (;;) {
        auto transaction = Transaction::begin(database);
        if (!transaction) return report(line_of(transaction));
        const auto next = database.integer(
            fmt::format("SELECT coalesce(max(n), 0) + 1 FROM work WHERE writer = {}", writer));
        if (!next) return report(line_of(next));
        // The writer before may have been killed between its commit and its promise. What is
        // committed is promised now, so that at most one row is ever more than promised.
        if (*next <= promised[writer]) return report("a promised row is missing");
        promised[writer] = static_cast<int>(*next - 1);
        const auto inserted =
            database.exec(fmt::format("INSERT INTO work VALUES ({}, {})", writer, *next));
        if (!inserted) return report(line_of(inserted));
        const auto committed = transaction->commit();
        if (!committed) return report(line_of(committed));
        promised[writer] = static_cast<int>(*next);
      }
    });
  };
  std::array<std::unique_ptr<Child>, kWriters> writers;
  for (std::size_t i = 0; i < kWriters; ++i) writers[i] = start_writer(i);
  std::mt19937 random(11);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2000);
  int kills = 0;
  while (std::chrono::steady_clock::now() < end || kills <= 20) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    const std::size_t victim = random() % kWriters;
    writers[victim]->kill();
    EXPECT_EQ(writers[victim]->wait().reported, "");
    writers[victim] = start_writer(victim);
    ++kills;
  }
  for (auto& writer : writers) {
    writer->kill();
    EXPECT_EQ(writer->wait().reported, "");
  }
  auto store = Store::open(location, program_with(3));
  ASSERT_TRUE(store) << line_of(store);
  EXPECT_EQ(*store->database().text("PRAGMA integrity_check"), "ok");
  for (std::size_t i = 0; i < kWriters; ++i) {
    const auto count =
        store->database().integer(fmt::format("SELECT count(*) FROM work WHERE writer = {}", i));
    EXPECT_GE(*count, promised[i]);
    EXPECT_LE(*count, promised[i] + 1);
    EXPECT_GT(*count, 0);
    const auto last =
        store->database().integer(fmt::format("SELECT max(n) FROM work WHERE writer = {}", i));
    EXPECT_EQ(*count, *last);
  }
}

}  // namespace
}  // namespace assay::store
