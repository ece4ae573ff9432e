// What ranks in different processes send each other: a header of fixed size and, for some kinds,
// bytes after it. Every message names its group and the call it belongs to, so that a receiver can
// tell a message that came early from one that should never have come.
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
  kData = 1,  // the segment of a call follows
  kReady,     // the receiver of a large segment has a place for it
  kLeave,     // the sender will make no more calls in this group
  kAbort,     // the sender's group has failed; the reason follows
};

// Segments of at most this size are sent without asking; a larger one waits for kReady, so that it
// never has to be kept by a receiver that is not there yet.
constexpr std::size_t kSmallBytes = 16 * 1024;
constexpr std::size_t kReasonBytes = 4096;

struct Message {
  MessageKind kind = MessageKind::kData;
  bool one_to_one = false;  // of a send and its receive, not of a collective
  std::uint64_t group = 0;
  std::uint64_t number = 0;  // of the call, in its group; of the send, between its two ranks
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
// Nothing if the bytes are not a message: the sender is not one of us, or broken.
std::optional<Message> decoded(const Header& header);

// An error as the reason of kAbort, and back.
std::string encoded_reason(const base::Error& error);
base::Error decoded_reason(std::string_view bytes);

}  // namespace assay::comm
