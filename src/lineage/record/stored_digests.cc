#include "lineage/record/stored_digests.h"

#include "base/clock.h"

namespace assay::lineage {
namespace {

// A bound on memory; whoever hashes more large files than this in one run hashes some again.
constexpr std::size_t kMostFresh = 200'000;

}  // namespace

base::Result<StoredDigests> StoredDigests::over(store::Store& store) {
  ASSAY_TRY(store::HashCache cache, store::HashCache::prepare(store));
  return StoredDigests(std::move(cache));
}

std::optional<hash::Digest> StoredDigests::find(const hash::FileStamp& stamp) {
  auto found = cache_.find(stamp);
  return found ? *found : std::nullopt;  // a cache that cannot be read is an empty one
}

void StoredDigests::insert(const hash::FileStamp& stamp, const hash::Digest& digest) {
  if (fresh_.size() >= kMostFresh) return;
  fresh_.push_back({stamp, digest, base::system_clock().wall_ns()});
}

base::Result<void> StoredDigests::write() {
  for (const store::HashedFile& file : fresh_) ASSAY_TRY_VOID(cache_.insert(file));
  fresh_.clear();
  return {};
}

}  // namespace assay::lineage
