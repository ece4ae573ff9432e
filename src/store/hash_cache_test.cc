#include "store/hash_cache.h"

#include "store/run_writer.h"
#include "store/testing/runs.h"
#include "store/testing/runs_fixture.h"

namespace assay::store {
namespace {

using testing::digest_of;

class HashCacheTest : public testing::RunsTest {};

// Device and inode use all 64 bits on some file systems.
constexpr hash::FileStamp kStamp{~0ULL, 0x8000000000000001ULL, 12, 1000, 2000};
constexpr std::int64_t kLater = 2000 + kStampTick_ns;

TEST_F(HashCacheTest, AnswersOnlyForTheVeryStamp) {
  HashCache cache = *HashCache::prepare(store_);
  EXPECT_EQ(*cache.find(kStamp), std::nullopt);
  ASSERT_TRUE(cache.insert({kStamp, digest_of("a"), kLater}));
  EXPECT_EQ(*cache.find(kStamp), digest_of("a"));
  for (auto change :
       {+[](hash::FileStamp& s) { s.device ^= 1; }, +[](hash::FileStamp& s) { ++s.inode; },
        +[](hash::FileStamp& s) { ++s.size; }, +[](hash::FileStamp& s) { ++s.mtime_ns; },
        +[](hash::FileStamp& s) { ++s.ctime_ns; }}) {
    hash::FileStamp other = kStamp;
    change(other);
    EXPECT_EQ(*cache.find(other), std::nullopt);
  }
}

TEST_F(HashCacheTest, ANewStampReplacesTheOldOne) {
  HashCache cache = *HashCache::prepare(store_);
  hash::FileStamp changed = kStamp;
  changed.ctime_ns += 5;
  ASSERT_TRUE(cache.insert({kStamp, digest_of("a"), kLater}));
  ASSERT_TRUE(cache.insert({changed, digest_of("b"), kLater + 5}));
  EXPECT_EQ(*cache.find(changed), digest_of("b"));
  EXPECT_EQ(*cache.find(kStamp), std::nullopt);
  EXPECT_EQ(*store_.database().integer("SELECT count(*) FROM hash_cache"), 1);
}

// Files with inodes near each other share a row.
TEST_F(HashCacheTest, EveryFileHasItsOwnDigest) {
  HashCache cache = *HashCache::prepare(store_);
  std::vector<HashedFile> files;
  for (std::uint64_t inode = 0; inode < 500; inode += inode % 7 + 1) {
    const auto number = static_cast<std::int64_t>(inode);
    files.push_back({{inode % 3, ~inode, number, 7, 9}, digest_of(std::to_string(inode)), kLater});
  }
  ASSERT_TRUE(cache.insert(std::span(files).first(100)));
  ASSERT_TRUE(cache.insert(std::span(files).subspan(50)));
  EXPECT_LT(*store_.database().integer("SELECT count(*) FROM hash_cache"), 150);
  HashCache again = *HashCache::prepare(store_);
  for (const HashedFile& file : files) {
    EXPECT_EQ(*cache.find(file.stamp), file.digest);
    EXPECT_EQ(*again.find(file.stamp), file.digest);
  }
  EXPECT_EQ(*forget_hashes_before(store_.database(), kLater + 1), std::ssize(files));
}

TEST_F(HashCacheTest, AFileHashedWithinATickOfItsChangeIsNotTrusted) {
  HashCache cache = *HashCache::prepare(store_);
  ASSERT_TRUE(cache.insert({kStamp, digest_of("a"), kLater - 1}));
  EXPECT_EQ(*cache.find(kStamp), std::nullopt);
}

TEST_F(HashCacheTest, OldEntriesAreForgotten) {
  HashCache cache = *HashCache::prepare(store_);
  ASSERT_TRUE(cache.insert({kStamp, digest_of("a"), kLater}));
  EXPECT_EQ(*forget_hashes_before(store_.database(), kLater), 0);
  EXPECT_EQ(*forget_hashes_before(store_.database(), kLater + 1), 1);
  EXPECT_EQ(*cache.find(kStamp), std::nullopt);
}

}  // namespace
}  // namespace assay::store
