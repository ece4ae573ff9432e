// OutsideWriters: who else has a file open for writing that the command was given as a descriptor,
// and whether they wrote while it ran. Nobody sees what goes through such a descriptor, so when the
// file has changed this is all the evidence there is of whose change it was.
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
  // Before the command starts. Looks through all processes, but only if there is a file that the
  // command may write to through a descriptor other than its standard streams.
  explicit OutsideWriters(std::span<const Inherited> files);

  // When the command and all its descendants have ended: whether a process outside the run that has
  // the file open for writing, or had when the run began, wrote anything, to whatever file, since
  // then. Processes of other users cannot be asked and are taken to have no part in it.
  [[nodiscard]] bool may_have_written(const wire::Stamp& file) const;

 private:
  using FileKey = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
  using ProcessKey = std::pair<pid_t, std::int64_t>;        // pid, start ticks
  using Written = std::optional<std::uint64_t>;             // bytes so far; none: not to be known
  using Holders = std::map<FileKey, std::map<ProcessKey, Written>>;

  [[nodiscard]] Holders look() const;
  void look_into(pid_t process, Holders& found) const;

  std::set<FileKey> files_;
  pid_t keeper_;
  Holders before_;
  mutable std::optional<Holders> after_;  // looked for when it is first asked
};

}  // namespace assay::collect
