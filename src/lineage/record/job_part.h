// JobPart: what the recorder of one rank contributes to recording a job of several ranks: rank 0's
// recorder records the run, the others hand it what they recorded (part_folder.h).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/process/environment.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "lineage/record/collect_parts.h"
#include "lineage/record/part.h"
#include "lineage/record/part_folder.h"
#include "store/run.h"

namespace assay::lineage {

class JobPart {
 public:
  // `recorder` is a unique name of this recorder; on rank 0, the run's uid. Sets the variables in
  // `environment` with which the ranks' programs agree on the run (store/this_run.h).
  static base::Result<JobPart> open(const PartOf& part, const std::string& recorder,
                                    base::Environment& environment);

  // Where ranks above 0 keep their event log: in the folder of the parts, which rank 0 removes even
  // if this process is killed.
  [[nodiscard]] std::filesystem::path spool() const;

  // Rank 0, once the run's spool folder exists: notes there where the parts are, for recovery, and
  // until end() tells processes on other nodes that the run is alive.
  base::Result<void> begin_run(const std::filesystem::path& spool);
  // Rank 0: merges its own part with those of the other ranks.
  Part merge(Part own, const PartTimeouts& timeouts,
             const std::function<void(const std::string&)>& waiting, store::RunRecord& run) const;

  // Other ranks: calls `make` for the part, while rank 0 waits, and hands it over.
  base::Result<void> hand_over(const std::function<Part()>& make) const;

  // Removes what is no longer needed: rank 0 everything, once the run is stored; other ranks what
  // they have not handed over.
  void end();

 private:
  explicit JobPart(PartFolder folder);
  [[nodiscard]] std::filesystem::path note() const;
  [[nodiscard]] std::optional<std::string> rank_0_run() const;

  std::unique_ptr<const PartFolder> folder_;  // a pointer, because threads refer to it
  std::unique_ptr<PartFolder::Heartbeat> alive_;
  // The file in which this rank's program saves the uid it got from rank 0 (store/this_run.h). Kept
  // open, because an unrecorded rank 0 may have removed the folder before the file is read.
  base::UniqueFd note_;
};

// Everything that the ranks recorded: rank 0's own part merged with those that the others handed
// over. Missing parts are listed in it. If a rank failed, a run that is kDone becomes kFailed.
// JobPart::merge() does this at the end of a run, and recovery with the parts that exist.
Part merge_job(const PartFolder& folder, Part own, const PartTimeouts& timeouts,
               const std::function<void(const std::string&)>& waiting, store::RunRecord& run);

}  // namespace assay::lineage
