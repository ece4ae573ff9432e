// Dag: jobs and the files between them. The one structure that `assay dag` and `assay lineage` show
// and that dag_text, dag_dot, dag_svg and dag_json write.
//
// A file is one content at one path from one job: re-runs and changes in place make new files, so
// following contents there is no way in a circle, except between jobs that ran at the same time.
// Whoever walks a Dag must still end on one: steps can feed each other in circles by path.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lineage/graph/artifact_name.h"
#include "lineage/graph/live_steps.h"
#include "store/job.h"
#include "store/store.h"

namespace assay::lineage {

// The same content as another job left it at another path: a remark, not an edge.
struct Twin {
  store::JobId job = 0;
  std::string path;
  bool operator==(const Twin&) const = default;
};

struct DagFile {
  std::string path;
  std::optional<hash::Digest> blake3;
  std::int64_t size = 0;                               // -1: not known
  std::optional<std::size_t> producer = std::nullopt;  // index of a job; none: from outside
  std::vector<std::size_t> consumers = {};             // indices of jobs
  bool deleted = false;
  std::optional<Twin> twin = std::nullopt;  // of a file from outside
};

struct DagInput {
  std::size_t file = 0;
  // Only between live steps: what was read is not what the producer left last.
  bool stale = false;
  // It was not read: the job wrote into it (appended, changed in place).
  bool written_into = false;
};

struct DagJob {
  store::Job job;  // what it is called, when it ran and how it ended; no lists, no context
  std::vector<DagInput> inputs = {};
  std::vector<std::size_t> outputs = {};
};

struct Dag {
  std::vector<DagJob> jobs;
  std::vector<DagFile> files;
  // What was asked about, if it was one thing.
  std::optional<std::size_t> job = std::nullopt;
  std::optional<std::size_t> file = std::nullopt;
};

// The steps of the project as they are now.
Dag live_dag(const LiveSteps& steps);
base::Result<LiveSteps> load_live_steps(store::Store& store);

// Every job that was recorded.
base::Result<Dag> whole_dag(store::Store& store);

struct Reach {
  bool up = true;           // producers of what was read, and so on, down to files from outside
  bool down = true;         // readers of what was made, and what they made, and so on
  std::int64_t depth = -1;  // so many jobs away from what was asked about; -1: all
};

// What a job or an artifact came from, and what came from it.
base::Result<Dag> dag_around(store::Store& store, const Named& what, const Reach& reach);

}  // namespace assay::lineage
