// Windows of the log as this process has them mapped: a few, each kept while someone writes in it.
#pragma once

#include <cstdint>

#include "observe/wire/record.h"

namespace assay::shim {

// Whether the window that holds `offset` is mapped, or can be. If it is, the processor is told to
// fetch what lies there: it has the time of the coming open for it.
bool window_ready(std::uint64_t offset);

// The record at `offset` of the log, writable while this object lives; null when the window cannot
// be mapped.
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
