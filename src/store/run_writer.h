// Writing a run: begin_run() when the command starts, a RunWriter when it has ended.
//
//   ASSAY_TRY(run.id, begin_run(store, run));              // others see it running
//   …
//   ASSAY_TRY(RunWriter writer, RunWriter::begin(store, run.id));
//   for (…) ASSAY_TRY_VOID(writer.add_output(output));     // nothing is kept in memory
//   ASSAY_TRY(run.stage, writer.finish(run));
#pragma once

#include <memory>

#include "base/result.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

// Writes the run as it is now (its status is kRunning) in a transaction of its own, context
// included, so that the row describes the command even if the recorder is killed. An empty uid
// gets a random one. The lists (inputs, outputs, processes, missed, rules, packages, GPU work) are
// not written.
base::Result<RunId> begin_run(Store& store, const RunRecord& run);

// One transaction, from begin() to finish(); without finish() nothing of it is kept. Others read
// meanwhile and wait to write, so collect first and write at the end. The Store must outlive it and
// stay where it is.
class RunWriter {
 public:
  // Also empties the run's lists, so that a recording that failed can be repeated.
  static base::Result<RunWriter> begin(Store& store, RunId run);
  RunWriter(RunWriter&&) noexcept;
  RunWriter& operator=(RunWriter&&) noexcept;
  ~RunWriter();

  // A path that was added before is left out: the first one counts.
  base::Result<void> add_input(const Input& input);
  base::Result<void> add_output(const Output& output);
  base::Result<void> add_fact(const PathFact& fact);
  base::Result<void> add_process(const Process& process);
  base::Result<void> add_missed(const Missed& missed);
  base::Result<void> add_package(const Package& package);
  base::Result<void> add_rule(const FileRule& rule);
  // Once.
  base::Result<void> add_gpu(const GpuWork& work);

  // Writes everything of `run` but its lists over the row, gives it a stage if it is kDone, and
  // commits. Returns the stage's number, or 0.
  base::Result<std::int64_t> finish(const RunRecord& run);

 private:
  struct State;
  base::Result<void> bind_file(Statement& insert, std::int64_t number, const std::string& path,
                               const std::optional<hash::Digest>& blake3, std::int64_t size);
  explicit RunWriter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// begin_run, everything that `run` holds, finish: for small runs that are over.
base::Result<RunId> record_run(Store& store, const RunRecord& run);

}  // namespace assay::store
