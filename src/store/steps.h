// Steps: what a project consists of. A job that succeeded belongs to the step with its directory
// and its output paths (or, if it left no file, its directory and command). A repeated step takes
// the number of its predecessor, whose job stays in the log as superseded. Table `step`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/job.h"
#include "store/store.h"

namespace assay::store {

// The current job of step N, with context and lists; a usage error when there is no such step.
base::Result<Job> step_job(Store& store, std::int64_t number);

// The current jobs of all steps in the order of their numbers, without context and lists.
base::Result<std::vector<Job>> live_jobs(Store& store);

// A set of paths as one number, whatever the order in which they come: the sum of their hashes.
// Nobody gains by making two sets collide, so the hashes are quick ones.
class PathSet {
 public:
  void add(std::string_view path);
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // Count and sum, as bytes.
  [[nodiscard]] std::array<std::uint64_t, 3> value() const { return {count_, sum_[0], sum_[1]}; }

 private:
  std::uint64_t count_ = 0;
  std::array<std::uint64_t, 2> sum_{};
};

// Inside the caller's transaction, when the job's outputs are written: makes it the current job of
// its step and returns the step's number. `left` are the files it left; what it deleted is no part
// of the step's identity, because the second run finds nothing left to delete.
base::Result<std::int64_t> take_step(Database& database, const Job& job, const PathSet& left);
// Inside the caller's transaction: the step falls back to its newest other job, or goes away.
base::Result<void> leave_step(Database& database, JobId job);

}  // namespace assay::store
