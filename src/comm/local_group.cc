#include "comm/local_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace assay::comm {

LocalGroup::LocalGroup(std::vector<int> names, std::chrono::milliseconds timeout)
    : timeout_(timeout), names_(std::move(names)), tickets_(names_.size()) {}

std::string LocalGroup::name(int rank) const {
  return fmt::format("rank {}", names_[static_cast<std::size_t>(rank)]);
}

// Counts this rank's calls on the channel: the collectives, or the sends from one rank to another.
LocalGroup::Key LocalGroup::next_key(int rank, const Call& call) {
  Key channel = {-1, -1, 0};
  if (call.kind == CommKind::kSend) channel = {rank, call.peer, 0};
  if (call.kind == CommKind::kReceive) channel = {call.peer, rank, 0};
  std::get<2>(channel) = ++issued_[{rank, channel}];
  return channel;
}

base::Result<std::uint64_t> LocalGroup::post(int rank, const Call& call, Transfers transfers) {
  const std::lock_guard lock(mutex_);
  if (failure_) return base::fail(*failure_);
  const Key key = next_key(rank, call);
  GroupCall& shared = calls_[key];
  shared.participants = std::get<0>(key) >= 0 ? 2 : names_.size();
  shared.posts[rank] = {call, std::move(transfers)};
  if (const auto absent = missing_rank(shared, key)) {
    fail(base::failed_error(name(*absent), "left the group"));
    return base::fail(*failure_);
  }
  if (shared.posts.size() == shared.participants) {
    if (auto matched = match(shared); !matched) {
      fail(matched.error());
      return base::fail(*failure_);
    }
    shared.agreed = true;
    changed_.notify_all();
  }
  tickets_[static_cast<std::size_t>(rank)][++last_ticket_] = key;
  return last_ticket_;
}

std::optional<base::Error> LocalGroup::disagreement(const GroupCall& shared) const {
  const auto& [first, reference] = *shared.posts.begin();
  for (const auto& [rank, post] : shared.posts) {
    Call expected = reference.call;
    if (reference.call.kind != post.call.kind &&
        std::min(reference.call.kind, post.call.kind) == CommKind::kSend) {
      expected.kind = post.call.kind;  // a send and its receive
      expected.peer = post.call.peer;
    }
    if (post.call == expected) continue;
    return base::failed_error(name(rank),
                              fmt::format("calls {} where {} calls {}", to_text(post.call),
                                          name(first), to_text(reference.call)),
                              "all ranks must run the same job");
  }
  return std::nullopt;
}

// Pairs every received segment with the corresponding sent one.
base::Result<void> LocalGroup::match(GroupCall& shared) const {
  if (auto wrong = disagreement(shared)) return base::fail(*std::move(wrong));
  std::map<std::pair<int, int>, const Outgoing*> sent;
  for (const auto& [from, post] : shared.posts) {
    for (const Outgoing& segment : post.transfers.out) sent[{from, segment.peer}] = &segment;
  }
  for (auto& [to, post] : shared.posts) {
    for (const Incoming& segment : post.transfers.in) {
      const Outgoing& source = *sent.at({segment.peer, to});
      if (source.bytes != segment.bytes) {
        const auto element = static_cast<std::size_t>(bytes_of(post.call.type));
        return base::fail(base::failed_error(
            name(segment.peer),
            fmt::format("sends {} elements to {}, which expects {}, in {}", source.bytes / element,
                        name(to), segment.bytes / element, to_text(post.call)),
            "counts of sender and receiver must agree"));
      }
      if (source.bytes == 0) continue;
      post.copies.push_back(shared.copies.size());
      shared.copies.push_back({source.data, segment.data, source.bytes});
    }
  }
  // A second pass, so that each rank's list begins with what it receives.
  for (const auto& [to, post] : shared.posts) {
    std::size_t next = 0;
    for (const Incoming& segment : post.transfers.in) {
      if (segment.bytes > 0) shared.posts.at(segment.peer).copies.push_back(post.copies[next++]);
    }
  }
  return {};
}

bool LocalGroup::takes_part(int rank, const Key& key) const {
  const auto [from, to, number] = key;
  return from < 0 || rank == from || rank == to;
}

// A rank that has left although the call needs it.
std::optional<int> LocalGroup::missing_rank(const GroupCall& shared, const Key& key) const {
  for (const int rank : left_) {
    if (takes_part(rank, key) && !shared.posts.contains(rank)) return rank;
  }
  return std::nullopt;
}

base::Error LocalGroup::timed_out(const GroupCall& shared, const Key& key, const Call& call) const {
  int missing = 0;
  const auto [from, to, number] = key;
  if (from >= 0) {
    missing = shared.posts.contains(from) ? to : from;
  } else {
    while (shared.posts.contains(missing)) ++missing;
  }
  return base::failed_error(
      name(missing), fmt::format("did not join {} within {} ms", to_text(call), timeout_.count()),
      "check whether that rank hangs");
}

// Needs no timeout: once all have posted, ranks only copy memory.
void LocalGroup::copy_all(GroupCall& shared, int rank, std::unique_lock<std::mutex>& lock) {
  const std::vector<std::size_t>& mine = shared.posts.at(rank).copies;
  for (const std::size_t i : mine) {
    Copy& copy = shared.copies[i];
    if (copy.progress != Progress::kTodo) continue;
    copy.progress = Progress::kCopying;
    lock.unlock();
    std::memcpy(copy.target, copy.source, copy.bytes);
    lock.lock();
    copy.progress = Progress::kDone;
  }
  changed_.notify_all();
  changed_.wait(lock, [&] {
    return std::ranges::all_of(
        mine, [&](std::size_t i) { return shared.copies[i].progress == Progress::kDone; });
  });
}

base::Result<void> LocalGroup::finish(int rank, std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  auto& tickets = tickets_[static_cast<std::size_t>(rank)];
  const auto found = tickets.find(ticket);
  if (found == tickets.end()) {
    if (failure_) return base::fail(*failure_);  // withdrawn by abort()
    return base::fail(base::usage_error(name(rank), "waits for a call that is not in flight"));
  }
  const Key key = found->second;
  tickets.erase(found);
  GroupCall& shared = calls_.at(key);
  const bool in_time = changed_.wait_for(lock, timeout_, [&] {
    if (shared.agreed || failure_) return true;
    const auto absent = missing_rank(shared, key);
    if (absent) fail(base::failed_error(name(*absent), "left the group"));
    return absent.has_value();
  });
  if (!in_time) fail(timed_out(shared, key, shared.posts.at(rank).call));
  // A call that all ranks have posted completes, even if the group was aborted since.
  if (!shared.agreed) return base::fail(*failure_);
  copy_all(shared, rank, lock);
  if (++shared.finished == shared.participants) calls_.erase(key);
  return {};
}

void LocalGroup::leave(int rank) {
  std::unique_lock lock(mutex_);
  left_.insert(rank);
  changed_.notify_all();
  withdraw(rank, lock);
}

// Gives up this rank's calls in flight: those posted by all ranks are completed, because others may
// wait for them; the others are withdrawn.
void LocalGroup::withdraw(int rank, std::unique_lock<std::mutex>& lock) {
  for (const auto& [ticket, key] : std::exchange(tickets_[static_cast<std::size_t>(rank)], {})) {
    GroupCall& shared = calls_.at(key);
    if (shared.agreed) {
      copy_all(shared, rank, lock);
    } else {
      shared.posts.erase(rank);
    }
  }
}

void LocalGroup::fail(const base::Error& why) {
  if (!failure_) failure_ = why;
  changed_.notify_all();
}

void LocalGroup::abort(int rank, const base::Error& why) {
  abort_all(why);
  std::unique_lock lock(mutex_);
  withdraw(rank, lock);
}

void LocalGroup::abort_all(const base::Error& why) {
  std::vector<std::shared_ptr<LocalGroup>> below;
  {
    const std::lock_guard lock(mutex_);
    fail(why);
    aborted_ = true;
    for (const auto& [id, subgroup] : subgroups_) below.push_back(subgroup.group.lock());
  }
  for (const auto& group : below) {
    if (group) group->abort_all(why);
  }
}

std::shared_ptr<LocalGroup> LocalGroup::subgroup(const std::vector<int>& members, std::int64_t id) {
  const std::lock_guard lock(mutex_);
  auto [found, is_new] = subgroups_.try_emplace(id);
  Subgroup& subgroup = found->second;
  if (is_new) {
    std::vector<int> names;
    for (const int member : members) names.push_back(names_[static_cast<std::size_t>(member)]);
    subgroup.held = std::make_shared<LocalGroup>(std::move(names), timeout_);
    if (aborted_) subgroup.held->abort_all(*failure_);
    subgroup.group = subgroup.held;
    subgroup.missing = members.size();
  }
  auto group = subgroup.group.lock();
  if (--subgroup.missing == 0) subgroup.held.reset();
  return group;
}

}  // namespace assay::comm
