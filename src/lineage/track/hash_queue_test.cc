#include "lineage/track/hash_queue.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <map>
#include <thread>

#include "base/testing/temp_dir.h"
#include "lineage/testing/tracker_scenario.h"
#include "lineage/track/stamp.h"

namespace assay::lineage {
namespace {

using testing::digest_of;
using testing::FakeCache;
using testing::write_file;
using State = HashResult::State;

class HashQueueTest : public ::testing::Test {
 protected:
  HashQueueTest() : folder_(directory_.path().string()) {}

  hash::FileStamp stamp(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(::stat((folder_ + "/" + name).c_str(), &status), 0);
    return stamp_of(status);
  }
  // A task for the file as it is now.
  HashTask task(std::uint32_t id, const std::string& name) {
    names_.push_back(name);
    HashTask task;
    task.id = id;
    task.folder = &folder_;
    task.name = names_.back().c_str();
    task.expected = stamp(name);
    return task;
  }
  HashTask made(std::uint32_t id, const std::string& name, const std::string& content) {
    write_file(folder_ + "/" + name, content);
    return task(id, name);
  }
  static std::map<std::uint32_t, HashResult> all(HashQueue& queue) {
    std::vector<HashResult> results;
    while (queue.wait(results)) {
    }
    std::map<std::uint32_t, HashResult> by_id;
    for (HashResult& result : results) by_id[result.id] = std::move(result);
    return by_id;
  }
  static void grow_old() { std::this_thread::sleep_for(std::chrono::milliseconds(40)); }

  base::testing::TempDir directory_;
  std::string folder_;
  std::deque<std::string> names_;
};

TEST_F(HashQueueTest, HashesManySmallFilesAndSomeLargeOnes) {
  for (const bool raised : {false, true}) {
    HashQueue queue({});
    if (raised) queue.raise();
    std::map<std::uint32_t, std::string> contents;
    for (std::uint32_t i = 0; i < 500; ++i) {
      contents[i] = std::string(i % 50 == 0 ? 3'000'000 + i : i, 'x');
      queue.submit(made(i, "f" + std::to_string(i), contents[i]));
    }
    const auto results = all(queue);
    ASSERT_EQ(results.size(), 500);
    for (const auto& [id, content] : contents) {
      EXPECT_EQ(results.at(id).state, State::kDone);
      EXPECT_EQ(results.at(id).digest, digest_of(content)) << id;
    }
    EXPECT_FALSE(queue.has_results());
  }
}

TEST_F(HashQueueTest, RaisingInTheMiddleLosesNothing) {
  HashQueue queue({.threads = 3});
  for (std::uint32_t i = 0; i < 200; ++i) {
    queue.submit(made(i, "f" + std::to_string(i), std::string(i * 10'000, 'y')));
  }
  queue.raise();
  const auto results = all(queue);
  EXPECT_EQ(results.size(), 200);
  for (const auto& [id, result] : results) {
    EXPECT_EQ(result.digest, digest_of(std::string(id * 10'000, 'y')));
  }
}

TEST_F(HashQueueTest, EndsWithWorkLeft) {
  HashQueue queue({});
  for (std::uint32_t i = 0; i < 50; ++i) {
    queue.submit(made(i, "f" + std::to_string(i), std::string(1'000'000, 'z')));
  }
}

TEST_F(HashQueueTest, FindsFilesThatAreNotAsExpected) {
  HashQueue queue({});
  queue.raise();  // on this thread, after the changes
  HashTask changed = made(1, "changed", "one");
  HashTask gone = made(2, "gone", "one");
  HashTask replaced = made(3, "replaced", "one");
  HashTask pipe = made(4, "pipe", "one");
  HashTask link = made(5, "link", "one");
  write_file(folder_ + "/changed", "other");
  for (const char* name : {"/gone", "/pipe", "/link"}) ::unlink((folder_ + name).c_str());
  write_file(folder_ + "/new", "two");
  ::rename((folder_ + "/new").c_str(), (folder_ + "/replaced").c_str());
  ::mkfifo((folder_ + "/pipe").c_str(), 0600);
  EXPECT_EQ(::symlink("changed", (folder_ + "/link").c_str()), 0);
  for (HashTask* task : {&changed, &gone, &replaced, &pipe, &link}) queue.submit(std::move(*task));
  const auto results = all(queue);
  EXPECT_EQ(results.at(1).state, State::kChanged);
  for (std::uint32_t id = 2; id <= 5; ++id) EXPECT_EQ(results.at(id).state, State::kGone) << id;
}

TEST_F(HashQueueTest, RenamingAndChmodDoNotMatter) {
  HashQueue queue({});
  HashTask task = made(1, "a", "one");
  ::chmod((folder_ + "/a").c_str(), 0640);
  EXPECT_EQ(queue.hash_now(std::move(task)).digest, digest_of("one"));
}

TEST_F(HashQueueTest, DescriptorsOutliveTheName) {
  HashQueue queue({});
  HashTask task = made(1, "a", "one");
  task.fd.reset(::open((folder_ + "/a").c_str(), O_RDONLY | O_CLOEXEC));
  ::unlink((folder_ + "/a").c_str());
  queue.submit(std::move(task));
  EXPECT_EQ(all(queue).at(1).digest, digest_of("one"));
  EXPECT_EQ(queue.held(), 0);
}

TEST_F(HashQueueTest, HashNowDoesNotWaitForTheQueue) {
  HashQueue queue({.threads = 1});
  HashTask first = made(1, "a", std::string(50'000'000, 'a'));
  HashTask again = task(1, "a");
  queue.submit(std::move(first));
  const HashResult now = queue.hash_now(std::move(again));
  EXPECT_EQ(now.digest, digest_of(std::string(50'000'000, 'a')));
  for (const auto& [id, result] : all(queue)) EXPECT_EQ(result.digest, now.digest);
}

TEST_F(HashQueueTest, TheCacheIsConsultedFirst) {
  FakeCache cache;
  HashQueue queue({.cache = &cache, .cache_from = 4});
  HashTask known = made(1, "a", "long enough");
  cache.entries[known.expected] = digest_of("from the cache");
  HashTask again = task(1, "a");
  queue.submit(std::move(known));
  EXPECT_EQ(all(queue).at(1).digest, digest_of("from the cache"));
  EXPECT_EQ(queue.hash_now(std::move(again)).digest, digest_of("from the cache"));
  cache.lookups = 0;
  queue.submit(made(2, "small", "abc"));
  all(queue);
  EXPECT_EQ(cache.lookups, 0) << "small files are hashed sooner than looked up";
}

TEST_F(HashQueueTest, OnlyFilesOlderThanATickGoIntoTheCache) {
  FakeCache cache;
  HashQueue queue({.cache = &cache, .cache_from = 0});
  queue.hash_now(made(1, "new", "one"));
  EXPECT_TRUE(cache.entries.empty());
  grow_old();
  const auto result = queue.hash_now(task(1, "new"));
  EXPECT_EQ(cache.entries.at(stamp("new")), digest_of("one"));
  queue.submit(task(1, "new"));
  all(queue);
  EXPECT_EQ(cache.entries.size(), 1);
}

TEST(RacilyNew, AllowsForTheClockOfTheFileSystem) {
  constexpr std::int64_t kMs = 1'000'000;
  constexpr std::int64_t kS = 1'000 * kMs;
  const auto stamp = [](std::int64_t mtime, std::int64_t ctime) {
    return hash::FileStamp{.mtime_ns = mtime, .ctime_ns = ctime};
  };
  EXPECT_TRUE(racily_new(stamp(5 * kS + 1, 5 * kS + 1), 5 * kS + 10 * kMs));
  EXPECT_FALSE(racily_new(stamp(5 * kS + 1, 5 * kS + 1), 5 * kS + 30 * kMs));
  EXPECT_TRUE(racily_new(stamp(1, 5 * kS + 1), 5 * kS + 10 * kMs)) << "the later one counts";
  EXPECT_TRUE(racily_new(stamp(5 * kS, 5 * kS), 6 * kS)) << "whole seconds";
  EXPECT_FALSE(racily_new(stamp(5 * kS, 5 * kS), 8 * kS));
  EXPECT_TRUE(racily_new(stamp(9 * kS + 1, 9 * kS + 1), 5 * kS)) << "from the future";
}

}  // namespace
}  // namespace assay::lineage
