#include "control/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace assay::control {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

}  // namespace

Hub::Hub(const Introduction& self, const HubLimits& limits, std::int64_t now_ns)
    : limits_(limits),
      join_deadline_ns_(now_ns + limits.join_ns),
      silence_deadline_ns_(now_ns + limits.silence_ns),
      states_(static_cast<std::size_t>(self.ranks)),
      requests_(self.ranks, limits.requests, outgoing_) {
  ASSAY_CHECK(self.rank == 0 && self.ranks >= 1, "rank 0 has the hub");
  State& mine = states_[0];
  mine.state = MemberState::kPresent;
  mine.host = self.host;
  mine.pid = self.pid;
  mine.last_received_ns = mine.step_ns = now_ns;
  if (states_.size() == 1) {
    complete_ = true;
    send(0, {.kind = FrameKind::kComplete});
  }
}

std::optional<std::string> Hub::admit(const Introduction& peer, std::int64_t now_ns) {
  const int ranks = static_cast<int>(states_.size());
  if (peer.ranks != ranks) {
    return fmt::format("rank 0 was started for {} ranks and rank {} for {}", ranks, peer.rank,
                       peer.ranks);
  }
  if (peer.rank < 0 || peer.rank >= ranks) {
    return fmt::format("there is no rank {} in a job of {} ranks", peer.rank, ranks);
  }
  State& state = state_of(peer.rank);
  if (state.state != MemberState::kAbsent) {
    return fmt::format("rank {} is already {} ({}, pid {})", peer.rank,
                       state.state == MemberState::kPresent ? "there" : "gone",
                       base::printable(state.host), state.pid);
  }
  state.state = MemberState::kPresent;
  state.host = peer.host;
  state.pid = peer.pid;
  state.last_received_ns = state.step_ns = now_ns;
  if (peer.purpose == Purpose::kJoin) ++present_;
  if (failure_) {
    send(peer.rank, failure_message());
  } else if (present_ == states_.size()) {
    complete_ = true;
    broadcast({.kind = FrameKind::kComplete});
  }
  return std::nullopt;
}

void Hub::note_refusal(int rank, const std::string& reason,
                       std::optional<std::int64_t> for_good_ns) {
  if (rank <= 0 || rank >= static_cast<int>(states_.size())) return;
  State& state = state_of(rank);
  state.refusal = reason;
  if (!state.refused_ns) state.refused_ns = for_good_ns;
}

std::int64_t Hub::refused_deadline_ns() const {
  std::int64_t deadline_ns = kNever;
  for (const State& state : states_) {
    if (state.state != MemberState::kAbsent || !state.refused_ns) continue;
    deadline_ns = std::min(deadline_ns, *state.refused_ns + limits_.refused_ns);
  }
  return deadline_ns;
}

base::Error Hub::refused_error(int rank) const {
  return base::failed_error(fmt::format("rank {} of {}", rank, states_.size()),
                            "was refused by rank 0: " + state_of(rank).refusal);
}

std::int64_t Hub::join_remaining_ns(std::int64_t now_ns) const {
  return std::max<std::int64_t>(0, join_deadline_ns_ - now_ns);
}

void Hub::receive(int rank, const Message& message, std::int64_t now_ns) {
  State& state = state_of(rank);
  if (state.state != MemberState::kPresent) return;
  state.last_received_ns = now_ns;
  const std::int64_t timeout_ms = std::clamp<std::int64_t>(message.number, 0, kLongestWait_ms);
  const Waiter from{rank, message.id, now_ns, now_ns + timeout_ms * 1'000'000};
  switch (message.kind) {
    case FrameKind::kPut:
    case FrameKind::kGet:
    case FrameKind::kBarrier:
      if (failure_) return requests_.refuse(from, failure_->error);
      if (message.kind == FrameKind::kPut) return requests_.put(from, message.key, message.value);
      if (message.kind == FrameKind::kGet) return requests_.get(from, message.key);
      return requests_.barrier(from, message.key);
    case FrameKind::kHeartbeat:
      return heartbeat(rank, message, now_ns);
    case FrameKind::kFailure: {
      base::Error error = decode_error(message.value);
      error.where = fmt::format("rank {}{}{}", rank, error.where.empty() ? "" : ": ", error.where);
      return fail(rank, std::move(error));
    }
    case FrameKind::kGoodbye:
      return goodbye(rank, message.number != 0);
    default:
      return;  // kinds that only rank 0 sends
  }
}

void Hub::heartbeat(int rank, const Message& message, std::int64_t now_ns) {
  State& state = state_of(rank);
  if (message.number != state.step) {
    state.step = message.number;
    const auto age_ms = static_cast<std::int64_t>(
        std::min<std::uint64_t>(message.id, static_cast<std::uint64_t>(kLongestWait_ms)));
    state.step_ns = now_ns - age_ms * 1'000'000;
  }
  if (rank != 0) send(rank, {.kind = FrameKind::kAlive});
}

void Hub::goodbye(int rank, bool at_once) {
  if (rank == 0) {
    leaving_ = true;
  } else {
    state_of(rank).state = MemberState::kLeft;
    requests_.rank_left(rank);
    send(rank, {.kind = FrameKind::kGoodbye});
  }
  if (!leaving_) return;
  const bool others_left = std::none_of(states_.begin() + 1, states_.end(), [](const State& state) {
    return state.state == MemberState::kPresent;
  });
  if (others_left || at_once) broadcast({.kind = FrameKind::kGoodbye});
}

void Hub::lost(int rank, const std::string& how) {
  State& state = state_of(rank);
  if (state.state != MemberState::kPresent) return;
  const std::string step = state.step >= 0 ? fmt::format(", step {}", state.step) : "";
  // The lost rank is informed as well: a process that was only stopped may still read it.
  fail(rank, base::failed_error(fmt::format("rank {}", rank),
                                fmt::format("{} ({}, pid {}{})", how, state.host, state.pid, step),
                                "see its log"));
  state.state = MemberState::kLost;
  requests_.drop(rank);
}

void Hub::fail(int rank, base::Error error) {
  if (failure_) return;
  failure_ = Failure{rank, std::move(error)};
  broadcast(failure_message());
  requests_.drop_all();  // the failure ends all waits
}

Message Hub::failure_message() const {
  return {.kind = FrameKind::kFailure,
          .number = failure_->rank,
          .value = encode_error(failure_->error)};
}

std::int64_t Hub::next_deadline_ns() const {
  if (failure_) return kNever;
  const std::int64_t join_ns =
      complete_ ? kNever : std::min(join_deadline_ns_, refused_deadline_ns());
  return std::min({join_ns, silence_deadline_ns_, requests_.next_deadline_ns()});
}

void Hub::advance(std::int64_t now_ns) {
  if (now_ns < next_deadline_ns()) return;
  if (!complete_ && now_ns >= join_deadline_ns_) return fail(absent().front(), missing_error());
  for (const int rank : absent()) {
    const State& state = state_of(rank);
    if (!state.refused_ns || now_ns < *state.refused_ns + limits_.refused_ns) continue;
    return fail(rank, refused_error(rank));
  }
  if (now_ns >= silence_deadline_ns_) {
    silence_deadline_ns_ = now_ns + limits_.silence_ns;
    for (std::size_t rank = 1; rank < states_.size(); ++rank) {
      const State& state = states_[rank];
      if (state.state != MemberState::kPresent) continue;
      if (now_ns - state.last_received_ns >= limits_.silence_ns) {
        return lost(
            static_cast<int>(rank),
            fmt::format("no heartbeat for {}: its process is stopped or its network is down",
                        duration_text(limits_.silence_ns)));
      }
      silence_deadline_ns_ =
          std::min(silence_deadline_ns_, state.last_received_ns + limits_.silence_ns);
    }
  }
  requests_.expire(now_ns);
}

std::vector<int> Hub::absent() const {
  std::vector<int> absent;
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank].state == MemberState::kAbsent) absent.push_back(static_cast<int>(rank));
  }
  return absent;
}

base::Error Hub::missing_error() const {
  const std::vector<int> missing = absent();
  const bool one = missing.size() == 1;
  std::string why = one ? "it never connected" : "they never connected";
  for (const int rank : missing) {
    const std::string& reason = states_[static_cast<std::size_t>(rank)].refusal;
    if (reason.empty()) continue;
    why = one ? fmt::format("it was refused: {}", reason)
              : fmt::format("rank {} was refused: {}", rank, reason);
    break;
  }
  return base::failed_error(
      "", fmt::format("{} not joined after {}: {}", ranks_have(missing, states_.size()),
                      duration_text(limits_.join_ns), why));
}

void Hub::send(int rank, Message message) {
  outgoing_.push_back({rank, std::move(message)});
}

void Hub::broadcast(const Message& message) {
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank].state == MemberState::kPresent) send(static_cast<int>(rank), message);
  }
}

std::vector<OutgoingMessage> Hub::take_outgoing() {
  return std::exchange(outgoing_, {});
}

std::vector<Member> Hub::members(std::int64_t now_ns) const {
  std::vector<Member> members;
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    const State& state = states_[rank];
    members.push_back({static_cast<int>(rank), state.state, state.host, state.pid, state.step,
                       seconds(now_ns - state.step_ns),
                       rank == 0 ? 0.0 : seconds(now_ns - state.last_received_ns)});
  }
  return members;
}

}  // namespace assay::control
