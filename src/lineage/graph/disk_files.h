// Files as they are on disk now, compared with what was recorded: by the hash cache where the stamp
// is known, else by reading them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/graph/staleness.h"
#include "store/hash_cache.h"
#include "store/store.h"

namespace assay::lineage {

class Files {
 public:
  // The Store must outlive it and stay where it is.
  static base::Result<Files> open(store::Store& store);

  // A file that cannot be read has changed. Never fails: a cache that cannot be asked is no cache.
  OnDisk check(const std::string& path, const hash::Digest& content, std::int64_t size);

  // Keeps what was hashed for the next time.
  base::Result<void> remember();

 private:
  Files(store::Store& store, store::HashCache cache) : store_(&store), cache_(std::move(cache)) {}

  store::Store* store_;
  store::HashCache cache_;
  std::vector<store::HashedFile> hashed_;
};

}  // namespace assay::lineage
