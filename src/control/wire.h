// The bytes on the control channel's TCP connections: frames (length, kind, payload) and the
// messages in them. All input here is untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::control {

inline constexpr std::uint16_t kProtocolVersion = 1;

// The longest wait that a peer may request: a day.
inline constexpr std::int64_t kLongestWait_ms = 86'400'000;

inline constexpr std::size_t kMaxKey = 256;
inline constexpr std::size_t kMaxValue = 1 << 20;
// Limits for a frame's payload, before and after a peer has authenticated.
inline constexpr std::size_t kMaxStrangerPayload = 1024;
inline constexpr std::size_t kMaxPayload = kMaxValue + 1024;

enum class FrameKind : std::uint8_t {
  // Joining. The first five never change, so that any two versions can tell each other why they are
  // incompatible.
  kHello = 1,
  kChallenge = 2,
  kProof = 3,
  kWelcome = 4,
  kRefused = 5,
  // Between rank 0 and the others, after joining.
  kComplete = 16,   // all ranks have joined
  kHeartbeat = 17,  // to rank 0: step, and milliseconds since it began
  kAlive = 18,      // rank 0's answer
  kPut = 19,
  kGet = 20,
  kBarrier = 21,
  kAnswer = 22,
  kFailure = 23,
  kGoodbye = 24,
};

struct Frame {
  FrameKind kind = FrameKind::kHello;
  std::string payload;
};

std::string frame_bytes(FrameKind kind, std::string_view payload);

// Splits a stream of bytes into frames. After an error it stays failed, because the start of the
// next frame is unknown.
class FrameReader {
 public:
  explicit FrameReader(std::size_t max_payload) : max_payload_(max_payload) {}

  void set_max_payload(std::size_t max_payload) { max_payload_ = max_payload; }
  void add(std::string_view bytes) { bytes_ += bytes; }
  // The next whole frame, or nothing yet.
  base::Result<std::optional<Frame>> next();

 private:
  std::size_t max_payload_;
  std::string bytes_;
  std::size_t used_ = 0;
};

// Integers are little-endian; text is prefixed with its length.
class PayloadWriter {
 public:
  PayloadWriter& number(std::uint64_t value, int bytes);
  PayloadWriter& text(std::string_view text);  // at most 4 GiB
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what a PayloadWriter wrote. After the end, or after a text that is too long, every value is
// zero or empty, and complete() is false.
class PayloadReader {
 public:
  explicit PayloadReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number(int bytes);
  std::string text(std::size_t max_size);
  // Everything was read, and nothing was missing.
  [[nodiscard]] bool complete() const { return good_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

// A message between authenticated ranks. Which fields are used depends on the kind.
struct Message {
  FrameKind kind = FrameKind::kAlive;
  std::uint64_t id = 0;     // of a request and its answer; for kHeartbeat: milliseconds in the step
  std::int64_t number = 0;  // timeout in ms; step; failed rank; 1 in an answer: refused
  std::string key;
  std::string value;  // the value; an encoded Error in kFailure and in a refusal

  bool operator==(const Message&) const = default;
};

std::string encode(const Message& message);
// Nothing if the payload is not a valid message.
std::optional<Message> decode(const Frame& frame);

std::string encode_error(const base::Error& error);
// Accepts any bytes; invalid ones give an error that says so.
base::Error decode_error(std::string_view bytes);

}  // namespace assay::control
