#include "lineage/graph/dag_writers.h"

namespace assay::lineage {

base::Json dag_json(const Dag& dag) {
  base::Json jobs = base::Json::array();
  for (const DagJob& one : dag.jobs) {
    base::Json inputs = base::Json::array();
    base::Json outputs = base::Json::array();
    for (const DagInput& input : one.inputs) {
      inputs.push_back(
          {{"file", input.file}, {"stale", input.stale}, {"written_into", input.written_into}});
    }
    for (const std::size_t file : one.outputs) outputs.push_back({{"file", file}});
    const store::Job& job = one.job;
    jobs.push_back({{"id", job.id},
                    {"uid", job.uid},
                    {"step", job.step == 0 ? base::Json(nullptr) : base::Json(job.step)},
                    {"superseded", job.superseded},
                    {"command", command_text(job)},
                    {"directory", job.directory},
                    {"status", store::name_of(job.status)},
                    {"inputs", std::move(inputs)},
                    {"outputs", std::move(outputs)}});
  }
  base::Json files = base::Json::array();
  for (const DagFile& file : dag.files) {
    base::Json consumers = base::Json::array();
    for (const std::size_t job : file.consumers) consumers.push_back(dag.jobs[job].job.id);
    files.push_back(
        {{"path", file.path},
         {"blake3", file.blake3 ? base::Json(file.blake3->hex()) : base::Json(nullptr)},
         {"size", file.size < 0 ? base::Json(nullptr) : base::Json(file.size)},
         {"deleted", file.deleted},
         {"same_content", file.twin ? base::Json{{"job", file.twin->job}, {"path", file.twin->path}}
                                    : base::Json(nullptr)},
         {"producer",
          file.producer ? base::Json(dag.jobs[*file.producer].job.id) : base::Json(nullptr)},
         {"consumers", std::move(consumers)}});
  }
  return {{"jobs", std::move(jobs)}, {"files", std::move(files)}};
}

}  // namespace assay::lineage
