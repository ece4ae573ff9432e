// Dag: runs and the files between them. The one structure that `assay dag` and `assay lineage` show
// and that dag_text, dag_dot, dag_svg and dag_json write.
//
// A file is one content at one path from one run: re-runs and changes in place make new files, so
// following contents there is no way in a circle, except between runs that ran at the same time.
// Whoever walks a Dag must still end on one: stages can feed each other in circles by path.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/graph/artifact_name.h"
#include "lineage/graph/live_stages.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::lineage {

// The same content as another run left it at another path: a remark, not an edge.
struct Twin {
  store::RunId run = 0;
  std::string path;
  bool operator==(const Twin&) const = default;
};

struct DagFile {
  std::string path;
  std::optional<hash::Digest> blake3;
  std::int64_t size = 0;                               // -1: not known
  std::optional<std::size_t> producer = std::nullopt;  // index of a run; none: from outside
  std::vector<std::size_t> consumers = {};             // indices of runs
  bool deleted = false;
  std::optional<Twin> twin = std::nullopt;  // of a file from outside
};

struct DagInput {
  std::size_t file = 0;
  // Only between live stages: what was read is not what the producer left last.
  bool stale = false;
  // It was not read: the run wrote into it (appended, changed in place).
  bool written_into = false;
};

struct DagRun {
  store::RunRecord run;  // what it is called, when it ran and how it ended; no lists, no context
  std::vector<DagInput> inputs = {};
  std::vector<std::size_t> outputs = {};
};

struct Dag {
  std::vector<DagRun> runs;
  std::vector<DagFile> files;
  // What was asked about, if it was one thing.
  std::optional<std::size_t> run = std::nullopt;
  std::optional<std::size_t> file = std::nullopt;
};

// The stages of the project as they are now.
Dag live_dag(const LiveStages& stages);
base::Result<LiveStages> load_live_stages(store::Store& store);

// Every run that was recorded.
base::Result<Dag> whole_dag(store::Store& store);

struct Reach {
  bool up = true;           // producers of what was read, and so on, down to files from outside
  bool down = true;         // readers of what was made, and what they made, and so on
  std::int64_t depth = -1;  // so many runs away from what was asked about; -1: all
};

// What a run or an artifact came from, and what came from it.
base::Result<Dag> dag_around(store::Store& store, const Named& what, const Reach& reach);

}  // namespace assay::lineage
