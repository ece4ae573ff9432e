#include "comm/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace assay::comm {
namespace {

// Limit on unrequested data from all ranks together: a rank that is far ahead causes an error
// instead of exhausting memory.
constexpr std::size_t kEarlyBytes = std::size_t{256} << 20U;
// The cost of keeping a message, in addition to its bytes.
constexpr std::size_t kEarlyOverhead = 256;

}  // namespace

std::string Mesh::name(int rank) const {
  return fmt::format("rank {}", rank);
}

std::int64_t Mesh::next_group_id() {
  const std::lock_guard lock(mutex_);
  return next_group_id_;
}

void Mesh::set_next_group_id(std::int64_t id) {
  const std::lock_guard lock(mutex_);
  next_group_id_ = id;
}

void Mesh::add_group(std::uint64_t id, std::uint64_t parent, const std::vector<int>& members) {
  const std::lock_guard lock(mutex_);
  MeshGroup& group = groups_[id];
  group.id = id;
  group.known = true;
  group.parent = parent;
  group.members = members;
  if (parent != id && groups_.contains(parent) && !group.failure) {
    group.failure = groups_[parent].failure;
  }
  for (const int member : members) {
    if (member != rank_ && lost_[static_cast<std::size_t>(member)] &&
        !group.left.contains(member)) {
      fail(group, base::failed_error(name(member), "connection closed"), false);
      group.lost_between_calls = true;
    }
  }
}

base::Result<std::shared_ptr<Operation>> Mesh::issue(std::uint64_t id, const Call& call,
                                                     Transfers transfers) {
  const std::lock_guard lock(mutex_);
  MeshGroup& group = groups_.at(id);
  if (group.failure) {
    // Adds what this rank was about to do, which is known only now.
    if (std::exchange(group.lost_between_calls, false)) {
      group.failure->what += fmt::format(" before {}", to_text(call));
    }
    return base::fail(*group.failure);
  }
  auto operation = std::make_shared<Operation>();
  operation->group = id;
  operation->call = call;
  operation->one_to_one = call.kind == CommKind::kSend || call.kind == CommKind::kReceive;
  operation->number = group.assign_number(call);
  operation->transfers = std::move(transfers);
  const Transfers& list = operation->transfers;
  operation->open = list.in.size() + list.out.size();
  if (operation->open > 0) group.running.push_back(operation);
  for (std::size_t i = 0; i < list.in.size() && !group.failure; ++i) expect(group, operation, i);
  for (std::size_t i = 0; i < list.out.size() && !group.failure; ++i) offer(group, operation, i);
  flush_queued();
  if (group.failure) return base::fail(*group.failure);
  return operation;
}

// Prepares to receive a segment: it may have arrived already; otherwise its destination is
// registered.
void Mesh::expect(MeshGroup& group, const std::shared_ptr<Operation>& operation,
                  std::size_t segment) {
  const Incoming& wanted = operation->transfers.in[segment];
  const MessageKey key = {wanted.peer, operation->one_to_one, operation->number};
  const auto early = group.early.find(key);
  if (early == group.early.end()) {
    if (group.left.contains(wanted.peer)) {
      return fail(group, base::failed_error(name(wanted.peer), "left the group"), true);
    }
    group.expected[key] = {operation, segment};
    if (wanted.bytes > kSmallBytes) {
      link(wanted.peer).send(operation->message(MessageKind::kReady, wanted.bytes), nullptr, {});
    }
    return;
  }
  const Message& message = early->second.message;
  if (message.call != compared(operation->call) || message.bytes != wanted.bytes) {
    return disagree(group, wanted.peer, message, operation->call);
  }
  group.expected[key] = {operation, segment};
  if (early->second.complete) end(wanted.peer, message);
}

// Sends a segment: small ones at once, large ones when the peer is ready.
void Mesh::offer(MeshGroup& group, const std::shared_ptr<Operation>& operation,
                 std::size_t segment) {
  const Outgoing& given = operation->transfers.out[segment];
  if (group.left.contains(given.peer)) {
    return fail(group, base::failed_error(name(given.peer), "left the group"), true);
  }
  const MessageKey key = {given.peer, operation->one_to_one, operation->number};
  const auto ready = group.ready.find(key);
  if (ready != group.ready.end()) {
    const Message message = ready->second;
    group.ready.erase(ready);
    if (message.call != compared(operation->call) || message.bytes != given.bytes) {
      return disagree(group, given.peer, message, operation->call);
    }
  } else if (given.bytes > kSmallBytes) {
    group.offered[key] = {operation, segment};
    return;
  }
  link(given.peer).send(operation->message(MessageKind::kData, given.bytes), given.data, operation);
}

void Mesh::complete_one(MeshGroup& group, const std::shared_ptr<Operation>& operation) {
  if (--operation->open == 0) group.remove_running(operation.get());
}

void Mesh::sent(int, const std::shared_ptr<Operation>& operation) {
  complete_one(groups_.at(operation->group), operation);
}

base::Result<ReceiveBuffer> Mesh::begin(int peer, const Message& message) {
  if (closed_.contains(message.group)) return ReceiveBuffer{};
  MeshGroup& group = groups_[message.group];
  group.id = message.group;
  if (group.failure) return ReceiveBuffer{};
  switch (message.kind) {
    case MessageKind::kLeave:
      begin_leave(group, peer);
      return ReceiveBuffer{};
    case MessageKind::kReady:
      begin_ready(group, peer, message);
      return ReceiveBuffer{};
    case MessageKind::kAbort: {
      std::string& reason = reasons_[static_cast<std::size_t>(peer)];
      reason.assign(static_cast<std::size_t>(message.bytes), '\0');
      return ReceiveBuffer{reinterpret_cast<std::byte*>(reason.data())};
    }
    case MessageKind::kData:
      if (message.bytes > kSmallBytes &&
          !group.expected.contains({peer, message.one_to_one, message.number}) &&
          !group.issued({peer, message.one_to_one, message.number}, message.kind)) {
        return base::fail(base::failed_error(name(peer), "sent an unexpected message"));
      }
      return begin_data(group, peer, message);
  }
  return ReceiveBuffer{};
}

void Mesh::begin_leave(MeshGroup& group, int peer) {
  group.left.insert(peer);
  for (const auto& operation : group.running) {
    for (const auto* list : {&group.expected, &group.offered}) {
      for (const auto& [key, segment] : *list) {
        if (key.peer != peer || segment.operation != operation) continue;
        return fail(group, base::failed_error(name(peer), "left the group"), true);
      }
    }
  }
}

void Mesh::begin_ready(MeshGroup& group, int peer, const Message& message) {
  const MessageKey key = {peer, message.one_to_one, message.number};
  const auto offered = group.offered.find(key);
  if (offered == group.offered.end()) {
    if (!group.issued(key, message.kind)) {
      group.ready[key] = message;
      return;
    }
    return disagree(group, peer, message, group.past_call(key).value_or(message.call));
  }
  const auto [operation, index] = std::move(offered->second);
  group.offered.erase(offered);
  const Outgoing& given = operation->transfers.out[index];
  if (message.call != compared(operation->call) || message.bytes != given.bytes) {
    return disagree(group, peer, message, operation->call);
  }
  link(peer).send(operation->message(MessageKind::kData, given.bytes), given.data, operation);
}

ReceiveBuffer Mesh::begin_data(MeshGroup& group, int peer, const Message& message) {
  const MessageKey key = {peer, message.one_to_one, message.number};
  if (const auto expected = group.expected.find(key); expected != group.expected.end()) {
    const auto& [operation, index] = expected->second;
    const Incoming& wanted = operation->transfers.in[index];
    if (message.call == compared(operation->call) && message.bytes == wanted.bytes) {
      return ReceiveBuffer{wanted.data};
    }
    disagree(group, peer, message, Call(operation->call));
    return {};
  }
  if (group.issued(key, message.kind)) {
    disagree(group, peer, message, group.past_call(key).value_or(message.call));
    return {};
  }
  early_bytes_ += message.bytes + kEarlyOverhead;
  if (early_bytes_ > kEarlyBytes) {
    early_bytes_ -= message.bytes + kEarlyOverhead;
    fail(group,
         base::failed_error(name(peer),
                            fmt::format("sent {} MiB for calls that {} has not issued",
                                        kEarlyBytes >> 20U, name(rank_)),
                            "let it wait for its peers from time to time"),
         true);
    return {};
  }
  MeshGroup::EarlyMessage& early = group.early[key];
  early.message = message;
  early.bytes = std::make_unique_for_overwrite<std::byte[]>(
      std::max<std::size_t>(static_cast<std::size_t>(message.bytes), 1));
  return ReceiveBuffer{early.bytes.get()};
}

void Mesh::end(int peer, const Message& message) {
  const auto found = groups_.find(message.group);
  if (found == groups_.end() || found->second.failure) return;
  MeshGroup& group = found->second;
  if (message.kind == MessageKind::kAbort) {
    return fail(group, decoded_reason(reasons_[static_cast<std::size_t>(peer)]), false);
  }
  if (message.kind != MessageKind::kData) return;
  const MessageKey key = {peer, message.one_to_one, message.number};
  const auto early = group.early.find(key);
  if (early != group.early.end()) early->second.complete = true;
  const auto expected = group.expected.find(key);
  if (expected == group.expected.end()) return;
  const auto [operation, index] = std::move(expected->second);
  group.expected.erase(expected);
  if (early != group.early.end()) {
    const Incoming& wanted = operation->transfers.in[index];
    if (wanted.bytes > 0) std::memcpy(wanted.data, early->second.bytes.get(), wanted.bytes);
    early_bytes_ -= wanted.bytes + kEarlyOverhead;
    group.early.erase(early);
  }
  complete_one(group, operation);
}

void Mesh::disagree(MeshGroup& group, int peer, const Message& theirs, const Call& ours) {
  if (theirs.call != compared(ours)) {
    return fail(group,
                base::failed_error(name(peer),
                                   fmt::format("calls {} where {} calls {}", to_text(theirs.call),
                                               name(rank_), to_text(ours)),
                                   "all ranks must run the same job"),
                true);
  }
  const char* verb = theirs.kind == MessageKind::kReady ? "expects" : "sends";
  fail(
      group,
      base::failed_error(name(peer),
                         fmt::format("{} {} elements in {}, but {} does not", verb,
                                     theirs.bytes / static_cast<std::uint64_t>(bytes_of(ours.type)),
                                     to_text(ours), name(rank_)),
                         "counts of sender and receiver must agree"),
      true);
}

// Nothing touches the buffers of the group's calls after this.
void Mesh::cancel(MeshGroup& group) {
  for (PeerLink& link : links_) {
    link.release([&](const Operation& operation) { return operation.group == group.id; });
    const auto& incoming = link.incoming();
    if (incoming && incoming->group == group.id && incoming->kind == MessageKind::kData) {
      link.drop_incoming();
    }
  }
  for (const auto& [key, early] : group.early) early_bytes_ -= early.message.bytes + kEarlyOverhead;
  group.early.clear();
  group.ready.clear();
  group.expected.clear();
  group.offered.clear();
  group.running.clear();
}

void Mesh::fail(MeshGroup& group, const base::Error& why, bool notify_peers) {
  if (group.failure) return;
  group.failure = why;
  failed_ = true;
  for (const auto& operation : group.running) operation->failure = why;
  cancel(group);
  if (notify_peers) send_failure_reason(group);
  // The members of these groups are informed by this group's message.
  for (auto& [id, other] : groups_) {
    if (other.known && other.parent == group.id && id != group.id) fail(other, why, false);
  }
  changed_.notify_all();
  wake_waiting_thread();
}

void Mesh::send_failure_reason(const MeshGroup& group) {
  const std::string reason = encoded_reason(*group.failure);
  for (const int member : group.members) {
    if (member == rank_ || !link(member).open()) continue;
    link(member).send(
        {MessageKind::kAbort, false, group.id, 0, {}, static_cast<std::uint64_t>(reason.size())},
        reinterpret_cast<const std::byte*>(reason.data()), {});
  }
}

void Mesh::peer_lost(int peer, const std::string& what) {
  const std::set<std::uint64_t> unwritten = link(peer).unwritten_groups();
  link(peer).close();
  lost_[static_cast<std::size_t>(peer)] = true;
  for (auto& [id, group] : groups_) {
    if (!group.known || group.failure ||
        std::ranges::find(group.members, peer) == group.members.end()) {
      continue;
    }
    // A rank that has left a group may close its connection, unless something for it is still
    // unsent.
    if (group.left.contains(peer)) {
      if (unwritten.contains(id)) {
        fail(group, base::failed_error(name(peer), "left the group"), true);
      }
      continue;
    }
    const bool between_calls = group.running.empty();
    std::string text = what;
    if (!between_calls) text += " during " + to_text(group.running.front()->call);
    fail(group, base::failed_error(name(peer), text), true);
    group.lost_between_calls = between_calls;
  }
}

void Mesh::abort(std::uint64_t id, const base::Error& why) {
  const std::lock_guard lock(mutex_);
  fail(groups_.at(id), why, true);
  flush_queued();
}

void Mesh::leave(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  MeshGroup& group = groups_.at(id);
  cancel(group);
  // A rank that has not received the reason yet must not mistake this rank's leaving for it.
  if (group.failure) send_failure_reason(group);
  for (const int member : group.members) {
    if (member == rank_ || !link(member).open()) continue;
    link(member).send({MessageKind::kLeave, false, id, 0, {}, 0}, nullptr, {});
  }
  closed_.insert(id);
  groups_.erase(id);
  flush_queued();
}

}  // namespace assay::comm
