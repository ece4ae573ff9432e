#include "lineage/graph/dag.h"

#include "lineage/graph/dag_builder.h"
#include "store/run_reader.h"
#include "store/stages.h"

namespace assay::lineage {

Dag live_dag(const LiveStages& stages) {
  DagBuilder builder;
  for (const store::RunRecord& run : stages.runs()) builder.add_run(run);
  for (std::size_t stage = 0; stage < stages.runs().size(); ++stage) {
    const store::RunRecord& run = stages.runs()[stage];
    for (const store::Output& output : run.outputs) builder.add_output(stage, output);
  }
  for (std::size_t stage = 0; stage < stages.runs().size(); ++stage) {
    for (const store::Input& input : stages.needs(stage)) {
      const auto source = stages.source(stage, input);
      if (!source) {
        const auto twin = stages.twin(stage, input);
        builder.add_outside_input(
            stage, input,
            twin ? std::optional(Twin{stages.runs()[twin->stage].id, twin->output->path})
                 : std::nullopt);
        continue;
      }
      const bool stale =
          input.blake3 && source->output->blake3 && *input.blake3 != *source->output->blake3;
      builder.add_input(stage, {.file = builder.add_output(source->stage, *source->output),
                                .stale = stale,
                                .written_into = input.size < 0});
    }
  }
  return builder.take();
}

base::Result<LiveStages> load_live_stages(store::Store& store) {
  ASSAY_TRY(const store::Snapshot snapshot, store::Snapshot::begin(store.database()));
  ASSAY_TRY(std::vector<store::RunRecord> runs, store::live_runs(store));
  for (store::RunRecord& run : runs) {
    ASSAY_TRY_VOID(store::each_input(
        store, run.id, -1, [&](store::Input input) { run.inputs.push_back(std::move(input)); }));
    ASSAY_TRY_VOID(store::each_output(store, run.id, -1, [&](store::Output output) {
      run.outputs.push_back(std::move(output));
    }));
  }
  return LiveStages(std::move(runs));
}

}  // namespace assay::lineage
