// Membership: one rank's part in a job of several: its place, the channel to the other ranks, and
// the communicator that its program exchanges data with.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "comm/communicator.h"
#include "control/channel.h"
#include "control/place.h"

namespace assay::cli {

// What the ranks of a run call their job: its folder, or the end of a long name.
std::string job_name(const std::filesystem::path& out);

// A rank that fails before it has met the others: they end with its line instead of waiting for it.
// Takes a few seconds at most, and is silent if they cannot be reached.
void announce_failure(const control::Place& place, const std::filesystem::path& out,
                      const base::Error& error);

class Membership {
 public:
  // Meets the other ranks. `out` is the run's folder: it has the secret, if the environment has
  // none.
  static base::Result<std::unique_ptr<Membership>> join(const control::Place& place,
                                                        const std::filesystem::path& out);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  [[nodiscard]] const control::Place& place() const { return place_; }
  // Of host memory: what ranks agree on, and all that ranks on CPUs exchange.
  [[nodiscard]] comm::Communicator& world() const { return *world_; }
  // Connects the ranks' GPUs, of which this rank has the given one. Called by every rank.
  base::Result<comm::Communicator*> connect_gpus(int gpu);
  // This rank's GPU waits for no other rank any more.
  void stop_gpus();
  // This rank cannot go on: the others end with its reason.
  void fail(const base::Error& error);
  // The orderly end: every rank has finished.
  base::Result<void> leave();

 private:
  Membership(control::Place place, std::filesystem::path out)
      : place_(std::move(place)), out_(std::move(out)) {}
  base::Result<void> connect(const std::map<std::string, std::string>& environment);
  void share_run() const;

  control::Place place_;
  std::filesystem::path out_;
  std::unique_ptr<control::Channel> channel_;
  std::unique_ptr<comm::Communicator> world_;
  std::unique_ptr<comm::Communicator> gpus_;           // of device memory
  std::optional<control::FailureSubscription> watch_;  // before the communicator that it uses
};

}  // namespace assay::cli
