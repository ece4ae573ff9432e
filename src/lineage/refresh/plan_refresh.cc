#include "lineage/refresh/plan_refresh.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lineage/graph/dag_view.h"
#include "lineage/graph/resolve.h"
#include "lineage/redact/command.h"
#include "lineage/refresh/stage_order.h"
#include "store/run_reader.h"

namespace assay::lineage {
namespace {

// Cases in which `run @N` would not fail, but would not do what the user expects either.
std::string obstacle_of(const LiveStages& stages, std::size_t stage,
                        const std::vector<std::string>& edited, EditedOutputs policy) {
  const store::RunRecord& run = stages.runs()[stage];
  for (const std::string& word : run.command) {
    if (is_redacted(word)) {
      return fmt::format(
          "its command contained a secret, '{}', which is not stored; run it again "
          "as a whole: assay run -- …",
          word);
    }
  }
  if (store::read_a_pipe(run)) {
    return fmt::format(
        "its standard input was a pipe, and what came through it was not recorded; give it again: "
        "… | assay run @{}",
        run.stage);
  }
  return edit_obstacle(stages, stage, edited, policy);
}

// The stages that `targets` name (none: all), and all that produce their inputs.
std::set<std::size_t> needed_by(const StageStates& states, const StageOrder& order,
                                const std::vector<std::int64_t>& targets) {
  const auto& runs = states.stages.runs();
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool named = std::find(targets.begin(), targets.end(), runs[i].stage) != targets.end();
    if (targets.empty() || named) wanted.push_back(i);
  }
  return order.with_makers(wanted);
}

}  // namespace

std::vector<PlannedRefresh> plan_refresh(const StageStates& states,
                                         const std::vector<std::int64_t>& targets,
                                         EditedOutputs edited) {
  const StageOrder order(states.stages);
  const auto& runs = states.stages.runs();
  const std::set<std::size_t> needed = needed_by(states, order, targets);
  std::vector<PlannedRefresh> plan;
  for (const std::size_t stage : order.order()) {
    if (states.reasons[stage].empty() || !needed.contains(stage)) continue;
    plan.push_back({runs[stage].stage, runs[stage].id, command_text(runs[stage]),
                    states.reasons[stage],
                    obstacle_of(states.stages, stage, states.edited[stage], edited)});
  }
  return plan;
}

std::vector<std::int64_t> replaced_stages(const StageStates& states,
                                          const std::vector<std::int64_t>& targets) {
  std::vector<std::int64_t> found;
  for (const std::size_t stage : needed_by(states, StageOrder(states.stages), targets)) {
    if (!states.reasons[stage].empty() || states.replaced[stage].empty()) continue;
    found.push_back(states.stages.runs()[stage].stage);
  }
  return found;
}

std::vector<std::int64_t> unsure_stages(const StageStates& states,
                                        const std::vector<std::int64_t>& targets) {
  std::vector<std::int64_t> found;
  for (const std::size_t stage : needed_by(states, StageOrder(states.stages), targets)) {
    if (!states.reasons[stage].empty() || states.doubts[stage].empty()) continue;
    found.push_back(states.stages.runs()[stage].stage);
  }
  return found;
}

base::Result<std::vector<std::int64_t>> stages_of_target(store::Store& store,
                                                         const LiveStages& stages,
                                                         std::string_view text,
                                                         const std::filesystem::path& directory) {
  const std::string where = fmt::format("refresh '{}'", base::shortened(text, 200));
  ASSAY_TRY(const RunOrArtifact what, resolve_name(store, text, directory));
  if (const auto* id = std::get_if<store::RunId>(&what)) {
    for (const store::RunRecord& run : stages.runs()) {
      if (run.id == *id) return std::vector{run.stage};
    }
    ASSAY_TRY(const store::RunRecord run, store::head_of(store, *id));
    if (run.stage == 0) {
      return base::fail(base::usage_error(
          where,
          store::is_about_runs(run) ? "this run made a report about others and is not a stage"
                                    : "this run did not succeed and is not a stage",
          "`assay status` lists the stages"));
    }
    return base::fail(
        base::usage_error(where, fmt::format("run {} is not the current one of its stage", run.id),
                          fmt::format("name the stage: @{}", run.stage)));
  }
  const std::string& path = std::get<Artifact>(what).path;
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < stages.runs().size(); ++i) {
    if (stages.changes(i, path)) found.push_back(stages.runs()[i].stage);
  }
  if (found.empty()) {
    return base::fail(base::usage_error(where, "no stage makes this file",
                                        "`assay lineage` says where it is read"));
  }
  return found;
}

}  // namespace assay::lineage
