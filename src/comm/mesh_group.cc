#include "comm/mesh_group.h"

#include <algorithm>

namespace assay::comm {
namespace {

// Enough to name the call of a rank that is slightly ahead.
constexpr std::size_t kHistory = 64;

std::uint64_t issued_so_far(const std::map<int, std::uint64_t>& counts, int peer) {
  const auto found = counts.find(peer);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

Call compared(const Call& call) {
  Call result = call;
  result.peer = 0;
  if (call.kind == CommKind::kReceive) result.kind = CommKind::kSend;
  return result;
}

Message Operation::message(MessageKind kind, std::uint64_t bytes) const {
  return {kind, one_to_one, group, number, compared(call), bytes};
}

std::uint64_t MeshGroup::assign_number(const Call& call) {
  if (call.kind == CommKind::kSend) return ++sends[call.peer];
  if (call.kind == CommKind::kReceive) return ++receives[call.peer];
  history.push_back(call);
  if (history.size() > kHistory) history.pop_front();
  return ++collectives;
}

bool MeshGroup::issued(const MessageKey& key, MessageKind kind) const {
  if (!key.one_to_one) return key.number <= collectives;
  // Data belongs to a receive, readiness to a send.
  return key.number <= issued_so_far(kind == MessageKind::kData ? receives : sends, key.peer);
}

std::optional<Call> MeshGroup::past_call(const MessageKey& key) const {
  if (key.one_to_one || key.number > collectives) return std::nullopt;
  const std::uint64_t back = collectives - key.number;
  if (back >= history.size()) return std::nullopt;
  return history[history.size() - 1 - static_cast<std::size_t>(back)];
}

void MeshGroup::remove_running(const Operation* operation) {
  std::erase_if(running, [&](const auto& other) { return other.get() == operation; });
}

}  // namespace assay::comm
