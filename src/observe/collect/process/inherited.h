// Files that the command inherits as open descriptors (`assay run -- cmd < in > out`): no call of
// the command names them, so they are determined before it starts.
#pragma once

#include <string>
#include <vector>

#include "observe/collect/event/log.h"

namespace assay::collect {

struct Inherited {
  int descriptor = -1;
  bool readable = false;
  bool writable = false;
  bool appends = false;  // every write goes to the end
  std::string path;      // empty: longer than PATH_MAX
  wire::Stamp stamp;
  bool racy = false;  // so new that a change may not show in the stamp
};

constexpr bool is_standard_stream(int descriptor) {
  return descriptor <= 2;
}

// This process's descriptors that exec will pass on and that are regular files.
std::vector<Inherited> inherited_files();
// All descriptors that exec will pass on, above standard error.
std::vector<int> inherited_descriptors();

// Appends them as the first events of `command`; an event's value is the descriptor.
void append_inherited(const std::vector<Inherited>& files, pid_t command, EventLog& log);

}  // namespace assay::collect
