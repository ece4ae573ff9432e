// The hash cache: the digest of a file with a given stamp. A hit saves reading the file. Table
// `hash_cache`.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "hash/file.h"
#include "store/store.h"

namespace assay::store {

struct HashedFile {
  hash::FileStamp stamp;
  hash::Digest digest;
  std::int64_t hashed_unix_ns = 0;  // wall clock when the hashing began
};

// Kernels stamp files with a clock that ticks every 1 to 10 ms, so a file that was hashed within a
// tick of its last change may change again under the same stamp.
inline constexpr std::int64_t kStampTick_ns = 20'000'000;

// The Store must outlive it and stay where it is.
class HashCache {
 public:
  static base::Result<HashCache> prepare(Store& store);

  base::Result<std::optional<hash::Digest>> find(const hash::FileStamp& stamp);
  // Part of the caller's transaction if there is one; otherwise each call commits. A file that was
  // changed less than a tick before it was hashed is not added.
  base::Result<void> insert(const HashedFile& file);

 private:
  HashCache(Statement find, Statement insert)
      : find_(std::move(find)), insert_(std::move(insert)) {}

  Statement find_;
  Statement insert_;
};

// Removes entries made before this time, in the caller's transaction if there is one; returns how
// many.
base::Result<std::int64_t> forget_hashes_before(Database& database, std::int64_t unix_ns);

}  // namespace assay::store
