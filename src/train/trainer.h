// Trainer: step after step, from the first or from a checkpoint, to the end of the job or until it
// is told to stop. Knows no device (Backend), no terminal (Reporter) and no file format (data/,
// checkpoint/).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "comm/communicator.h"
#include "spec/job.h"
#include "train/backend.h"
#include "train/choose_recompute.h"
#include "train/data/batch_reader.h"

namespace assay::train {

struct StepReport {
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;  // since the run's first step
  double loss = 0;
  double z_loss = 0;  // mean square of log Z
  double gradient_norm = 0;
  double learning_rate = 0;
  double seconds = 0;  // of this step
  double tokens_per_s = 0;
  bool left_out = false;  // its gradients were not finite
};

struct ValidationReport {
  std::int64_t step = 0;  // after which
  double loss = 0;
  std::int64_t tokens = 0;
  double seconds = 0;
};

class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void began(std::int64_t first_step, std::int64_t steps) = 0;
  virtual void stepped(const StepReport& report) = 0;
  virtual void validated(const ValidationReport& report) = 0;
  virtual void saved(const std::filesystem::path& folder, std::int64_t bytes) = 0;
  virtual void note(const std::string& line) = 0;
};

struct RunOptions {
  std::filesystem::path out;
  bool resume = false;
  std::optional<std::int64_t> stop_after;
  const std::atomic<bool>* stop = nullptr;     // set: finish the step, save, end
  const data::TokenSet* validation = nullptr;  // what train.validate_every reads
  const base::Clock* clock = &base::system_clock();
  // Of a job with several ranks, on each of which train() is called: those it is trained with.
  comm::Communicator* ranks = nullptr;
};

enum class Ending { kFinished, kStopAfter, kStopped, kNotFinite };

struct RunResult {
  Ending ending = Ending::kFinished;
  std::int64_t step = 0;                                 // the last that was done
  double loss = 0;                                       // its loss; 0 when none was done
  std::optional<double> validation_loss = std::nullopt;  // the last one
  std::filesystem::path checkpoint;
};

// Before anything is taken for a run: that its folder has no checkpoints, or that it is to go on
// from them.
base::Result<void> check_folder(const std::filesystem::path& out, bool resume);

base::Result<RunResult> train(const spec::JobSpec& job, const Planned& planned, Backend& backend,
                              const data::BatchReader& reader, const RunOptions& options,
                              Reporter& reporter);

}  // namespace assay::train
