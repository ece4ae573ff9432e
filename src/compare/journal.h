// Journal: DIR/runs.jsonl. Its first line is the experiment, then comes a line per run, written
// before the next run starts, one for every stretch in which the host misbehaved, for every
// sitting, every look and every change of rules. A block that is done is on the disk; of one that
// is not, no pair could be made anyway. All results are made from it.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "compare/records.h"

namespace assay::compare {

class Journal {
 public:
  // In a folder that is made, and must not have one already.
  static base::Result<Journal> create(const std::filesystem::path& directory,
                                      const Experiment& experiment);
  // One that is there, with what it says in `measured`; a line that was cut short is taken off.
  static base::Result<Journal> open(const std::filesystem::path& directory, Measured& measured);

  base::Result<void> add(const ArmRun& run);
  base::Result<void> add(const FailedRun& run);
  base::Result<void> add(const HostMark& mark);
  base::Result<void> add(const Sitting& sitting);
  base::Result<void> add(const RuleChange& change);
  base::Result<void> add(const Look& look);
  // What was added survives the machine from here on; the process's end it survives at once.
  base::Result<void> sync();
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  // DIR/out/0007-B.out, and .err
  [[nodiscard]] std::filesystem::path output(std::int64_t run, const std::string& arm,
                                             const char* extension) const;

 private:
  Journal(std::filesystem::path directory, base::UniqueFd fd)
      : directory_(std::move(directory)), fd_(std::move(fd)) {}
  base::Result<void> append(const base::Json& line);

  std::filesystem::path directory_;
  base::UniqueFd fd_;
};

// What the journal in a folder says, for who only looks: nothing is locked or changed, and a line
// that is being written is left out.
base::Result<Measured> read_journal(const std::filesystem::path& directory);

}  // namespace assay::compare
