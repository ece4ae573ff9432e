#include "lineage/reproduce/choose_runs.h"

#include <cstdint>

#include "lineage/archive/archive.h"
#include "lineage/graph/upstream.h"
#include "lineage/record/context.h"
#include "lineage/reproduce/environment_diff.h"
#include "store/artifacts.h"
#include "store/run_reader.h"

namespace assay::lineage {
namespace {

base::Result<void> find_places(store::Store& store, ChosenRuns& chosen) {
  constexpr std::int64_t kMost = 16;
  for (const store::RunRecord& run : chosen.runs) {
    for (const store::Input& input : run.inputs) {
      if (!input.blake3 || chosen.places.contains(*input.blake3)) continue;
      std::vector<std::string>& paths = chosen.places[*input.blake3];
      ASSAY_TRY(const auto made, store::producers_of(store, *input.blake3, kMost));
      ASSAY_TRY(const auto read, store::consumers_of(store, *input.blake3, kMost));
      for (const auto* files : {&made, &read}) {
        for (const store::FileAt& file : *files) paths.push_back(file.path);
      }
    }
  }
  return {};
}

base::Result<void> find_same_contents(store::Store& store, ChosenRuns& chosen) {
  ASSAY_TRY(store::Producers producers, store::Producers::prepare(store));
  for (const store::RunRecord& run : chosen.runs) {
    for (const store::Input& input : run.inputs) {
      ASSAY_TRY(const auto made, producers.of(run, input));
      if (made) continue;
      ASSAY_TRY(const auto same, producers.same_content(run, input));
      if (same) chosen.same_contents.insert({{run.id, input.path}, {same->run, same->path}});
    }
  }
  return {};
}

}  // namespace

base::Result<ChosenRuns> choose_runs(store::Store& store, const Artifact& artifact) {
  ASSAY_TRY(const store::RunId producer, producer_of(store, artifact));
  ASSAY_TRY(const store::RunRecord head, store::head_of(store, producer));
  ASSAY_TRY(const std::vector<store::RunId> builds, build_runs_before(store, head));
  ChosenRuns chosen;
  ASSAY_TRY(const std::vector<store::RunId> roots, producers_of(store, artifact));
  if (artifact.is_folder) {
    ASSAY_TRY(const std::vector<store::FileAt> files, store::files_below(store, artifact.path));
    for (const store::FileAt& file : files) chosen.folder_files.push_back(file.path);
  }
  ASSAY_TRY(chosen.runs, upstream_of(store, roots, artifact.path, builds));
  ASSAY_TRY_VOID(find_places(store, chosen));
  ASSAY_TRY_VOID(find_same_contents(store, chosen));
  return chosen;
}

base::Result<ReproductionPlan> plan_reproduction(store::Store& store, const Artifact& artifact,
                                                 std::map<std::string, std::string> environment) {
  ASSAY_TRY(ChosenRuns chosen, choose_runs(store, artifact));
  std::vector<EnvironmentDifference> differences =
      environment_differences(chosen.runs, machine_facts(store.location().directory));
  return make_plan({.runs = std::move(chosen.runs),
                    .project_root = store.location().project.string(),
                    .artifact_path = artifact.path,
                    .artifact = artifact.blake3,
                    .folder_files = std::move(chosen.folder_files),
                    .differences = std::move(differences),
                    .places = std::move(chosen.places),
                    .same_contents = std::move(chosen.same_contents),
                    .archived = [archive = Archive(store.location())](
                                    const hash::Digest& content) -> std::optional<std::string> {
                      if (!archive.has_undamaged(content)) return std::nullopt;
                      return archive.file_of(content).string();
                    },
                    .environment = std::move(environment)});
}

}  // namespace assay::lineage
