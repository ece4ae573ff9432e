// Writing a job: begin_job() when the command starts, a JobWriter when it has ended.
//
//   ASSAY_TRY(job.id, begin_job(store, job));              // others see it running
//   …
//   ASSAY_TRY(JobWriter writer, JobWriter::begin(store, job.id));
//   for (…) ASSAY_TRY_VOID(writer.add_output(output));     // nothing is kept in memory
//   ASSAY_TRY(job.step, writer.finish(job));
#pragma once

#include <memory>

#include "base/result.h"
#include "store/hash_cache.h"
#include "store/job.h"
#include "store/store.h"

namespace assay::store {

// Writes the job as it is now (its status is kRunning) in a transaction of its own, context
// included, so that the row tells what was started even if nobody lives to finish it. An empty uid
// gets a random one. The lists (inputs, outputs, processes, missed, rules, packages, GPU work) are
// not written.
base::Result<JobId> begin_job(Store& store, const Job& job);

// One transaction, from begin() to finish(); without finish() nothing of it is kept. Others read
// meanwhile and wait to write, so collect first and write at the end. The Store must outlive it and
// stay where it is.
class JobWriter {
 public:
  // Also empties the job's lists, so that a recording that failed can be repeated.
  static base::Result<JobWriter> begin(Store& store, JobId job);
  JobWriter(JobWriter&&) noexcept;
  JobWriter& operator=(JobWriter&&) noexcept;
  ~JobWriter();

  // A path that was added before is left out: the first one counts.
  base::Result<void> add_input(const Input& input);
  base::Result<void> add_output(const Output& output);
  base::Result<void> add_process(const Process& process);
  base::Result<void> add_missed(const Missed& missed);
  base::Result<void> add_package(const Package& package);
  base::Result<void> add_rule(const FileRule& rule);
  // Once.
  base::Result<void> add_gpu(const GpuWork& work);
  // Into the hash cache, in the same transaction.
  base::Result<void> add_hash(const HashedFile& file);

  // Writes everything of `job` but its lists over the row, gives it a step if it is kDone, and
  // commits. Returns the step's number, or 0.
  base::Result<std::int64_t> finish(const Job& job);

 private:
  struct State;
  base::Result<void> bind_file(Statement& insert, std::int64_t number, const std::string& path,
                               const std::optional<hash::Digest>& blake3, std::int64_t size);
  explicit JobWriter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// begin_job, everything that `job` holds, finish: for small jobs that are over.
base::Result<JobId> record_job(Store& store, const Job& job);

}  // namespace assay::store
