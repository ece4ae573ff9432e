#include "control/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "control/member.h"

namespace assay::control {
namespace {

constexpr std::int64_t kNoDeadline = std::numeric_limits<std::int64_t>::max();

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

std::string key_text(const std::string& key) {
  return fmt::format("key '{}'", key);
}

std::string barrier_text(const std::string& name) {
  return fmt::format("barrier '{}'", name);
}

}  // namespace

std::string duration_text(std::int64_t ns) {
  return fmt::format("{:.3g} s", static_cast<double>(ns) / 1e9);
}

std::string ranks_have(const std::vector<int>& ranks, std::size_t of) {
  const bool one = ranks.size() == 1;
  return fmt::format("rank{} {} of {} ha{}", one ? "" : "s", rank_list(ranks), of,
                     one ? "s" : "ve");
}

Requests::Requests(int ranks, const RequestLimits& limits, std::vector<OutgoingMessage>& outgoing)
    : limits_(limits),
      outgoing_(outgoing),
      waiting_(index(ranks), 0),
      next_deadline_ns_(kNoDeadline) {}

void Requests::put(const Waiter& from, const std::string& key, const std::string& value) {
  const auto [entry, added] = store_.try_emplace(key, value);
  if (!added) {
    if (entry->second == value) return answer(from, {});
    return refuse(from, base::failed_error(key_text(key), "has another value already",
                                           "a key is set once: use a new name"));
  }
  const std::size_t size = key.size() + value.size();
  if (store_bytes_ + size > limits_.store_bytes) {
    store_.erase(entry);
    return refuse(from, base::failed_error(key_text(key),
                                           fmt::format("rank 0 keeps at most {} bytes of values",
                                                       limits_.store_bytes)));
  }
  store_bytes_ += size;
  answer(from, {});
  if (const auto waiting = gets_.find(key); waiting != gets_.end()) {
    for (const Waiter& waiter : waiting->second) {
      --waiting_[index(waiter.rank)];
      answer(waiter, value);
    }
    gets_.erase(waiting);
  }
}

void Requests::get(const Waiter& from, const std::string& key) {
  if (const auto found = store_.find(key); found != store_.end()) {
    return answer(from, found->second);
  }
  if (may_wait(from, key_text(key))) gets_[key].push_back(from);
}

void Requests::barrier(const Waiter& from, const std::string& name) {
  const auto found = barriers_.find(name);
  if (found != barriers_.end() &&
      std::any_of(found->second.begin(), found->second.end(),
                  [&](const Waiter& one) { return one.rank == from.rank; })) {
    return refuse(from,
                  base::failed_error(barrier_text(name),
                                     fmt::format("rank {} is already waiting at it", from.rank)));
  }
  if (!may_wait(from, barrier_text(name))) return;
  std::vector<Waiter>& waiters = barriers_[name];
  waiters.push_back(from);
  if (waiters.size() == waiting_.size() || left_) {
    end_barrier(name, waiters);
    barriers_.erase(name);
  }
}

// All ranks are at the barrier, or one has left and will never come.
void Requests::end_barrier(const std::string& name, const std::vector<Waiter>& waiters) {
  for (const Waiter& waiter : waiters) {
    --waiting_[index(waiter.rank)];
    if (!left_) {
      answer(waiter, {});
    } else {
      refuse(waiter, base::failed_error(barrier_text(name),
                                        fmt::format("rank {} has left the job", *left_)));
    }
  }
}

void Requests::rank_left(int rank) {
  if (!left_) left_ = rank;
  drop(rank);
  for (const auto& [name, waiters] : barriers_) end_barrier(name, waiters);
  barriers_.clear();
}

void Requests::drop(int rank) {
  waiting_[index(rank)] = 0;
  for (Waiters* waiters : {&gets_, &barriers_}) {
    for (auto entry = waiters->begin(); entry != waiters->end();) {
      std::erase_if(entry->second, [&](const Waiter& one) { return one.rank == rank; });
      entry = entry->second.empty() ? waiters->erase(entry) : std::next(entry);
    }
  }
}

void Requests::drop_all() {
  gets_.clear();
  barriers_.clear();
  std::fill(waiting_.begin(), waiting_.end(), 0);
  next_deadline_ns_ = kNoDeadline;
}

void Requests::expire(std::int64_t now_ns) {
  if (now_ns < next_deadline_ns_) return;
  next_deadline_ns_ = kNoDeadline;
  for (Waiters* waiters : {&gets_, &barriers_}) {
    for (auto entry = waiters->begin(); entry != waiters->end();) {
      // All requests that expire at once get the same error: the ranks missing before any of them
      // was removed.
      const std::vector<Waiter> before = entry->second;
      std::erase_if(entry->second, [&](const Waiter& one) { return now_ns >= one.deadline_ns; });
      for (const Waiter& waiter : before) {
        if (now_ns < waiter.deadline_ns) {
          next_deadline_ns_ = std::min(next_deadline_ns_, waiter.deadline_ns);
          continue;
        }
        --waiting_[index(waiter.rank)];
        refuse(waiter, late_error(waiters == &barriers_, entry->first, waiter, before));
      }
      entry = entry->second.empty() ? waiters->erase(entry) : std::next(entry);
    }
  }
}

base::Error Requests::late_error(bool is_barrier, const std::string& key, const Waiter& late,
                                 const std::vector<Waiter>& waiters) const {
  const std::string waited = duration_text(late.deadline_ns - late.since_ns);
  if (!is_barrier) {
    return base::failed_error(key_text(key), fmt::format("no rank has set it after {}", waited));
  }
  std::vector<bool> there(waiting_.size(), false);
  for (const Waiter& waiter : waiters) there[index(waiter.rank)] = true;
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < there.size(); ++rank) {
    if (!there[rank]) missing.push_back(static_cast<int>(rank));
  }
  return base::failed_error(
      barrier_text(key),
      fmt::format("{} not arrived after {}", ranks_have(missing, there.size()), waited));
}

bool Requests::may_wait(const Waiter& from, const std::string& where) {
  std::size_t& waiting = waiting_[index(from.rank)];
  if (waiting >= limits_.waiting_per_rank) {
    refuse(from, base::failed_error(where, fmt::format("rank {} is already waiting for {} answers",
                                                       from.rank, waiting)));
    return false;
  }
  ++waiting;
  next_deadline_ns_ = std::min(next_deadline_ns_, from.deadline_ns);
  return true;
}

void Requests::answer(const Waiter& waiter, const std::string& value) {
  outgoing_.push_back({waiter.rank, {.kind = FrameKind::kAnswer, .id = waiter.id, .value = value}});
}

void Requests::refuse(const Waiter& waiter, const base::Error& why) {
  outgoing_.push_back(
      {waiter.rank,
       {.kind = FrameKind::kAnswer, .id = waiter.id, .number = 1, .value = encode_error(why)}});
}

}  // namespace assay::control
