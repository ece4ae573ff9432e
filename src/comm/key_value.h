// KeyValue: how the ranks of a job find each other's data ports. The caller implements it over the
// channel that the job was joined with; comm only puts and gets a few short entries at the start.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace assay::comm {

class KeyValue {
 public:
  virtual ~KeyValue() = default;
  virtual base::Result<void> put(const std::string& key, const std::string& bytes) = 0;
  // Waits until the key has been put by some rank, at most this long.
  virtual base::Result<std::string> get(const std::string& key,
                                        std::chrono::milliseconds timeout) = 0;
};

}  // namespace assay::comm
