// The training loop: from the first step or a checkpoint to the end of the job, or until it is
// stopped. It is independent of devices (Backend), the terminal (Reporter) and file formats (data/,
// checkpoint/). With several ranks, every rank calls train() with its communicator.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "comm/communicator.h"
#include "spec/job.h"
#include "train/backend.h"
#include "train/data/batch_reader.h"
#include "train/expert_load.h"
#include "train/planned_step.h"

namespace assay::train {

struct StepReport {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;  // since the first step of the run
  // With a document mask: the number of targets over which this step's losses and gradients are
  // averaged.
  std::optional<std::int64_t> targets;
  double loss = 0;
  double z_loss = 0;  // mean square of log Z
  double gradient_norm = 0;
  double learning_rate = 0;
  double seconds = 0;  // duration of this step
  double tokens_per_s = 0;
  bool skipped = false;               // because gradients were not finite
  std::optional<ExpertLoad> experts;  // for mixtures of experts
};

struct ValidationReport {
  std::int64_t step = 0;  // the step it followed
  double loss = 0;
  std::int64_t tokens = 0;
  double seconds = 0;
};

// One rank's own measurements of a step.
struct RankSample {
  double step_s = 0;
  double wait_s = 0;              // part of step_s spent waiting for communication
  std::int64_t memory_bytes = 0;  // of its device, peak so far
  std::int64_t host_bytes = 0;    // resident, peak so far
};

// Measures a rank of a job with several ranks.
class RankMeter {
 public:
  virtual ~RankMeter() = default;
  virtual void begin_step() = 0;
  virtual RankSample end_step(double seconds) = 0;
};

class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void began(std::int64_t first_step, std::int64_t steps) = 0;
  // Called after the first step, before stepped(): how the time until then was spent.
  virtual void started(const StartUp& /*startup*/) {}
  // Called before that on rank 0, if the run continues from a checkpoint.
  virtual void resumed(const std::filesystem::path& /*checkpoint*/, std::int64_t /*step*/) {}
  virtual void stepped(const StepReport& report) = 0;
  // Called on rank 0 after each step if there are several ranks: their measurements, by rank.
  virtual void ranks_stepped(std::int64_t /*step*/, std::span<const RankSample> /*ranks*/) {}
  virtual void validated(const ValidationReport& report) = 0;
  virtual void saved(const std::filesystem::path& folder, std::int64_t bytes) = 0;
  virtual void note(const std::string& line) = 0;
};

// What the loop does, as far as it can be asked to stop meanwhile.
enum class Doing { kStart, kStep, kValidation, kLastCheckpoint };

struct TrainerOptions {
  std::filesystem::path out;
  bool resume = false;  // from the newest checkpoint, if there is one
  // When resuming: whether data and optimizer may be others (Continue, resume.h).
  bool new_data = false;
  bool new_optimizer = false;
  // Where a new run has its weights from: a checkpoint, or the newest of a run; empty: drawn.
  std::filesystem::path from = {};
  std::optional<std::int64_t> stop_after;
  const std::atomic<bool>* stop = nullptr;     // when true: finish the step, save, return
  const data::TokenSet* validation = nullptr;  // evaluated every train.validate_every steps
  const base::Clock* clock = &base::system_clock();
  // All ranks of the job; null if there is only one.
  comm::Communicator* ranks = nullptr;
  RankMeter* meter = nullptr;  // for this rank; may be null
  int threads = 0;             // used by this rank before the first step; 0: one per processor
  StartUp* startup = nullptr;  // ended after the first step; may be null
  // Called as something begins, with the number of its step; may be empty.
  std::function<void(Doing, std::int64_t)> begins = {};
};

// kNotFinite: steps were skipped, and training stopped for that or was of no use.
enum class Ending { kFinished, kStopAfter, kStopped, kNotFinite };

struct TrainingResult {
  Ending ending = Ending::kFinished;
  std::int64_t step = 0;                                 // the last completed step
  double loss = 0;                                       // of that step; 0 if no step was executed
  std::optional<double> validation_loss = std::nullopt;  // the most recent
  // Of that step; after kNotFinite the newest whose weights are known to be good. Empty: none.
  std::filesystem::path checkpoint;
  std::int64_t skipped = 0;  // steps in a row, up to the last
  // There are newer checkpoints than that, whose weights give no finite loss.
  bool has_useless = false;
};

base::Result<TrainingResult> train(const spec::JobSpec& job, const ExecutableStep& planned,
                                   Backend& backend, const data::BatchReader& reader,
                                   const TrainerOptions& options, Reporter& reporter);

}  // namespace assay::train
