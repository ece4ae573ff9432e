// Channel: this process's connection to the other ranks of its job, for small messages. Rank 0
// hosts it, the others join. It lives as long as the job, and says when and why the job has failed.
//
//   auto place = find_place(environment);
//   auto secret = find_secret(environment, run_folder, place->rank, timeout);
//   auto channel = place->rank == 0 ? Channel::host(options) : Channel::join(options);
//   channel->put("nccl/0", id);  channel->get("nccl/0", 60s);  channel->progress(step);
//   channel->leave();
//
// Every function may be called from any thread, and every wait ends: with what was waited for, at
// its timeout, or as soon as the job has failed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "control/endpoint.h"
#include "control/handshake.h"
#include "control/inbox.h"
#include "control/member.h"
#include "control/place.h"
#include "control/secret.h"

namespace assay::control {

using Milliseconds = std::chrono::milliseconds;

struct ChannelOptions {
  std::string job;  // any text that only this job has, at most 128 bytes
  Secret secret{""};
  int rank = 0;
  int ranks = 1;
  // Where rank 0 listens. On rank 0 an empty host stands for all of this machine's addresses, and
  // port 0 for a free one.
  Endpoint rendezvous;
  // Rank 0: a listening socket that the launcher has made, instead of `rendezvous`.
  std::optional<int> listener_fd;

  Milliseconds join_timeout{60'000};     // until all ranks must have come
  Milliseconds heartbeat{1'000};         // how often a rank says that it lives
  Milliseconds silence_timeout{30'000};  // after which a rank that does not is lost
  Milliseconds request_timeout{60'000};  // of put

  // Limits for peers that have not proved who they are.
  Milliseconds stranger_timeout{5'000};
  int strangers = 256;
};

// What a rank started at this place needs; the caller adds the secret, and the job where the place
// has none.
ChannelOptions options_for(const Place& place);

class Link;

class Channel {
 public:
  // Rank 0: listens until all ranks have come, or fails with the line that names the missing ones.
  static base::Result<std::unique_ptr<Channel>> host(const ChannelOptions& options);
  // Other ranks: connects, again and again if rank 0 is not there yet, until all ranks have come.
  static base::Result<std::unique_ptr<Channel>> join(const ChannelOptions& options);

  // Without leave() before, the others see this rank as ended unexpectedly.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] int rank() const { return options_.rank; }
  [[nodiscard]] int ranks() const { return options_.ranks; }
  // Where rank 0 listens, with the port that was chosen.
  [[nodiscard]] const Endpoint& rendezvous() const { return options_.rendezvous; }
  // This rank's address on the way to rank 0, numeric; empty on rank 0.
  [[nodiscard]] std::string local_address() const;

  // Keys of 1 to 256 bytes, values of up to 1 MiB. A key is put once.
  base::Result<void> put(std::string_view key, std::string_view value);
  // The value; waits until somebody has put it.
  base::Result<std::string> get(std::string_view key, Milliseconds timeout);
  // Returns when all ranks have called it with this name, which may then be used again.
  base::Result<void> barrier(std::string_view name, Milliseconds timeout);

  // Tells all ranks that this one cannot go on, and returns when they are being told.
  void report_failure(const base::Error& error);
  // The first failure of any rank: reported, or its connection ended unexpectedly.
  [[nodiscard]] std::optional<Failure> failure() const { return inbox_->failure(); }
  [[nodiscard]] bool failed() const { return inbox_->failed(); }  // one load
  // Becomes readable with the failure and stays so. For poll(2) only: do not read from it.
  [[nodiscard]] int failure_fd() const { return inbox_->failure_fd(); }
  // Called once with the failure, by the background thread, or at once if it has happened. The
  // callback must neither wait nor end its subscription.
  [[nodiscard]] FailureSubscription on_failure(FailureCallback callback) {
    return inbox_->on_failure(std::move(callback));
  }

  // The step that this rank has begun; goes out with the next heartbeat. Two stores.
  void progress(std::int64_t step);
  // Rank 0: every rank, its host, pid, step, and for how long. Empty elsewhere.
  [[nodiscard]] std::vector<Member> members() const;

  // The orderly end. Rank 0 waits for the others first. Nothing can be called after it.
  base::Result<void> leave(Milliseconds timeout = Milliseconds(30'000));

 private:
  friend base::Result<void> announce_failure(const ChannelOptions& options,
                                             const base::Error& error);

  Channel(ChannelOptions options, std::unique_ptr<Inbox> inbox, std::unique_ptr<Link> link);
  static base::Result<std::unique_ptr<Channel>> start_hosting(const ChannelOptions& options);
  static base::Result<std::unique_ptr<Channel>> start_joining(const ChannelOptions& options,
                                                              Purpose purpose,
                                                              Milliseconds& others_may_take);
  base::Result<std::string> request(Kind kind, std::string_view what, std::string_view key,
                                    std::string_view value, Milliseconds timeout);

  ChannelOptions options_;
  std::unique_ptr<Inbox> inbox_;
  std::unique_ptr<Link> link_;
};

// For a rank that fails before it has joined: the others learn why instead of waiting for it. It
// takes at most as long as joining would; rank 0 stays for the others for at most 5 s.
base::Result<void> announce_failure(const ChannelOptions& options, const base::Error& error);

}  // namespace assay::control
