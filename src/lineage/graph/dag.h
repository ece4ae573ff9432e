// Dag: runs and the files between them. The one structure that `assay dag` and `assay lineage`
// show; dag_query.h makes it, dag_text, dag_picture and run_json write it.
//
// A file is one content at one path from one run: re-runs and changes in place make new files, so
// there are no cycles by content, except between runs that ran at the same time. Code that walks a
// Dag must still terminate on a cycle: stages can feed each other in cycles by path.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

// Another run that left the same content at another path: a remark, not an edge.
struct SameContent {
  store::RunId run = 0;
  std::string path;
  bool operator==(const SameContent&) const = default;
};

struct DagFile {
  std::string path;
  std::optional<hash::Digest> blake3;
  std::int64_t size = 0;                               // -1: not known
  std::optional<std::size_t> producer = std::nullopt;  // index of a run; none: not made by a run
  std::vector<std::size_t> consumers = {};             // indices of runs
  bool deleted = false;
  std::int64_t files = 0;   // if not 0, this is a folder in which the producer left this many files
  std::string origin = {};  // where a file without a producer came from, if that is known
  std::optional<SameContent> same_content = std::nullopt;  // only without a producer
};

struct DagInput {
  std::size_t file = 0;
  // Only between live stages: the content read is not the producer's latest.
  bool stale = false;
  // Not read but modified by the run (appended to, changed in place).
  bool written_into = false;
};

struct DagRun {
  store::RunRecord run;  // without lists and context
  std::vector<DagInput> inputs = {};
  std::vector<std::size_t> outputs = {};
};

struct Dag {
  std::vector<DagRun> runs;
  std::vector<DagFile> files;
  // The subject of the query, if it is a single run or file.
  std::optional<std::size_t> run = std::nullopt;
  std::optional<std::size_t> file = std::nullopt;
};

// Builds a Dag without duplicates from runs, files and edges.
class DagBuilder {
 public:
  // Returns the index of the run; the same one when it is added again.
  std::size_t add_run(const store::RunRecord& run);
  [[nodiscard]] std::optional<std::size_t> find_run(store::RunId id) const;

  // Returns the index of the file that `run` left at this path; the same one when it is added
  // again.
  std::size_t add_output(std::size_t run, const store::Output& output);
  void add_input(std::size_t run, DagInput input);
  // A folder in which `run` left `files` files.
  std::size_t add_folder(std::size_t run, const std::string& path, std::int64_t size,
                         std::int64_t files);
  // A file that no recorded run made.
  std::size_t external_file(const std::string& path, const std::optional<hash::Digest>& blake3,
                            std::int64_t size);
  // The first one added to a file is kept.
  void add_same_content(std::size_t file, std::optional<SameContent> same_content);
  // `same_content`: the run that left the same content elsewhere before `run`.
  void add_external_input(std::size_t run, const store::Input& input,
                          std::optional<SameContent> same_content);

  [[nodiscard]] const Dag& dag() const { return dag_; }
  Dag take() { return std::move(dag_); }

 private:
  using External = std::tuple<std::string, std::optional<hash::Digest>>;

  Dag dag_;
  std::map<store::RunId, std::size_t> runs_;
  std::vector<std::unordered_map<std::string, std::size_t>> outputs_;  // of each run, by path
  std::map<External, std::size_t> external_;
};

}  // namespace assay::lineage
