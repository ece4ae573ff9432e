// Damaged files: opening one may fail or succeed, but never crashes, hangs or loops.
#include <random>

#include "store/migrate.h"
#include "store/store.h"
#include "store/testing/child.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::line_of;
using testing::program_with;

class DamageTest : public testing::ProjectTest {
 protected:
  DamageTest() {
    EXPECT_TRUE(Store::create(location_, program_with(3)));
    intact_ = testing::read(location_.database);
  }

  // Opens the damaged contents and uses what can be used. The error's line, "" when it opened.
  std::string use(const std::string& contents) {
    for (const char* suffix : {"-wal", "-shm", "-journal"}) {
      fs::remove(location_.database.string() + suffix);
    }
    testing::write(location_.database, contents);
    auto store = Store::open(location_, program_with(3));
    if (!store) {
      EXPECT_FALSE(store.error().what.empty());
      EXPECT_FALSE(store.error().hint.empty()) << store.error().line();
      return store.error().line();
    }
    if (store->check()) {
      EXPECT_LE(store->database().integer("SELECT count(*) FROM entry").value_or(0), 2);
    }
    return "";
  }

  std::string intact_;
};

TEST_F(DamageTest, IntactIsFine) {
  EXPECT_EQ(use(intact_), "");
}

TEST_F(DamageTest, AnyByteOfTheHeaderMayBeWrong) {
  for (std::size_t offset = 0; offset < 100; ++offset) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string contents = intact_;
      contents[offset] = static_cast<char>(contents[offset] ^ flip);
      use(contents);
    }
  }
}

TEST_F(DamageTest, AnyOtherByteMayBeWrong) {
  for (std::size_t offset = 100; offset < intact_.size(); offset += 29) {
    std::string contents = intact_;
    contents[offset] = static_cast<char>(~contents[offset]);
    use(contents);
  }
}

TEST_F(DamageTest, MayBeCutAnywhere) {
  // SQLite takes a file of one byte for an empty one, and what is missing of the last page for
  // zeros.
  for (std::size_t size = 2; size < intact_.size(); size += 97) {
    if (size > intact_.size() - 4096)
      use(intact_.substr(0, size));
    else
      EXPECT_NE(use(intact_.substr(0, size)), "") << size;
  }
}

TEST_F(DamageTest, MayBeNoise) {
  std::mt19937 random(7);
  for (const std::size_t size : {2U, 15U, 16U, 99U, 100U, 511U, 512U, 1024U, 4096U, 70000U}) {
    std::string noise(size, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    EXPECT_THAT(use(noise), AnyOf(HasSubstr("not a database"), HasSubstr("malformed"))) << size;
    // With a header that looks right.
    noise.replace(0, std::min<std::size_t>(100, size), intact_, 0,
                  std::min<std::size_t>(100, size));
    use(noise);
  }
  EXPECT_THAT(use(std::string(4096, '\0')), HasSubstr(".recover"));
  EXPECT_THAT(use("This is not a database.\n"), HasSubstr("file is not a database"));
}

TEST_F(DamageTest, ALostRowOrVersionIsNoticed) {
  {
    auto database = Database::open(location_.database);
    ASSERT_TRUE(database->exec("DELETE FROM project"));
  }
  EXPECT_THAT(line_of(Store::open(location_, program_with(3))), HasSubstr("row is missing"));
  {
    auto database = Database::open(location_.database);
    ASSERT_TRUE(database->exec("PRAGMA user_version = 0"));
  }
  EXPECT_THAT(line_of(Store::open(location_, program_with(3))), HasSubstr("schema version 0"));
}

// What a machine that lost power may leave of the log: its end is missing, or is noise.
TEST_F(DamageTest, ALogCutAnywhereGivesAPrefixOfTheTransactions) {
  testing::in_child([&](const testing::Child::Report&) {
    auto store = Store::open(location_, program_with(3));
    for (int n = 3; n <= 8; ++n) {
      auto insert = store->database().prepare("INSERT INTO entry VALUES (?1, ?2, 1)");
      if (!insert || !insert->bind(n, std::string(1500, 'x')) || !insert->run()) break;
    }
    ::_exit(0);  // without closing, as a killed process does
  });
  const std::string file = testing::read(location_.database);
  const fs::path log_path = location_.database.string() + "-wal";
  const std::string log = testing::read(log_path);
  ASSERT_GT(log.size(), 6 * 4096U);
  std::int64_t last = 2;
  for (std::size_t size = 0; size <= log.size(); size += 509) {
    testing::write(location_.database, file);
    fs::remove(location_.database.string() + "-shm");
    testing::write(log_path, log.substr(0, size) + (size % 2 == 0 ? "" : std::string(5000, '#')));
    auto store = Store::open(location_, program_with(3));
    ASSERT_TRUE(store) << size << line_of(store);
    EXPECT_TRUE(store->check()) << size;
    const auto count = store->database().integer("SELECT count(*) FROM entry");
    EXPECT_EQ(*count, *store->database().integer("SELECT max(n) FROM entry")) << size;
    EXPECT_GE(*count, last) << size;
    last = *count;
  }
  EXPECT_GE(last, 7);
}

}  // namespace
}  // namespace assay::store
