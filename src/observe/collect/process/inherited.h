// Files that the command gets as open descriptors (`assay run -- cmd < in > out`): no call of the
// command ever names them, so they are looked up before it starts.
#pragma once

#include <string>
#include <vector>

#include "observe/collect/event/log.h"

namespace assay::collect {

struct Inherited {
  int descriptor = -1;
  bool readable = false;
  bool writable = false;
  std::string path;  // empty: longer than the kernel tells
  wire::Stamp stamp;
  bool racy = false;  // so new that a change need not show in the stamp
};

constexpr bool is_standard_stream(int descriptor) {
  return descriptor <= 2;
}

// This process's descriptors that exec will pass on and that are regular files.
std::vector<Inherited> inherited_files();
// All descriptors that exec will pass on, above standard error.
std::vector<int> inherited_descriptors();

// As events of `command`, the first that the log has; their value is the descriptor.
void append_inherited(const std::vector<Inherited>& files, pid_t command, Log& log);

}  // namespace assay::collect
