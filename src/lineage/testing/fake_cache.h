// FakeCache: a DigestCache in memory with public contents.
#pragma once

#include <map>
#include <optional>

#include "lineage/track/hash_queue.h"

namespace assay::lineage::testing {

class FakeCache : public DigestCache {
 public:
  std::optional<hash::Digest> find(const hash::FileStamp& stamp) override {
    ++lookups;
    const auto found = entries.find(stamp);
    return found == entries.end() ? std::nullopt : std::optional(found->second);
  }
  void insert(const hash::FileStamp& stamp, const hash::Digest& digest) override {
    entries[stamp] = digest;
  }
  std::map<hash::FileStamp, hash::Digest> entries;
  int lookups = 0;
};

}  // namespace assay::lineage::testing
