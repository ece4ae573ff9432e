// StoredDigests: the store's hash cache as the tracker uses it. Looking up happens at once; what is
// new is kept until the run is written, in the same transaction.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "lineage/track/hash_queue.h"
#include "store/hash_cache.h"

namespace assay::lineage {

class StoredDigests : public DigestCache {
 public:
  // The Store must outlive it and stay where it is.
  static base::Result<StoredDigests> over(store::Store& store);

  std::optional<hash::Digest> find(const hash::FileStamp& stamp) override;
  void insert(const hash::FileStamp& stamp, const hash::Digest& digest) override;
  // Inside the caller's transaction.
  base::Result<void> write();

 private:
  explicit StoredDigests(store::HashCache cache) : cache_(std::move(cache)) {}

  store::HashCache cache_;
  std::vector<store::HashedFile> fresh_;
};

}  // namespace assay::lineage
