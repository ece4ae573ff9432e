// OutsideWriters: which other processes have an inherited file of the command open for writing, and
// whether they wrote anything during the run. Writes through inherited descriptors are not
// observed, so when such a file has changed, this is the only evidence of whether the command
// changed it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "observe/collect/process/inherited.h"

namespace assay::collect {

class OutsideWriters {
 public:
  // Before the command starts. Scans all processes, but only if the command inherits a writable
  // file besides its standard streams.
  explicit OutsideWriters(std::span<const Inherited> files);

  // After the command and all its descendants have ended: whether a process outside the run that
  // has or had the file open for writing wrote anything, to any file, since the run began.
  // Processes of other users cannot be inspected and are assumed not to have.
  [[nodiscard]] bool may_have_written(const wire::Stamp& file) const;

 private:
  using FileKey = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
  using ProcessKey = std::pair<pid_t, std::int64_t>;        // pid, start ticks
  using Written = std::optional<std::uint64_t>;             // bytes so far; none: unknown
  using Holders = std::map<FileKey, std::map<ProcessKey, Written>>;

  [[nodiscard]] Holders scan() const;
  void scan_process(pid_t process, Holders& found) const;

  std::set<FileKey> files_;
  pid_t keeper_;
  Holders before_;
  mutable std::optional<Holders> after_;  // scanned at the first call
};

}  // namespace assay::collect
