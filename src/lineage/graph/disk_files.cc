#include "lineage/graph/disk_files.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "hash/file.h"

namespace assay::lineage {

base::Result<DiskFiles> DiskFiles::open(store::Store& store) {
  ASSAY_TRY(store::HashCache cache, store::HashCache::prepare(store));
  return DiskFiles(store, std::move(cache));
}

OnDisk DiskFiles::check(const std::string& path, const hash::Digest& content, std::int64_t size) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? OnDisk::kMissing : OnDisk::kChanged;
  }
  if (!S_ISREG(status.st_mode) || status.st_size != size) return OnDisk::kChanged;
  const auto known = cache_.find(hash::stamp_of(status));
  if (known && *known) return **known == content ? OnDisk::kSame : OnDisk::kChanged;
  const std::int64_t now = base::system_clock().wall_ns();
  const auto hashed = hash::hash_file(path);
  if (!hashed || hashed->changed) return OnDisk::kChanged;
  hashed_.push_back({hashed->stamp, hashed->digest, now});
  return hashed->digest == content ? OnDisk::kSame : OnDisk::kChanged;
}

base::Result<void> DiskFiles::save_hashes() {
  if (hashed_.empty()) return {};
  ASSAY_TRY(store::Transaction transaction, store::Transaction::begin(store_->database()));
  for (const store::HashedFile& file : hashed_) ASSAY_TRY_VOID(cache_.insert(file));
  ASSAY_TRY_VOID(transaction.commit());
  hashed_.clear();
  return {};
}

}  // namespace assay::lineage
