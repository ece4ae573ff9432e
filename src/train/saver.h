// Saver: one rank's part in saving checkpoints during a run. Between steps it takes a snapshot,
// which is written in the background (checkpoint/background_writer.h) together with those of the
// other ranks. Before that it checks that the disk has room.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "base/units.h"
#include "comm/communicator.h"
#include "spec/job.h"
#include "train/checkpoint/background_writer.h"
#include "train/snapshot.h"
#include "train/tokenizer_record.h"
#include "train/trainer.h"

namespace assay::train {

// The checkpoints that a run will still write. Before the first step and before each of them the
// saver checks that the disk has room for them.
struct FutureCheckpoints {
  std::int64_t bytes = 0;     // of one checkpoint, over all ranks
  std::int64_t count = 1;     // written until the end of the run
  std::int64_t keep = 0;      // at most this many are kept; 0: all
  std::int64_t existing = 0;  // already in the folder

  // The most further checkpoints that exist at once: one is written before the oldest is removed.
  [[nodiscard]] std::int64_t at_once() const;
};

// Fails if the checkpoints will not fit; if all are kept, only if not even one fits, because users
// may move them away during the run. In that case the result is a warning, and otherwise empty.
base::Result<std::string> check_disk_space(const std::filesystem::path& folder, base::Bytes free,
                                           const FutureCheckpoints& future);

struct SaverOptions {
  std::filesystem::path root;
  std::int64_t steps = 0;  // in the whole run
  const base::Clock* clock = &base::system_clock();
  TokenizerRecord tokenizer = {};  // of the training data, stored with the weights
  base::Json data = {};            // what the training data is (run_settings.h), stored too
};

class Saver {
 public:
  // All arguments must outlive the saver. The reporter is notified of checkpoints on rank 0, from
  // another thread.
  Saver(const spec::JobSpec& job, SaverOptions options, comm::Communicator& ranks,
        Reporter& reporter);

  // Rank 0 prepares the folder; the others then check that they see it.
  base::Result<void> open();

  // Called by all ranks before the first step: fails if the disk has no room for the checkpoints.
  base::Result<void> check_disk(const step::Program& program, std::int64_t first_step,
                                std::int64_t last_step);

  // Called by all ranks after the same step. Waits for the previous checkpoint. If that was not
  // written, or if a rank lacks memory for its copy of the state, the run goes on: the problem is
  // reported at once, and retry_due() requests another checkpoint. The same for a state of which an
  // element is not finite.
  base::Result<void> save(Backend& backend, const step::Program& program, const Position& position);

  // Called by all ranks at the end: waits until the last checkpoint is written; fails if it is not.
  // If an older one could not be removed, that is only reported.
  base::Result<void> finish();

  // Whether this rank's part of the newest checkpoint was not written and it is time to retry.
  [[nodiscard]] bool retry_due() const;

 private:
  void saved(std::int64_t step, const base::Result<checkpoint::Written>& written);
  void warn_of_full_disk();
  base::Result<void> wait_for_writers();
  base::Result<void> finish_previous(std::int64_t step);
  base::Result<void> give_up(std::int64_t step, const base::Result<checkpoint::Snapshot>& snapshot);
  base::Result<void> submit_failure(std::int64_t step, const std::optional<base::Error>& failure);

  const spec::JobSpec& job_;
  SaverOptions options_;
  comm::Communicator& ranks_;
  Reporter& reporter_;
  bool warned_of_waiting_ = false;
  bool warned_of_disk_ = false;
  std::int64_t checkpoint_bytes_ = 0;  // over all ranks
  // Set by the thread that writes checkpoints.
  std::atomic<std::int64_t> failures_ = 0;  // since the last successful one
  std::atomic<std::int64_t> failed_ns_ = 0;
  std::unique_ptr<checkpoint::BackgroundWriter> writer_;
};

}  // namespace assay::train
