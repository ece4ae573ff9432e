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

// A fingerprint of a set of paths, independent of their order: the sum of their hashes. The hashes
// need not be cryptographic, because a collision is not a security problem.
class PathSet {
 public:
  // Paths below `root` are hashed relative to it, so that a project that is moved keeps its stages.
  explicit PathSet(std::string root) : root_(std::move(root)) {}

  void add(std::string_view path) { change(path, 1); }
  void remove(std::string_view path) { change(path, ~std::uint64_t{0}); }  // after add(path)
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // Count and sums.
  [[nodiscard]] std::array<std::uint64_t, 3> value() const { return {count_, sum_[0], sum_[1]}; }

 private:
  void change(std::string_view path, std::uint64_t times);

  std::string root_;
  std::uint64_t count_ = 0;
  std::array<std::uint64_t, 2> sum_{};
};

// One digest of the paths that a run read and wrote; none if it wrote none. Its standard input,
// output and error are left out, because where a log goes does not identify a stage; so are files
// that it deleted, because a second run finds nothing to delete. `read` and `left` are the paths in
// the store.
base::Result<std::optional<hash::Digest>> files_identity(Database& database, const RunRecord& run,
                                                         PathSet read, PathSet left);

// The number of the stage that the run repeats, or 0. In this order: `run.repeats`; the stage of
// the newest other run in the same directory with the same name; that of the newest with the same
// command and standard input; the stage whose current run read and wrote the same paths. The last
// does not apply if either run changes a file in place, because different commands can change one
// file in turn.
base::Result<std::int64_t> repeated_stage(Database& database, const RunRecord& run,
                                          const std::optional<hash::Digest>& files);

}  // namespace assay::store
