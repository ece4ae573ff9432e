#include "lineage/graph/edit_obstacle.h"

#include <fmt/format.h>

namespace assay::lineage {
namespace {

// What to do about an edited file that the stage needs, because it changes it in place. Once the
// stage that makes the file has run again, those that change it follow.
std::string advice_in_place(const LiveStages& stages, std::size_t stage, const std::string& path) {
  if (const auto maker = stages.maker(stage, path)) {
    return fmt::format("keep a copy, remove it, and `assay run @{}`, which makes it",
                       stages.runs()[*maker].stage);
  }
  return "keep a copy and use --overwrite";
}

}  // namespace

std::string edit_obstacle(const LiveStages& stages, std::size_t stage,
                          const std::vector<std::string>& edited, EditedOutputs policy) {
  if (edited.empty() || policy == EditedOutputs::kOverwrite) return {};
  const std::string& path = edited.front();
  if (stages.reads(stage, path)) {
    return fmt::format("{} was changed by hand and would be changed; {}", path,
                       advice_in_place(stages, stage, path));
  }
  return fmt::format(
      "{} was changed by hand and would be overwritten; keep a copy and remove it, or use "
      "--overwrite",
      path);
}

}  // namespace assay::lineage
