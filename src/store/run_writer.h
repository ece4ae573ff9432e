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

// Writes the run as it is now (status kRunning), with its context, in its own transaction, so that
// the command is known even if the recorder is killed. An empty uid is replaced by a random one.
// The lists (inputs, outputs, processes, missed, rules, packages, GPU work) are not written.
base::Result<RunId> begin_run(Store& store, const RunRecord& run);

// One transaction from begin() to finish(); without finish() it is rolled back. Other processes can
// read meanwhile but not write, so gather the results before begin(). The Store must outlive this
// and must not be moved.
class RunWriter {
 public:
  // Also deletes the run's lists in the store, so that a recording that failed can be repeated.
  static base::Result<RunWriter> begin(Store& store, RunId run);
  RunWriter(RunWriter&&) noexcept;
  RunWriter& operator=(RunWriter&&) noexcept;
  ~RunWriter();

  // If a path is added twice, the first one counts. A file of the run's standard output or error is
  // an output or only a stream (streams.h): that is decided after the last file.
  base::Result<void> add_input(const Input& input);
  base::Result<void> add_output(const Output& output);
  base::Result<void> add_fact(const PathFact& fact);
  base::Result<void> add_process(const ProcessRecord& process);
  base::Result<void> add_missed(const Missed& missed);
  base::Result<void> add_package(const Package& package);
  base::Result<void> add_rule(const FileRule& rule);
  // At most once.
  base::Result<void> add_gpu(const GpuWork& work);

  // After the last file: shared_outputs.h. Sets `complete` to false if there are any.
  base::Result<void> note_shared_outputs(RunRecord& run, const std::vector<RunId>& earlier);

  // Updates the run's row with everything in `run` but its lists, assigns a stage if it is kDone,
  // and commits. Returns the stage's number, or 0.
  base::Result<std::int64_t> finish(const RunRecord& run);

  // Known when finish() or note_shared_outputs() has been called.
  [[nodiscard]] std::int64_t outputs() const;

 private:
  struct State;
  base::Result<void> insert_output(const Output& output, bool stream);
  base::Result<void> settle_streams();
  explicit RunWriter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// begin_run(), all lists in `run`, and finish(): for small runs that have ended.
base::Result<RunId> record_run(Store& store, const RunRecord& run);

}  // namespace assay::store
