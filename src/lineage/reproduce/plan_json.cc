#include "lineage/reproduce/plan_json.h"

#include <utility>

#include "lineage/export/common.h"

namespace assay::lineage {

base::Json to_json(const ReproductionPlan& plan) {
  base::Json stages = base::Json::array();
  for (const PlannedStage& stage : plan.stages) {
    base::Json externals = base::Json::array();
    for (const ExternalInput& one : stage.externals) {
      externals.push_back(
          {{"path", one.path},
           {"blake3", one.blake3 ? base::Json(one.blake3->hex()) : base::Json()},
           {"size", one.size < 0 ? base::Json() : base::Json(one.size)},
           {"state", to_text(one.state)},
           {"from", one.found.empty() ? base::Json() : base::Json(one.found)},
           {"same_content", one.same_content ? base::Json{{"run", one.same_content->run},
                                                          {"path", one.same_content->path}}
                                             : base::Json()}});
    }
    base::Json source;
    if (const auto& git = stage.run.context.git) {
      source = {{"remote", git->remote},          {"repository", git->root},
                {"commit", git->commit},          {"dirty", git->dirty},
                {"diff_bytes", git->diff.size()}, {"left_out", git->left_out}};
    }
    stages.push_back({{"run", stage.run.id},
                      {"name", title_of(stage.run)},
                      {"build", stage.run.build},
                      {"command", stage.run.command},
                      {"directory", stage.run.directory},
                      {"redirects", stage.run.redirects},
                      {"source", std::move(source)},
                      {"inputs", std::move(externals)},
                      {"made_before", stage.made_before},
                      {"outputs", stage.run.outputs.size()},
                      {"secrets", stage.secrets}});
  }
  base::Json differences = base::Json::array();
  for (const EnvironmentDifference& one : plan.differences) {
    differences.push_back({{"what", one.what}, {"recorded", one.recorded}, {"here", one.here}});
  }
  base::Json obstacles = base::Json::array();
  for (const Obstacle& one : plan.obstacles) obstacles.push_back(one.text);
  return {{"artifact",
           {{"path", plan.artifact_path},
            {"blake3", plan.artifact ? base::Json(plan.artifact->hex()) : base::Json()}}},
          {"root", plan.root},
          {"stages", std::move(stages)},
          {"environments", plan.environments},
          {"differences", std::move(differences)},
          {"obstacles", std::move(obstacles)},
          {"notes", plan.notes}};
}

}  // namespace assay::lineage
