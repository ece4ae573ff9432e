// Which stage a run repeats. Internal to src/store; inside the caller's transaction.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hash/digest.h"
#include "store/database.h"
#include "store/run.h"

namespace assay::store {

// A set of paths as one number, independent of their order: the sum of their hashes. Collisions are
// no security problem, so the hashes are fast ones.
class PathSet {
 public:
  // Paths below `root` count relative to it: a project that moves keeps its stages.
  explicit PathSet(std::string root) : root_(std::move(root)) {}

  void add(std::string_view path) { change(path, 1); }
  void remove(std::string_view path) { change(path, ~std::uint64_t{0}); }  // one that was added
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // Count and sums.
  [[nodiscard]] std::array<std::uint64_t, 3> value() const { return {count_, sum_[0], sum_[1]}; }

 private:
  void change(std::string_view path, std::uint64_t times);

  std::string root_;
  std::uint64_t count_ = 0;
  std::array<std::uint64_t, 2> sum_{};
};

// The files that a run read and left, as one digest; none if it left none. Files that it got as
// standard input, output and error are left out: where a log goes does not identify a stage. So
// are files that it deleted, because the second run finds nothing left to delete. `read` and `left`
// are those in the store.
base::Result<std::optional<hash::Digest>> files_identity(Database& database, const RunRecord& run,
                                                         PathSet read, PathSet left);

// The number of the stage that the run repeats, or 0: `run.repeats`; else the stage of the newest
// other run in the same directory with the same name; else with the same command and standard
// input; else the stage whose current run read and left files at the same paths, unless one of the
// two changes a file in place, which two commands can do to one file in turn.
base::Result<std::int64_t> repeated_stage(Database& database, const RunRecord& run,
                                          const std::optional<hash::Digest>& files);

}  // namespace assay::store
