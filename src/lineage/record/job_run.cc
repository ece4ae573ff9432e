#include "lineage/record/job_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/process/exit_status.h"
#include "lineage/record/merge_parts.h"

namespace assay::lineage {

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

void forget_own_files(const PartOf& job, Part& part) {
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(job.folder, error);
  const std::string below = (error ? job.folder : canonical).native() + "/";
  const auto is_own = [&](const auto& file) { return file.what.path.starts_with(below); };
  std::erase_if(part.inputs, is_own);
  std::erase_if(part.outputs, is_own);
  std::erase_if(part.files_left_out, is_own);
}

}  // namespace assay::lineage
