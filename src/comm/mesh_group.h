// A mesh's state for one group: its members, the calls in flight, and messages that arrived before
// their call was issued here.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "comm/message.h"
#include "comm/transfers.h"

namespace assay::comm {

// An issued call. Complete when every segment has been written or received.
struct Operation {
  std::uint64_t group = 0;
  Call call;
  bool one_to_one = false;
  std::uint64_t number = 0;
  Transfers transfers;
  std::size_t open = 0;  // incomplete segments
  std::optional<base::Error> failure;

  [[nodiscard]] bool ended() const { return open == 0 || failure.has_value(); }
  [[nodiscard]] Message message(MessageKind kind, std::uint64_t bytes) const;
};

// The part of a call that ranks compare; equal for a send and its receive.
Call compared(const Call& call);

struct MessageKey {
  int peer = 0;
  bool one_to_one = false;
  std::uint64_t number = 0;
  auto operator<=>(const MessageKey&) const = default;
};

struct MeshGroup {
  struct Segment {
    std::shared_ptr<Operation> operation;
    std::size_t index = 0;  // in transfers.in or transfers.out
  };
  struct EarlyMessage {
    Message message;
    std::unique_ptr<std::byte[]> bytes;
    bool complete = false;
  };

  std::uint64_t id = 0;
  bool known = false;  // added on this rank; otherwise only messages for it have arrived
  std::uint64_t parent = 0;
  std::vector<int> members;

  std::uint64_t collectives = 0;          // issued so far
  std::map<int, std::uint64_t> sends;     // by peer, issued so far
  std::map<int, std::uint64_t> receives;  // the same
  std::deque<Call> history;               // the last collectives, newest last

  std::vector<std::shared_ptr<Operation>> running;  // oldest first
  std::map<MessageKey, Segment> expected;           // to be received
  std::map<MessageKey, Segment> offered;            // large, to be sent when the peer is ready
  std::map<MessageKey, EarlyMessage> early;
  std::map<MessageKey, Message> ready;  // from peers, before the send is issued here
  std::set<int> left;
  std::optional<base::Error> failure;
  bool lost_between_calls = false;  // failed between calls; the next call reports it

  std::uint64_t assign_number(const Call& call);
  // Whether the call that this message belongs to has been issued here.
  [[nodiscard]] bool issued(const MessageKey& key, MessageKind kind) const;
  // The call that was made here with the message's number.
  [[nodiscard]] std::optional<Call> past_call(const MessageKey& key) const;
  void remove_running(const Operation* operation);
};

}  // namespace assay::comm
