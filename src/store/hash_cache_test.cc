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
