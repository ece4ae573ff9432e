// StopRequests: signals that ask the training loop to stop. The loop stops after the step, which
// may take minutes, so that somebody else answers at once: a thread says what will happen and when.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "train/trainer.h"

namespace assay::cli {

// What the loop is doing, as far as a user who asks it to stop wants to know.
struct LoopState {
  train::Doing doing = train::Doing::kStart;
  std::int64_t step = 0;
  double since_s = 0;             // how long it has been doing it
  std::optional<double> usual_s;  // how long the last step took
};

// The answer to a signal, one line: "SIGTERM: stopping after step 12 (3 of about 40 s done), then a
// checkpoint; Ctrl-C stops at once, without one". `before`: an earlier signal already asked for it.
std::string answer_to(int signal, bool before, const LoopState& state);

class StopRequests {
 public:
  // Installs the handlers of SIGINT, SIGTERM, SIGUSR1 and, unless it is ignored, SIGHUP. With
  // several ranks only rank 0 answers: all get the same signal, and the user reads rank 0.
  explicit StopRequests(bool answers);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  // For TrainerOptions.
  [[nodiscard]] const std::atomic<bool>& requested() const;
  void begins(train::Doing doing, std::int64_t step);

 private:
  void answer_signals();
  [[nodiscard]] LoopState state() const;

  bool answers_;
  base::UniqueFd read_;
  base::UniqueFd write_;
  mutable std::mutex mutex_;
  LoopState state_;
  base::Stopwatch since_;
  std::thread thread_;
};

}  // namespace assay::cli
