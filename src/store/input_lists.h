// A run's inputs in the store: lists of files that it shares with other runs. Tables `input_list`,
// `listed_input`, `run_list`; the view `run_input` shows them as one table.
//
// A run over the same data reads the same files again, or all but a few. So inputs are cut into
// lists where a folder ends, and a list that the store has already, by a digest of all that is in
// it, is not written again.
//
// Whether a run read a path is asked of the tables with CROSS JOIN, which SQLite does not reorder:
// from the path to its lists. Through the view it would try each list of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/run.h"

namespace assay::store {

// Writes one run's inputs, inside the caller's transaction.
class InputLists {
 public:
  InputLists(Database& database, RunId run) : database_(&database), run_(run) {}

  // False: this path was added before, and the first one counts. Fast for paths in order.
  base::Result<bool> add(const Input& input);
  // What is not written yet. Until then other statements do not see all inputs.
  base::Result<void> write();
  [[nodiscard]] std::int64_t inputs() const { return written_ + std::ssize(list_); }

 private:
  // Prepared when they are needed: most runs are small, or repeat what others read.
  struct Uses {
    Statement find, insert;
  };
  struct Lists {
    Statement insert, insert_file;
  };
  base::Result<bool> has(const std::string& path);
  base::Result<std::int64_t> list_id();
  base::Result<std::int64_t> new_list(const hash::Digest& digest);

  Database* database_;
  RunId run_;
  std::optional<Uses> uses_;
  std::optional<Lists> lists_;
  std::vector<Input> list_;  // not yet written
  std::int64_t written_ = 0;
  std::string greatest_;  // of the paths so far
};

// Removes the lists that only this run has, inside the caller's transaction.
base::Result<void> erase_own_inputs(Database& database, RunId run);

}  // namespace assay::store
