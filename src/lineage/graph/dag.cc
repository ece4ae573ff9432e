#include "lineage/graph/dag.h"

#include "lineage/graph/dag_builder.h"
#include "store/job_reader.h"
#include "store/steps.h"

namespace assay::lineage {

Dag live_dag(const LiveSteps& steps) {
  DagBuilder builder;
  for (const store::Job& job : steps.jobs()) builder.add_job(job);
  for (std::size_t step = 0; step < steps.jobs().size(); ++step) {
    const store::Job& job = steps.jobs()[step];
    for (const store::Output& output : job.outputs) builder.add_output(step, output);
  }
  for (std::size_t step = 0; step < steps.jobs().size(); ++step) {
    for (const store::Input& input : steps.needs(step)) {
      const auto source = steps.source(step, input);
      if (!source) {
        const auto twin = steps.twin(step, input);
        builder.add_outside_input(
            step, input,
            twin ? std::optional(Twin{steps.jobs()[twin->step].id, twin->output->path})
                 : std::nullopt);
        continue;
      }
      const bool stale =
          input.blake3 && source->output->blake3 && *input.blake3 != *source->output->blake3;
      builder.add_input(step, {.file = builder.add_output(source->step, *source->output),
                               .stale = stale,
                               .written_into = input.size < 0});
    }
  }
  return builder.take();
}

base::Result<LiveSteps> load_live_steps(store::Store& store) {
  ASSAY_TRY(const store::Snapshot snapshot, store::Snapshot::begin(store.database()));
  ASSAY_TRY(std::vector<store::Job> jobs, store::live_jobs(store));
  for (store::Job& job : jobs) {
    ASSAY_TRY_VOID(store::each_input(
        store, job.id, -1, [&](store::Input input) { job.inputs.push_back(std::move(input)); }));
    ASSAY_TRY_VOID(store::each_output(store, job.id, -1, [&](store::Output output) {
      job.outputs.push_back(std::move(output));
    }));
  }
  return LiveSteps(std::move(jobs));
}

}  // namespace assay::lineage
