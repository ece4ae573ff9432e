// The windows of the log that this process has mapped: a few, each kept while it is written to.
#pragma once

#include <cstdint>

#include "observe/wire/record.h"

namespace assay::shim {

// Whether the window that holds `offset` is mapped, or can be. If it is, the memory there is
// prefetched during the coming open.
bool window_ready(std::uint64_t offset);

// The record at `offset` of the log, writable during this object's lifetime; null if the window
// cannot be mapped.
class Mapped {
 public:
  explicit Mapped(std::uint64_t offset);
  ~Mapped();
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  wire::Record* record() { return record_; }

 private:
  wire::Record* record_ = nullptr;
  std::int32_t slot_ = -1;
  char* temporary_ = nullptr;  // a mapping for this record alone
};

}  // namespace assay::shim
