// Channel: this process's connection to the other ranks of its job, for small messages. Rank 0
// hosts it, the others join. It lasts as long as the job, and reports when and why the job has
// failed.
//
//   auto place = find_rank_assignment(environment);
//   auto secret = find_secret(environment, run_folder, place->rank, timeout);
//   auto channel = place->rank == 0 ? Channel::host(options) : Channel::join(options);
//   channel->put("nccl/0", id);  channel->get("nccl/0", 60s);  channel->progress(step);
//   channel->leave();
//
// Every function may be called from any thread, and every wait ends: when its condition holds, at
// its timeout, or as soon as the job has failed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_port.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "control/handshake.h"
#include "control/inbox.h"
#include "control/member.h"
#include "control/rank_assignment.h"
#include "control/secret.h"

namespace assay::control {

using Milliseconds = std::chrono::milliseconds;

struct ChannelOptions {
  std::string job;  // text that is unique to this job, at most 128 bytes
  Secret secret{""};
  int rank = 0;
  int ranks = 1;
  // The address of rank 0. On rank 0 an empty host means all of this machine's addresses, and port
  // 0 any free port.
  base::HostPort rendezvous;
  // Rank 0: a listening socket created by the launcher, used instead of `rendezvous`.
  std::optional<int> listener_fd;

  Milliseconds join_timeout{60'000};     // for all ranks to join
  Milliseconds heartbeat{1'000};         // interval
  Milliseconds silence_timeout{30'000};  // without a heartbeat, a rank is considered lost
  Milliseconds request_timeout{60'000};  // for put()

  // Limits for peers that have not authenticated yet.
  Milliseconds authentication_timeout{5'000};
  int max_unauthenticated = 256;
};

// Options for a rank at this place; the caller adds the secret and, if the place has none, the job.
ChannelOptions options_for(const RankAssignment& assignment);

class HubLink;

class Channel {
 public:
  // Rank 0: listens until all ranks have joined; otherwise the error names the missing ones.
  static base::Result<std::unique_ptr<Channel>> host(const ChannelOptions& options);
  // Other ranks: connects, retrying while rank 0 is not there, and waits until all ranks have
  // joined.
  static base::Result<std::unique_ptr<Channel>> join(const ChannelOptions& options);

  // Without a preceding leave(), the other ranks treat this as an unexpected end.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] int rank() const { return options_.rank; }
  [[nodiscard]] int ranks() const { return options_.ranks; }
  // Rank 0's address, with the actual port.
  [[nodiscard]] const base::HostPort& rendezvous() const { return options_.rendezvous; }
  // This rank's address on the route to rank 0, numeric; empty on rank 0.
  [[nodiscard]] std::string local_address() const;

  // Keys have 1 to 256 bytes, values up to 1 MiB. A key can be put only once.
  base::Result<void> put(std::string_view key, std::string_view value);
  // The value; waits until some rank has put it.
  base::Result<std::string> get(std::string_view key, Milliseconds timeout);
  // Returns when all ranks have called it with this name; the name may then be reused.
  base::Result<void> barrier(std::string_view name, Milliseconds timeout);

  // Informs all ranks that this one cannot continue; returns once the message is on its way.
  void report_failure(const base::Error& error);
  // The first failure of any rank: reported, or its connection ended unexpectedly.
  [[nodiscard]] std::optional<Failure> failure() const { return inbox_->failure(); }
  [[nodiscard]] bool failed() const { return inbox_->failed(); }  // one load
  // Becomes readable when the job fails, and stays so. For poll(2) only: do not read from it.
  [[nodiscard]] int failure_fd() const { return inbox_->failure_fd(); }
  // Calls `callback` once with the failure, on the background thread, or at once if the job has
  // failed already. The callback must neither block nor end its subscription.
  [[nodiscard]] FailureSubscription on_failure(FailureCallback callback) {
    return inbox_->on_failure(std::move(callback));
  }

  // The step that this rank has begun, sent with the next heartbeat. Costs two atomic stores.
  void progress(std::int64_t step);
  // On rank 0: every rank's state, host, pid, step and time in that step. Empty elsewhere.
  [[nodiscard]] std::vector<Member> members() const;

  // Orderly end. Rank 0 first waits for the others. No other function may be called afterwards.
  base::Result<void> leave(Milliseconds timeout = Milliseconds(30'000));

 private:
  friend base::Result<void> announce_failure(const ChannelOptions& options,
                                             const base::Error& error);

  Channel(ChannelOptions options, std::unique_ptr<Inbox> inbox, std::unique_ptr<HubLink> link);
  static base::Result<std::unique_ptr<Channel>> start_hosting(const ChannelOptions& options);
  static base::Result<std::unique_ptr<Channel>> start_joining(const ChannelOptions& options,
                                                              Purpose purpose,
                                                              Milliseconds& join_time_left);
  base::Result<std::string> request(FrameKind kind, std::string_view what, std::string_view key,
                                    std::string_view value, Milliseconds timeout);

  ChannelOptions options_;
  std::unique_ptr<Inbox> inbox_;
  std::unique_ptr<HubLink> link_;
};

// For a rank that fails before it has joined: informs the others, so that they do not wait for it.
// Takes at most as long as joining; rank 0 stays available to the others for at most 5 s.
base::Result<void> announce_failure(const ChannelOptions& options, const base::Error& error);

}  // namespace assay::control
