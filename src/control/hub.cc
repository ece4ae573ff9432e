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

// "60 s", "0.25 s"
std::string duration_text(std::int64_t ns) {
  return fmt::format("{:.3g} s", seconds(ns));
}

}  // namespace

Hub::Hub(const Introduction& self, const HubLimits& limits, std::int64_t now_ns)
    : ranks_(self.ranks),
      job_(self.job),
      limits_(limits),
      join_deadline_ns_(now_ns + limits.join_ns),
      next_deadline_ns_(kNever),
      states_(static_cast<std::size_t>(self.ranks)) {
  ASSAY_CHECK(self.rank == 0 && self.ranks >= 1, "rank 0 has the hub");
  State& mine = states_[0];
  mine.state = MemberState::kPresent;
  mine.host = self.host;
  mine.pid = self.pid;
  mine.heard_ns = mine.step_ns = now_ns;
  if (ranks_ == 1) {
    complete_ = true;
    send(0, {.kind = Kind::kComplete});
  } else {
    wake_by(join_deadline_ns_);
  }
}

std::optional<std::string> Hub::admit(const Introduction& peer, std::int64_t now_ns) {
  if (peer.ranks != ranks_) {
    return fmt::format("rank 0 was started for {} ranks and rank {} for {}", ranks_, peer.rank,
                       peer.ranks);
  }
  if (peer.rank < 0 || peer.rank >= ranks_) {
    return fmt::format("there is no rank {} in a job of {} ranks", peer.rank, ranks_);
  }
  State& state = states_[static_cast<std::size_t>(peer.rank)];
  if (state.state != MemberState::kAbsent) {
    return fmt::format("rank {} is already {} ({}, pid {})", peer.rank,
                       state.state == MemberState::kPresent ? "there" : "gone",
                       base::printable(state.host), state.pid);
  }
  state.state = MemberState::kPresent;
  state.host = peer.host;
  state.pid = peer.pid;
  state.heard_ns = state.step_ns = now_ns;
  if (peer.purpose == Purpose::kJoin) ++present_;
  wake_by(now_ns + limits_.silence_ns);
  if (failure_) {
    send(
        peer.rank,
        {.kind = Kind::kFailure, .number = failure_->rank, .value = encode_error(failure_->error)});
  } else if (present_ == ranks_) {
    complete_ = true;
    broadcast({.kind = Kind::kComplete});
  }
  return std::nullopt;
}

void Hub::note_refusal(int rank, const std::string& reason) {
  if (rank > 0 && rank < ranks_) states_[static_cast<std::size_t>(rank)].refusal = reason;
}

std::int64_t Hub::join_remaining_ns(std::int64_t now_ns) const {
  return std::max<std::int64_t>(0, join_deadline_ns_ - now_ns);
}

void Hub::receive(int rank, const Message& message, std::int64_t now_ns) {
  State& state = states_[static_cast<std::size_t>(rank)];
  if (state.state != MemberState::kPresent) return;
  state.heard_ns = now_ns;
  const std::int64_t timeout_ms = std::clamp<std::int64_t>(message.number, 0, kLongestWait_ms);
  const Waiter from{rank, message.id, now_ns, now_ns + timeout_ms * 1'000'000};
  const bool request =
      message.kind == Kind::kPut || message.kind == Kind::kGet || message.kind == Kind::kBarrier;
  if (request && failure_) return refuse(from, failure_->error);
  switch (message.kind) {
    case Kind::kHeartbeat:
      if (message.number != state.step) {
        state.step = message.number;
        const auto age_ms = static_cast<std::int64_t>(
            std::min<std::uint64_t>(message.id, static_cast<std::uint64_t>(kLongestWait_ms)));
        state.step_ns = now_ns - age_ms * 1'000'000;
      }
      if (rank != 0) send(rank, {.kind = Kind::kAlive});
      return;
    case Kind::kPut:
      return put(from, message);
    case Kind::kGet:
      return get(from, message);
    case Kind::kBarrier:
      return barrier(from, message);
    case Kind::kFailure: {
      base::Error error = decode_error(message.value);
      error.where = fmt::format("rank {}{}{}", rank, error.where.empty() ? "" : ": ", error.where);
      return fail(rank, std::move(error));
    }
    case Kind::kGoodbye:
      return goodbye(rank, message.number != 0);
    default:
      return;  // what only rank 0 sends
  }
}

void Hub::put(const Waiter& from, const Message& message) {
  const auto [entry, added] = store_.try_emplace(message.key, message.value);
  if (!added) {
    if (entry->second == message.value) return answer(from, {});
    return refuse(
        from, base::failed_error(fmt::format("key '{}'", message.key), "has another value already",
                                 "a key is put once: use a new name"));
  }
  store_bytes_ += message.key.size() + message.value.size();
  if (store_bytes_ > limits_.store_bytes) {
    store_bytes_ -= message.key.size() + message.value.size();
    store_.erase(entry);
    return refuse(from, base::failed_error(fmt::format("key '{}'", message.key),
                                           fmt::format("rank 0 keeps at most {} bytes of values",
                                                       limits_.store_bytes)));
  }
  answer(from, {});
  if (const auto waiting = gets_.find(message.key); waiting != gets_.end()) {
    for (const Waiter& waiter : waiting->second) {
      --states_[static_cast<std::size_t>(waiter.rank)].waiting;
      answer(waiter, message.value);
    }
    gets_.erase(waiting);
  }
}

void Hub::get(const Waiter& from, const Message& message) {
  if (const auto found = store_.find(message.key); found != store_.end()) {
    return answer(from, found->second);
  }
  std::size_t& waiting = states_[static_cast<std::size_t>(from.rank)].waiting;
  if (waiting >= limits_.waiting_per_rank) {
    return refuse(from, base::failed_error(fmt::format("key '{}'", message.key),
                                           "this rank waits for too many keys at once"));
  }
  ++waiting;
  gets_[message.key].push_back(from);
  wake_by(from.deadline_ns);
}

void Hub::barrier(const Waiter& from, const Message& message) {
  std::vector<Waiter>& waiters = barriers_[message.key];
  if (std::any_of(waiters.begin(), waiters.end(),
                  [&](const Waiter& one) { return one.rank == from.rank; })) {
    return refuse(from, base::failed_error(fmt::format("barrier '{}'", message.key),
                                           fmt::format("rank {} waits at it already", from.rank)));
  }
  std::size_t& waiting = states_[static_cast<std::size_t>(from.rank)].waiting;
  if (waiting >= limits_.waiting_per_rank) {
    if (waiters.empty()) barriers_.erase(message.key);
    return refuse(from, base::failed_error("barrier", "this rank waits at too many at once"));
  }
  waiters.push_back(from);
  ++waiting;
  wake_by(from.deadline_ns);
  complete_barriers();
}

// Barriers that everybody has reached, and those that somebody who has left cannot reach any more.
void Hub::complete_barriers() {
  const auto gone = std::find_if(states_.begin(), states_.end(), [](const State& state) {
    return state.state == MemberState::kLeft;
  });
  for (auto entry = barriers_.begin(); entry != barriers_.end();) {
    const auto& [name, waiters] = *entry;
    const bool all = waiters.size() == states_.size();
    if (!all && gone == states_.end()) {
      ++entry;
      continue;
    }
    for (const Waiter& waiter : waiters) {
      --states_[static_cast<std::size_t>(waiter.rank)].waiting;
      if (all) {
        answer(waiter, {});
      } else {
        refuse(waiter,
               base::failed_error(fmt::format("barrier '{}'", name),
                                  fmt::format("rank {} has left the job", gone - states_.begin())));
      }
    }
    entry = barriers_.erase(entry);
  }
}

void Hub::goodbye(int rank, bool at_once) {
  if (rank == 0) {
    leaving_ = true;
  } else {
    states_[static_cast<std::size_t>(rank)].state = MemberState::kLeft;
    drop_waiters(rank);
    complete_barriers();
    outgoing_.push_back({rank, {.kind = Kind::kGoodbye}});
  }
  if (!leaving_) return;
  const bool others_left = std::none_of(states_.begin() + 1, states_.end(), [](const State& state) {
    return state.state == MemberState::kPresent;
  });
  if (others_left || at_once) broadcast({.kind = Kind::kGoodbye});
}

void Hub::lost(int rank, const std::string& how) {
  State& state = states_[static_cast<std::size_t>(rank)];
  if (state.state != MemberState::kPresent) return;
  const std::string step = state.step >= 0 ? fmt::format(", step {}", state.step) : "";
  // It is told as well: a process that was only stopped may still read it.
  fail(rank, base::failed_error(fmt::format("rank {}", rank),
                                fmt::format("{} ({}, pid {}{})", how, state.host, state.pid, step),
                                "its log says more"));
  state.state = MemberState::kLost;
  drop_waiters(rank);
}

void Hub::drop_waiters(int rank) {
  states_[static_cast<std::size_t>(rank)].waiting = 0;
  for (Waiters* waiters : {&gets_, &barriers_}) {
    for (auto entry = waiters->begin(); entry != waiters->end();) {
      std::erase_if(entry->second, [&](const Waiter& one) { return one.rank == rank; });
      entry = entry->second.empty() ? waiters->erase(entry) : std::next(entry);
    }
  }
}

void Hub::fail(int rank, base::Error error) {
  if (failure_) return;
  failure_ = Failure{rank, std::move(error)};
  broadcast({.kind = Kind::kFailure, .number = rank, .value = encode_error(failure_->error)});
  // Everybody's waiting ends with the failure.
  gets_.clear();
  barriers_.clear();
  for (State& state : states_) state.waiting = 0;
}

void Hub::advance(std::int64_t now_ns) {
  if (now_ns < next_deadline_ns_) return;
  next_deadline_ns_ = kNever;
  if (failure_) return;
  if (!complete_) {
    if (now_ns >= join_deadline_ns_) return fail(absent_from({}).front(), missing_error());
    wake_by(join_deadline_ns_);
  }
  for (std::size_t rank = 1; rank < states_.size(); ++rank) {
    const State& state = states_[rank];
    if (state.state != MemberState::kPresent) continue;
    if (now_ns - state.heard_ns >= limits_.silence_ns) {
      return lost(
          static_cast<int>(rank),
          fmt::format("no sign of life for {}: its process is stopped or its network broken",
                      duration_text(limits_.silence_ns)));
    }
    wake_by(state.heard_ns + limits_.silence_ns);
  }
  for (Waiters* waiters : {&gets_, &barriers_}) {
    for (auto entry = waiters->begin(); entry != waiters->end();) {
      const std::vector<Waiter> before = entry->second;
      std::erase_if(entry->second, [&](const Waiter& one) { return now_ns >= one.deadline_ns; });
      for (const Waiter& waiter : before) {
        if (now_ns < waiter.deadline_ns) {
          wake_by(waiter.deadline_ns);
          continue;
        }
        --states_[static_cast<std::size_t>(waiter.rank)].waiting;
        const std::string waited = duration_text(waiter.deadline_ns - waiter.since_ns);
        if (waiters == &gets_) {
          refuse(waiter, base::failed_error(fmt::format("key '{}'", entry->first),
                                            fmt::format("nobody has put it after {}", waited)));
        } else {
          const std::vector<int> missing = absent_from(before);
          refuse(waiter,
                 base::failed_error(fmt::format("barrier '{}'", entry->first),
                                    fmt::format("rank{} {} of {} ha{} not come after {}",
                                                missing.size() == 1 ? "" : "s", rank_list(missing),
                                                ranks_, missing.size() == 1 ? "s" : "ve", waited)));
        }
      }
      entry = entry->second.empty() ? waiters->erase(entry) : std::next(entry);
    }
  }
}

// Ranks that are not among the waiters; without any, those that have not come at all.
std::vector<int> Hub::absent_from(const std::vector<Waiter>& waiters) const {
  std::vector<bool> there(states_.size(), false);
  for (const Waiter& waiter : waiters) there[static_cast<std::size_t>(waiter.rank)] = true;
  std::vector<int> absent;
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    const bool come = waiters.empty() ? states_[rank].state != MemberState::kAbsent : there[rank];
    if (!come) absent.push_back(static_cast<int>(rank));
  }
  return absent;
}

base::Error Hub::missing_error() const {
  const std::vector<int> missing = absent_from({});
  const bool one = missing.size() == 1;
  const auto refused = std::find_if(missing.begin(), missing.end(), [&](int rank) {
    return !states_[static_cast<std::size_t>(rank)].refusal.empty();
  });
  std::string why = one ? "it never connected" : "they never connected";
  if (refused != missing.end()) {
    const std::string& reason = states_[static_cast<std::size_t>(*refused)].refusal;
    why = one ? fmt::format("it was refused: {}", reason)
              : fmt::format("rank {} was refused: {}", *refused, reason);
  }
  return base::failed_error("", fmt::format("rank{} {} of {} ha{} not come after {}: {}",
                                            one ? "" : "s", rank_list(missing), ranks_,
                                            one ? "s" : "ve", duration_text(limits_.join_ns), why));
}

void Hub::send(int rank, Message message) {
  outgoing_.push_back({rank, std::move(message)});
}

void Hub::broadcast(const Message& message) {
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank].state == MemberState::kPresent) send(static_cast<int>(rank), message);
  }
}

void Hub::answer(const Waiter& waiter, const std::string& value) {
  send(waiter.rank, {.kind = Kind::kAnswer, .id = waiter.id, .value = value});
}

void Hub::refuse(const Waiter& waiter, const base::Error& why) {
  send(waiter.rank,
       {.kind = Kind::kAnswer, .id = waiter.id, .number = 1, .value = encode_error(why)});
}

void Hub::wake_by(std::int64_t deadline_ns) {
  next_deadline_ns_ = std::min(next_deadline_ns_, deadline_ns);
}

std::vector<Hub::Outgoing> Hub::take_outgoing() {
  return std::exchange(outgoing_, {});
}

std::vector<Member> Hub::members(std::int64_t now_ns) const {
  std::vector<Member> members;
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    const State& state = states_[rank];
    members.push_back({static_cast<int>(rank), state.state, state.host, state.pid, state.step,
                       seconds(now_ns - state.step_ns),
                       rank == 0 ? 0.0 : seconds(now_ns - state.heard_ns)});
  }
  return members;
}

}  // namespace assay::control
