// Journal: DIR/runs.jsonl. The first line is the experiment; then one line per run, written before
// the next run starts, and one per host problem, session, interim analysis and change of rules. The
// file is synced after each complete block. All results are computed from the journal.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "compare/records.h"

namespace assay::compare {

// Whether the folder has a journal with a complete first line. A process that was killed at its
// very start leaves one without, in which nothing can have been measured.
bool has_begun(const std::filesystem::path& directory);

class Journal {
 public:
  // Creates the folder; an error if an experiment has begun in it.
  static base::Result<Journal> create(const std::filesystem::path& directory,
                                      const Experiment& experiment);
  // Opens and locks an existing journal and reads it into `measured`; a truncated last line is
  // removed.
  static base::Result<Journal> open(const std::filesystem::path& directory, Measured& measured);

  base::Result<void> add(const ArmRun& run);
  base::Result<void> add(const FailedRun& run);
  base::Result<void> add(const HostMark& mark);
  base::Result<void> add(const SessionRecord& session);
  base::Result<void> add(const RuleChange& change);
  base::Result<void> add(const InterimAnalysis& analysis);
  // Syncs to disk. Without it, lines survive a crash of the process but not of the machine.
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

// Reads a journal without locking or changing it; an incomplete last line is skipped.
base::Result<Measured> read_journal(const std::filesystem::path& directory);

}  // namespace assay::compare
