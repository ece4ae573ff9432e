#include "store/hash_cache.h"

#include <bit>

#include "store/column_encoding.h"

namespace assay::store {
namespace {

// SQLite's integers are signed; the bits are the same.
std::int64_t as_signed(std::uint64_t value) {
  return std::bit_cast<std::int64_t>(value);
}

}  // namespace

base::Result<HashCache> HashCache::prepare(Store& store) {
  ASSAY_TRY(Statement find, store.database().prepare(
                                "SELECT blake3 FROM hash_cache WHERE device = ?1 AND inode = ?2"
                                " AND size = ?3 AND mtime_ns = ?4 AND ctime_ns = ?5"));
  ASSAY_TRY(Statement insert,
            store.database().prepare("INSERT OR REPLACE INTO hash_cache (device, inode, size,"
                                     " mtime_ns, ctime_ns, blake3, hashed_ns)"
                                     " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"));
  return HashCache(std::move(find), std::move(insert));
}

base::Result<std::optional<hash::Digest>> HashCache::find(const hash::FileStamp& stamp) {
  ASSAY_TRY_VOID(find_.bind(as_signed(stamp.device), as_signed(stamp.inode), stamp.size,
                            stamp.mtime_ns, stamp.ctime_ns));
  ASSAY_TRY(const bool row, find_.next_row());
  std::optional<hash::Digest> digest;
  if (row) digest = digest_at(find_, 0);
  find_.reset();
  return digest;
}

base::Result<void> HashCache::insert(const HashedFile& file) {
  const hash::FileStamp& stamp = file.stamp;
  const std::int64_t settled = file.hashed_unix_ns - kStampTick_ns;
  if (stamp.ctime_ns > settled || stamp.mtime_ns > settled) return {};
  ASSAY_TRY_VOID(insert_.bind(as_signed(stamp.device), as_signed(stamp.inode), stamp.size,
                              stamp.mtime_ns, stamp.ctime_ns, file.digest.bytes,
                              file.hashed_unix_ns));
  return insert_.run();
}

base::Result<std::int64_t> forget_hashes_before(Database& database, std::int64_t unix_ns) {
  ASSAY_TRY(Statement forget, database.prepare("DELETE FROM hash_cache WHERE hashed_ns < ?1"));
  ASSAY_TRY_VOID(forget.bind(unix_ns));
  ASSAY_TRY_VOID(forget.run());
  return database.changes();
}

}  // namespace assay::store
