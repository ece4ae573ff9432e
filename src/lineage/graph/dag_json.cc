#include "lineage/graph/dag_writers.h"

namespace assay::lineage {

base::Json dag_json(const Dag& dag) {
  base::Json runs = base::Json::array();
  for (const DagRun& one : dag.runs) {
    base::Json inputs = base::Json::array();
    base::Json outputs = base::Json::array();
    for (const DagInput& input : one.inputs) {
      inputs.push_back(
          {{"file", input.file}, {"stale", input.stale}, {"written_into", input.written_into}});
    }
    for (const std::size_t file : one.outputs) outputs.push_back({{"file", file}});
    const store::RunRecord& run = one.run;
    runs.push_back({{"id", run.id},
                    {"uid", run.uid},
                    {"stage", run.stage == 0 ? base::Json(nullptr) : base::Json(run.stage)},
                    {"superseded", run.superseded},
                    {"command", command_text(run)},
                    {"directory", run.directory},
                    {"status", store::name_of(run.status)},
                    {"inputs", std::move(inputs)},
                    {"outputs", std::move(outputs)}});
  }
  base::Json files = base::Json::array();
  for (const DagFile& file : dag.files) {
    base::Json consumers = base::Json::array();
    for (const std::size_t run : file.consumers) consumers.push_back(dag.runs[run].run.id);
    files.push_back(
        {{"path", file.path},
         {"blake3", file.blake3 ? base::Json(file.blake3->hex()) : base::Json(nullptr)},
         {"size", file.size < 0 ? base::Json(nullptr) : base::Json(file.size)},
         {"deleted", file.deleted},
         {"same_content", file.twin ? base::Json{{"run", file.twin->run}, {"path", file.twin->path}}
                                    : base::Json(nullptr)},
         {"producer",
          file.producer ? base::Json(dag.runs[*file.producer].run.id) : base::Json(nullptr)},
         {"consumers", std::move(consumers)}});
  }
  return {{"runs", std::move(runs)}, {"files", std::move(files)}};
}

}  // namespace assay::lineage
