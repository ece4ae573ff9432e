// The messages between ranks in different processes: a header of fixed size and, for some kinds, a
// payload. Every message names its group and the call it belongs to, so that a receiver can tell an
// early message from one that is wrong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/communicator.h"

namespace assay::comm {

enum class MessageKind : std::uint8_t {
  kData = 1,  // a segment of a call follows
  kReady,     // the receiver of a large segment has a buffer for it
  kLeave,     // the sender will make no more calls in this group
  kAbort,     // the sender's group has failed; the reason follows
};

// Segments up to this size are sent at once; a larger one waits for kReady, so that a receiver
// which has not issued its call yet never has to buffer it.
constexpr std::size_t kSmallBytes = 16 * 1024;
constexpr std::size_t kReasonBytes = 4096;

struct Message {
  MessageKind kind = MessageKind::kData;
  bool one_to_one = false;  // belongs to a send and its receive, not to a collective
  std::uint64_t group = 0;
  std::uint64_t number = 0;  // of the call within its group, or of the send between its two ranks
  Call call;                 // kSend for both sides of a send; peer is not sent
  std::uint64_t bytes = 0;   // kData, kReady: of the segment; kAbort: of the reason

  // The bytes that follow the header.
  [[nodiscard]] std::uint64_t payload() const {
    return kind == MessageKind::kData || kind == MessageKind::kAbort ? bytes : 0;
  }
};

constexpr std::size_t kHeaderBytes = 44;
using Header = std::array<std::byte, kHeaderBytes>;

Header encoded(const Message& message);
// Nothing if the bytes are not a valid message: the sender is broken or not one of ours.
std::optional<Message> decoded(const Header& header);

// An error as the payload of kAbort, and back.
std::string encoded_reason(const base::Error& error);
base::Error decoded_reason(std::string_view bytes);

}  // namespace assay::comm
