#include "train/checkpoint/retention.h"

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/folder.h"

namespace assay::checkpoint {

std::vector<std::int64_t> steps_to_remove(std::span<const std::int64_t> steps,
                                          Retention retention) {
  std::vector<std::int64_t> removed;
  if (retention.keep_last <= 0) return removed;
  const auto count = static_cast<std::int64_t>(steps.size());
  for (std::int64_t i = 0; i < count - retention.keep_last; ++i) {
    const std::int64_t step = steps[static_cast<std::size_t>(i)];
    if (retention.keep_every <= 0 || step % retention.keep_every != 0) removed.push_back(step);
  }
  return removed;
}

base::Result<Pruned> prune(const std::filesystem::path& root, Retention retention) {
  Pruned pruned;
  if (retention.keep_last <= 0) return pruned;
  std::vector<std::int64_t> steps;
  {
    ASSAY_TRY(const std::vector<Listed> all, list(root));
    for (const Listed& one : all) {
      if (one.manifest) steps.push_back(one.step);
    }
  }
  for (const std::int64_t step : steps_to_remove(steps, retention)) {
    ASSAY_TRY(const bool removed, remove_folder(root, step_name(step), step));
    (removed ? pruned.removed : pruned.in_use).push_back(step);
  }
  return pruned;
}

}  // namespace assay::checkpoint
