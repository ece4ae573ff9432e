// The hash cache: the digest of a file with a given stamp. A hit saves reading the file. Table
// `hash_cache`.
//
// Files that were made together have inodes near each other, and are read together. So a row holds
// the files of kInodes consecutive inodes: for ten thousand small files, the rows are a thousandth
// of the cost of reading them, and one row each would be half of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

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
  // Part of the caller's transaction if there is one; otherwise each row commits. Files that were
  // changed less than a tick before they were hashed are not added.
  base::Result<void> insert(std::span<const HashedFile> files);
  base::Result<void> insert(const HashedFile& file) { return insert(std::span(&file, 1)); }

 private:
  // Of the files with these inodes.
  using Key = std::pair<std::int64_t, std::int64_t>;  // device, inode / kInodes
  HashCache(Database& database, Statement find) : database_(&database), find_(std::move(find)) {}
  base::Result<std::string> read(const Key& key);

  Database* database_;
  Statement find_;
  std::map<Key, std::string> known_;  // rows that were read, empty if there is none
};

// Removes rows to which nothing was added since this time, in the caller's transaction if there is
// one; returns how many files they held.
base::Result<std::int64_t> forget_hashes_before(Database& database, std::int64_t unix_ns);

}  // namespace assay::store
