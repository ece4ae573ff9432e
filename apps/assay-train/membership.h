// Membership: one rank's part in a job of several: its place, the channel to the other ranks, and
// the communicators for its program's data.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "comm/communicator.h"
#include "control/channel.h"
#include "control/rank_assignment.h"

namespace assay::cli {

// The job's name among its ranks: its folder, or the end of it if that is long.
std::string job_name(const std::filesystem::path& out);

// For a rank that fails before it has joined: the others then end with its error instead of waiting
// for it. Takes a few seconds at most, and does nothing if they cannot be reached.
void announce_failure(const control::RankAssignment& assignment, const std::filesystem::path& out,
                      const base::Error& error);

class Membership {
 public:
  // Connects to the other ranks. `out` is the run's folder, which holds the secret if the
  // environment does not.
  static base::Result<std::unique_ptr<Membership>> join(const control::RankAssignment& assignment,
                                                        const std::filesystem::path& out);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  [[nodiscard]] const control::RankAssignment& assignment() const { return assignment_; }
  // For host memory: values that ranks agree on, and all communication of ranks on CPUs.
  [[nodiscard]] comm::Communicator& world() const { return *world_; }
  // Connects the GPUs of all ranks; `gpu` is this rank's. Called by every rank.
  base::Result<comm::Communicator*> connect_gpus(int gpu);
  // Ends this rank's waits for other ranks on its GPU.
  void stop_gpus();
  // Sent to rank 0 with the next heartbeat, which names the step of a rank that is lost.
  void step_begins(std::int64_t step) { channel_->progress(step); }
  // This rank cannot continue; the others end with its error.
  void fail(const base::Error& error);
  // Orderly end, when every rank has finished.
  base::Result<void> leave();

 private:
  Membership(control::RankAssignment assignment, std::filesystem::path out)
      : assignment_(std::move(assignment)), out_(std::move(out)) {}
  base::Result<void> connect(const std::map<std::string, std::string>& environment);
  void share_run() const;

  control::RankAssignment assignment_;
  std::filesystem::path out_;
  std::unique_ptr<control::Channel> channel_;
  std::unique_ptr<comm::Communicator> world_;
  std::unique_ptr<comm::Communicator> gpus_;           // for device memory
  std::optional<control::FailureSubscription> watch_;  // last: its callback uses the others
};

}  // namespace assay::cli
