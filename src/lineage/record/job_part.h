// JobPart: the share that the recorder of one rank has in recording a job of several: rank 0
// records the run, the others hand it what they recorded (part_folder.h).
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
  // `recorder` is the uid of what this process records: of rank 0, the run's. The command's
  // environment gets what its program needs to agree on the run with the other ranks' programs.
  static base::Result<JobPart> open(const PartOf& part, const std::string& recorder,
                                    base::Environment& environment);

  // Where ranks above 0 keep their event log: in the folder of the parts, which rank 0 removes,
  // whatever becomes of this process.
  [[nodiscard]] std::filesystem::path spool() const;

  // Rank 0, once the run's spool folder is there: who recovers the run will find the parts; and
  // until end(), processes on other nodes see that it still runs.
  base::Result<void> begin_run(const std::filesystem::path& spool);
  // Rank 0: its own part and those of the others, as one (job_run.h).
  Part merge(Part own, const Patience& patience,
             const std::function<void(const std::string&)>& waiting, store::RunRecord& run) const;

  // Other ranks: `make` makes the part, while rank 0 waits for it.
  base::Result<void> hand_over(const std::function<Part()>& make) const;

  // Removes what is not needed any more: of rank 0 everything, once the run is stored; of the
  // others what they have not handed over.
  void end();

 private:
  explicit JobPart(PartFolder folder);
  [[nodiscard]] std::filesystem::path note() const;
  [[nodiscard]] std::optional<std::string> told() const;

  std::unique_ptr<const PartFolder> folder_;  // stays where it is: threads use it
  std::unique_ptr<PartFolder::Working> alive_;
  // Where this rank's program notes what rank 0's told it. Open, because a rank 0 that is not
  // recorded may have ended and removed the folder when it is read.
  base::UniqueFd note_;
};

}  // namespace assay::lineage
