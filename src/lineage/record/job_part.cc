#include "lineage/record/job_part.h"

#include <optional>
#include <utility>

#include "base/file.h"
#include "lineage/record/context.h"
#include "lineage/record/job_run.h"
#include "store/this_run.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// In a rank's spool folder: which run it is a part of, as rank 0's program told its program.
constexpr const char* kJoinedName = "joined";
constexpr base::Bytes kMostJoined{4096};

}  // namespace

JobPart::JobPart(PartFolder folder)
    : folder_(std::make_unique<const PartFolder>(std::move(folder))) {}

base::Result<JobPart> JobPart::open(const PartOf& part, const std::string& recorder,
                                    base::Environment& environment) {
  ASSAY_TRY(PartFolder folder, PartFolder::open(part, host_name(), recorder));
  JobPart opened(std::move(folder));
  const bool records = part.rank == 0;
  store::set_joined_run({.told = records ? recorder : std::string(),
                         .note = records ? fs::path() : opened.spool() / kJoinedName},
                        environment);
  return opened;
}

fs::path JobPart::spool() const {
  return folder_->part().folder / folder_->recorder();
}

base::Result<void> JobPart::begin_run(const fs::path& spool) {
  alive_ = folder_->working(PartFolder::kAliveEvery);
  return folder_->note_in(spool);
}

Part JobPart::merge(Part own, const Patience& patience,
                    const std::function<void(const std::string&)>& waiting,
                    store::RunRecord& run) const {
  return merge_job(*folder_, std::move(own), patience, waiting, run);
}

base::Result<void> JobPart::hand_over(const std::function<Part()>& make) const {
  const auto told = base::read_file(spool() / kJoinedName, kMostJoined);
  const auto working = folder_->working(PartFolder::kTellEvery);
  Part part = make();
  forget_own_files(folder_->part(), part);
  part.recorder = folder_->recorder();
  if (!told) return folder_->hand_over(part, std::nullopt);
  part.run = *told;
  return folder_->hand_over(part, !told->empty());
}

void JobPart::end() {
  alive_.reset();  // it writes there
  if (folder_->part().rank == 0) {
    folder_->remove();
  } else {
    folder_->leave();
  }
}

}  // namespace assay::lineage
