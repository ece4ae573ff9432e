// The training loop: from the first step or a checkpoint to the end of the job, or until it is
// stopped. It knows no device (Backend), no terminal (Reporter) and no file format (data/,
// checkpoint/). With several ranks, every rank calls train() with its communicator.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "comm/communicator.h"
#include "spec/job.h"
#include "train/backend.h"
#include "train/choose_recompute.h"
#include "train/data/batch_reader.h"
#include "train/expert_load.h"

namespace assay::train {

struct StepReport {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;  // since the run's first step
  // Of this step, with a document mask: those that losses and gradients are means over.
  std::optional<std::int64_t> targets;
  double loss = 0;
  double z_loss = 0;  // mean square of log Z
  double gradient_norm = 0;
  double learning_rate = 0;
  double seconds = 0;  // of this step
  double tokens_per_s = 0;
  bool skipped = false;               // its gradients were not finite
  std::optional<ExpertLoad> experts;  // of a mixture
};

struct ValidationReport {
  std::int64_t step = 0;  // the step it followed
  double loss = 0;
  std::int64_t tokens = 0;
  double seconds = 0;
};

// What a rank measured of itself in one step.
struct RankSample {
  double step_s = 0;
  double wait_s = 0;              // of it, for exchanges
  std::int64_t memory_bytes = 0;  // of its device, at most so far
  std::int64_t host_bytes = 0;    // resident, at most so far
};

// Measures one rank of several.
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
  // After the first step, before stepped(): where the time until then went.
  virtual void started(const StartUp& /*startup*/) {}
  // Before that, if it goes on from a checkpoint; on rank 0.
  virtual void resumed(const std::filesystem::path& /*checkpoint*/, std::int64_t /*step*/) {}
  virtual void stepped(const StepReport& report) = 0;
  // On rank 0 of several, after each step: what all of them measured, by rank.
  virtual void ranks_stepped(std::int64_t /*step*/, std::span<const RankSample> /*ranks*/) {}
  virtual void validated(const ValidationReport& report) = 0;
  virtual void saved(const std::filesystem::path& folder, std::int64_t bytes) = 0;
  virtual void note(const std::string& line) = 0;
};

struct TrainerOptions {
  std::filesystem::path out;
  bool resume = false;  // from the newest checkpoint, if there is one
  std::optional<std::int64_t> stop_after;
  const std::atomic<bool>* stop = nullptr;     // when true: finish the step, save, return
  const data::TokenSet* validation = nullptr;  // what train.validate_every evaluates
  const base::Clock* clock = &base::system_clock();
  // The group of a job with several ranks; null for one rank.
  comm::Communicator* ranks = nullptr;
  RankMeter* meter = nullptr;  // of this rank; may be null
  int threads = 0;             // of this rank's own, before the first step; 0: all processors
  StartUp* startup = nullptr;  // ends with the first step; may be null
};

enum class Ending { kFinished, kStopAfter, kStopped, kNotFinite };

struct TrainingResult {
  Ending ending = Ending::kFinished;
  std::int64_t step = 0;                                 // the last completed step
  double loss = 0;                                       // of that step; 0 if no step was executed
  std::optional<double> validation_loss = std::nullopt;  // the most recent
  std::filesystem::path checkpoint;
};

base::Result<TrainingResult> train(const spec::JobSpec& job, const Planned& planned,
                                   Backend& backend, const data::BatchReader& reader,
                                   const TrainerOptions& options, Reporter& reporter);

}  // namespace assay::train
