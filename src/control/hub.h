// Hub: rank 0's view of the job and its reactions to messages. It has no sockets, threads or clock:
// messages and the time go in, messages to ranks come out. The Server transports them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/handshake.h"
#include "control/member.h"
#include "control/requests.h"
#include "control/wire.h"

namespace assay::control {

struct HubLimits {
  std::int64_t join_ns = 60'000'000'000;     // for all ranks to join
  std::int64_t silence_ns = 30'000'000'000;  // without a heartbeat
  // After a peer that claimed a missing rank was refused for good. Waiting would not help that
  // rank, but a peer that is not part of the job may have claimed it, and the true one is just
  // arriving.
  std::int64_t refused_ns = 2'000'000'000;
  RequestLimits requests;
};

class Hub {
 public:
  // `self` is rank 0, which is present from the beginning.
  Hub(const Introduction& self, const HubLimits& limits, std::int64_t now_ns);
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // The reason to refuse this authenticated peer; nothing if it is admitted.
  std::optional<std::string> admit(const Introduction& peer, std::int64_t now_ns);
  // A peer that claimed to be this rank was refused. `for_good_ns`: when, if it will not try again;
  // then the job fails unless that rank joins within refused_ns.
  void note_refusal(int rank, const std::string& reason,
                    std::optional<std::int64_t> for_good_ns = std::nullopt);

  void receive(int rank, const Message& message, std::int64_t now_ns);
  // The rank's connection ended; `how` is for users ("ended unexpectedly").
  void lost(int rank, const std::string& how);
  // Handles all timeouts up to now.
  void advance(std::int64_t now_ns);
  // Before this time advance() has nothing to do.
  [[nodiscard]] std::int64_t next_deadline_ns() const;
  [[nodiscard]] std::int64_t join_remaining_ns(std::int64_t now_ns) const;

  // In sending order.
  std::vector<OutgoingMessage> take_outgoing();

  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
  [[nodiscard]] std::vector<Member> members(std::int64_t now_ns) const;

 private:
  struct State {
    MemberState state = MemberState::kAbsent;
    std::string host;
    std::int64_t pid = 0;
    std::int64_t step = -1;
    std::int64_t step_ns = 0;
    std::int64_t last_received_ns = 0;
    std::string refusal;
    std::optional<std::int64_t> refused_ns;  // for good, the first time
  };

  State& state_of(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const State& state_of(int rank) const {
    return states_[static_cast<std::size_t>(rank)];
  }
  void send(int rank, Message message);
  void broadcast(const Message& message);
  void heartbeat(int rank, const Message& message, std::int64_t now_ns);
  void goodbye(int rank, bool at_once);
  void fail(int rank, base::Error error);
  [[nodiscard]] Message failure_message() const;
  [[nodiscard]] std::vector<int> absent() const;
  [[nodiscard]] base::Error missing_error() const;
  [[nodiscard]] std::int64_t refused_deadline_ns() const;
  [[nodiscard]] base::Error refused_error(int rank) const;

  HubLimits limits_;
  std::int64_t join_deadline_ns_;
  std::int64_t silence_deadline_ns_;  // no rank can time out before this
  std::vector<State> states_;         // by rank
  std::size_t present_ = 1;           // ranks that have ever joined
  bool complete_ = false;
  bool leaving_ = false;  // rank 0 has said goodbye and waits for the others
  std::optional<Failure> failure_;
  std::vector<OutgoingMessage> outgoing_;
  Requests requests_;
};

}  // namespace assay::control
