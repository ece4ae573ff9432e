// DagBuilder: runs, files and edges in, a Dag without duplicates out.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "lineage/graph/dag.h"

namespace assay::lineage {

class DagBuilder {
 public:
  // The index of the run; the same one when it is added again.
  std::size_t add_run(const store::RunRecord& run);
  [[nodiscard]] std::optional<std::size_t> find_run(store::RunId id) const;

  // The index of the file that `run` left at this path; the same one when it is added again.
  std::size_t add_output(std::size_t run, const store::Output& output);
  void add_input(std::size_t run, DagInput input);
  // A file that no run of ours made.
  std::size_t outside_file(const std::string& path, const std::optional<hash::Digest>& blake3,
                           std::int64_t size);
  // The first remark on a file stays.
  void add_twin(std::size_t file, std::optional<Twin> twin);
  // `twin`: who left the same content elsewhere, before `run`.
  void add_outside_input(std::size_t run, const store::Input& input, std::optional<Twin> twin);

  [[nodiscard]] const Dag& dag() const { return dag_; }
  Dag take() { return std::move(dag_); }

 private:
  using Outside = std::tuple<std::string, std::optional<hash::Digest>>;

  Dag dag_;
  std::map<store::RunId, std::size_t> runs_;
  std::vector<std::unordered_map<std::string, std::size_t>> outputs_;  // of each run, by path
  std::map<Outside, std::size_t> outside_;
};

}  // namespace assay::lineage
