#include "lineage/record/job_part.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/host_name.h"
#include "base/process/exit_status.h"
#include "lineage/record/merge_parts.h"
#include "store/this_run.h"

namespace assay::lineage {
namespace {

namespace fs = std::filesystem;

// Removes from the part the files that the recording itself left in the folder of parts.
void forget_own_files(const PartOf& job, Part& part) {
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(job.folder, error);
  const std::string below = (error ? job.folder : canonical).native() + "/";
  const auto is_own = [&](const auto& file) { return file.what.path.starts_with(below); };
  std::erase_if(part.inputs, is_own);
  std::erase_if(part.outputs, is_own);
  std::erase_if(part.files_left_out, is_own);
}

}  // namespace

JobPart::JobPart(PartFolder folder)
    : folder_(std::make_unique<const PartFolder>(std::move(folder))) {}

base::Result<JobPart> JobPart::open(const PartOf& part, const std::string& recorder,
                                    base::Environment& environment) {
  ASSAY_TRY(PartFolder folder, PartFolder::open(part, base::host_name(), recorder));
  JobPart opened(std::move(folder));
  if (part.rank == 0) {
    store::set_joined_run({.run_uid = recorder, .note = {}}, environment);
    return opened;
  }
  ASSAY_TRY_VOID(base::write_file(opened.note(), ""));
  ASSAY_TRY(opened.note_, base::open_regular(opened.note()));
  store::set_joined_run({.run_uid = {}, .note = opened.note()}, environment);
  return opened;
}

fs::path JobPart::note() const {
  return folder_->part().folder / (folder_->recorder() + ".joined");
}

std::optional<std::string> JobPart::rank_0_run() const {
  std::array<char, 256> text{};
  const ssize_t got = ::pread(note_.get(), text.data(), text.size(), 0);
  if (got <= 0) return std::nullopt;
  return store::joined_run_of_note(std::string_view(text.data(), static_cast<std::size_t>(got)));
}

fs::path JobPart::spool() const {
  return folder_->part().folder / folder_->recorder();
}

base::Result<void> JobPart::begin_run(const fs::path& spool) {
  alive_ = folder_->start_heartbeat(PartFolder::kRunHeartbeat);
  return folder_->note_in(spool);
}

Part JobPart::merge(Part own, const PartTimeouts& timeouts,
                    const std::function<void(const std::string&)>& waiting,
                    store::RunRecord& run) const {
  return merge_job(*folder_, std::move(own), timeouts, waiting, run);
}

base::Result<void> JobPart::hand_over(const std::function<Part()>& make) const {
  const auto start_heartbeat = folder_->start_heartbeat(PartFolder::kPartHeartbeat);
  Part part = make();
  forget_own_files(folder_->part(), part);
  part.recorder = folder_->recorder();
  const std::optional<std::string> run = rank_0_run();
  if (!run) return folder_->hand_over(part, std::nullopt);
  part.run = *run;
  return folder_->hand_over(part, !run->empty());
}

void JobPart::end() {
  alive_.reset();  // it writes there
  if (folder_->part().rank == 0) {
    folder_->remove();
  } else {
    std::error_code ignored;
    fs::remove(note(), ignored);
    folder_->leave();
  }
}

Part merge_job(const PartFolder& folder, Part own, const PartTimeouts& timeouts,
               const std::function<void(const std::string&)>& waiting, store::RunRecord& run) {
  forget_own_files(folder.part(), own);
  std::vector<Part> parts;
  parts.push_back(std::move(own));
  CollectedParts others = collect_parts(folder, timeouts, waiting);
  for (const Part& part : others.parts) {
    if (part.wait_status.value_or(0) == 0) continue;
    parts[0].problems.push_back({"rank", fmt::format("rank {} on {} {}", part.rank, part.host,
                                                     base::exit_text(*part.wait_status))});
    if (run.status != store::RunStatus::kDone) continue;
    // Rank 0's own command succeeded, but it is only one of the ranks.
    run.status = store::RunStatus::kFailed;
    run.exit_code = base::shell_exit_code(*part.wait_status);
    run.signal = base::signal_of(*part.wait_status);
  }
  std::ranges::move(others.parts, std::back_inserter(parts));
  Part whole = merge_parts(std::move(parts));
  for (store::Missed& missing : others.missing) whole.missed(std::move(missing));
  return whole;
}

}  // namespace assay::lineage
