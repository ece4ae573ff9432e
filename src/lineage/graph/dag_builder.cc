#include "lineage/graph/dag_builder.h"

#include <algorithm>

namespace assay::lineage {

std::size_t DagBuilder::add_job(const store::Job& job) {
  const auto [known, is_new] = jobs_.try_emplace(job.id, dag_.jobs.size());
  if (is_new) {
    store::Job head;
    head.id = job.id;
    head.uid = job.uid;
    head.command = job.command;
    head.directory = job.directory;
    head.name = job.name;
    head.labels = job.labels;
    head.status = job.status;
    head.exit_code = job.exit_code;
    head.step = job.step;
    head.superseded = job.superseded;
    head.started_unix_ns = job.started_unix_ns;
    head.duration_s = job.duration_s;
    dag_.jobs.push_back({std::move(head)});
    outputs_.emplace_back();
  }
  return known->second;
}

std::optional<std::size_t> DagBuilder::find_job(store::JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t DagBuilder::add_output(std::size_t job, const store::Output& output) {
  const auto [known, is_new] = outputs_[job].try_emplace(output.path, dag_.files.size());
  if (is_new) {
    dag_.files.push_back({.path = output.path,
                          .blake3 = output.blake3,
                          .size = output.size,
                          .producer = job,
                          .deleted = output.status == store::OutputStatus::kDeleted});
    dag_.jobs[job].outputs.push_back(known->second);
  }
  return known->second;
}

void DagBuilder::add_input(std::size_t job, DagInput input) {
  auto& consumers = dag_.files[input.file].consumers;
  if (std::find(consumers.begin(), consumers.end(), job) != consumers.end()) return;
  consumers.push_back(job);
  dag_.jobs[job].inputs.push_back(input);
}

std::size_t DagBuilder::outside_file(const std::string& path,
                                     const std::optional<hash::Digest>& blake3, std::int64_t size) {
  const auto [known, is_new] = outside_.try_emplace({path, blake3}, dag_.files.size());
  if (is_new) dag_.files.push_back({.path = path, .blake3 = blake3, .size = size});
  return known->second;
}

void DagBuilder::add_twin(std::size_t file, std::optional<Twin> twin) {
  if (!dag_.files[file].twin) dag_.files[file].twin = std::move(twin);
}

void DagBuilder::add_outside_input(std::size_t job, const store::Input& input,
                                   std::optional<Twin> twin) {
  const std::size_t file = outside_file(input.path, input.blake3, input.size);
  add_twin(file, std::move(twin));
  add_input(job, {.file = file, .written_into = input.size < 0});
}

}  // namespace assay::lineage
