#include "lineage/graph/dag.h"

#include <algorithm>

namespace assay::lineage {

std::size_t DagBuilder::add_run(const store::RunRecord& run) {
  const auto [known, is_new] = runs_.try_emplace(run.id, dag_.runs.size());
  if (is_new) {
    store::RunRecord head;
    head.id = run.id;
    head.uid = run.uid;
    head.command = run.command;
    head.directory = run.directory;
    head.name = run.name;
    head.labels = run.labels;
    head.status = run.status;
    head.exit_code = run.exit_code;
    head.stage = run.stage;
    head.superseded = run.superseded;
    head.started_unix_ns = run.started_unix_ns;
    head.duration_s = run.duration_s;
    dag_.runs.push_back({std::move(head)});
    outputs_.emplace_back();
  }
  return known->second;
}

std::optional<std::size_t> DagBuilder::find_run(store::RunId id) const {
  const auto found = runs_.find(id);
  return found == runs_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t DagBuilder::add_output(std::size_t run, const store::Output& output) {
  const auto [known, is_new] = outputs_[run].try_emplace(output.path, dag_.files.size());
  if (is_new) {
    dag_.files.push_back({.path = output.path,
                          .blake3 = output.blake3,
                          .size = output.size,
                          .producer = run,
                          .deleted = output.status == store::OutputStatus::kDeleted});
    dag_.runs[run].outputs.push_back(known->second);
  }
  return known->second;
}

std::size_t DagBuilder::add_folder(std::size_t run, const std::string& path, std::int64_t size,
                                   std::int64_t files) {
  const std::size_t index = add_output(run, {path, std::nullopt, size});
  dag_.files[index].files = files;
  return index;
}

void DagBuilder::add_input(std::size_t run, DagInput input) {
  auto& consumers = dag_.files[input.file].consumers;
  if (std::find(consumers.begin(), consumers.end(), run) != consumers.end()) return;
  consumers.push_back(run);
  dag_.runs[run].inputs.push_back(input);
}

std::size_t DagBuilder::external_file(const std::string& path,
                                      const std::optional<hash::Digest>& blake3,
                                      std::int64_t size) {
  const auto [known, is_new] = external_.try_emplace({path, blake3}, dag_.files.size());
  if (is_new) dag_.files.push_back({.path = path, .blake3 = blake3, .size = size});
  return known->second;
}

void DagBuilder::add_same_content(std::size_t file, std::optional<SameContent> same_content) {
  if (!dag_.files[file].same_content) dag_.files[file].same_content = std::move(same_content);
}

void DagBuilder::add_external_input(std::size_t run, const store::Input& input,
                                    std::optional<SameContent> same_content) {
  const std::size_t file = external_file(input.path, input.blake3, input.size);
  add_same_content(file, std::move(same_content));
  add_input(run, {.file = file, .written_into = input.size < 0});
}

}  // namespace assay::lineage
