// KeyValue: how the ranks of a job find each other's data ports. The caller implements it, usually
// over the control channel; comm only puts and gets a few short entries at the start.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace assay::comm {

class KeyValue {
 public:
  virtual ~KeyValue() = default;
  virtual base::Result<void> put(const std::string& key, const std::string& bytes) = 0;
  // Waits until some rank has put the key, at most `timeout`.
  virtual base::Result<std::string> get(const std::string& key,
                                        std::chrono::milliseconds timeout) = 0;
};

}  // namespace assay::comm
