// Compares files on disk with what was recorded: by the hash cache if it has the file's stamp, else
// by reading them.
#pragma once

#include <sys/stat.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/filter/filter.h"
#include "lineage/graph/staleness.h"
#include "store/hash_cache.h"
#include "store/store.h"

namespace assay::lineage {

class DiskFiles {
 public:
  // The Store must outlive it and must not be moved.
  static base::Result<DiskFiles> open(store::Store& store);

  // A file that cannot be read counts as changed. Never fails: an unreadable cache is ignored.
  OnDisk check(const std::string& path, const hash::Digest& content, std::int64_t size);

  // Whether the file begins with this content.
  static bool begins(const std::string& path, const hash::Digest& content, std::int64_t size);

  // What is at `path` now; nothing if that is not a readable file.
  std::optional<hash::Digest> content_of(const std::string& path);

  // The newest run that left what is at `path` now; 0: none, so that it was changed by hand or by
  // an unrecorded program.
  store::RunId writer_of(const std::string& path);

  // The callbacks for freshness(). This object must outlive them.
  DiskQueries queries();

  // Writes new digests to the cache.
  base::Result<void> save_hashes();

 private:
  std::optional<hash::Digest> content_at(const std::string& path, const struct stat& status);
  DiskFiles(store::Store& store, store::HashCache cache, Filter filter)
      : store_(&store), cache_(std::move(cache)), filter_(std::move(filter)) {}

  store::Store* store_;
  store::HashCache cache_;
  Filter filter_;
  std::vector<store::HashedFile> hashed_;
  std::map<std::string, std::optional<Interpreter>> interpreters_;  // by the name asked for
};

}  // namespace assay::lineage
