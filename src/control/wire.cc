#include "control/wire.h"

#include <fmt/format.h>

namespace assay::control {
namespace {

constexpr std::size_t kHeader = 8;  // length (4), kind (1), zeros (3)
constexpr std::size_t kMaxErrorPart = 2000;

bool is_kind(std::uint8_t kind) {
  return (kind >= static_cast<std::uint8_t>(FrameKind::kHello) &&
          kind <= static_cast<std::uint8_t>(FrameKind::kRefused)) ||
         (kind >= static_cast<std::uint8_t>(FrameKind::kComplete) &&
          kind <= static_cast<std::uint8_t>(FrameKind::kGoodbye));
}

}  // namespace

std::string frame_bytes(FrameKind kind, std::string_view payload) {
  std::string bytes = PayloadWriter()
                          .number(payload.size(), 4)
                          .number(static_cast<std::uint8_t>(kind), 1)
                          .number(0, 3)
                          .bytes();
  bytes += payload;
  return bytes;
}

base::Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view rest = std::string_view(bytes_).substr(used_);
  if (rest.size() < kHeader) return std::nullopt;
  PayloadReader header(rest.substr(0, kHeader));
  const std::uint64_t size = header.number(4);
  const auto kind = static_cast<std::uint8_t>(header.number(1));
  if (header.number(3) != 0 || !is_kind(kind)) {
    return base::fail(base::failed_error("", "this is not assay's control protocol"));
  }
  if (size > max_payload_) {
    return base::fail(base::failed_error(
        "",
        fmt::format("a message of {} bytes is longer than the {} allowed", size, max_payload_)));
  }
  if (rest.size() < kHeader + size) return std::nullopt;
  Frame frame{static_cast<FrameKind>(kind), std::string(rest.substr(kHeader, size))};
  used_ += kHeader + size;
  // The buffer is compacted when at least half of it is consumed, so that each byte is moved once
  // on average.
  if (used_ * 2 >= bytes_.size()) {
    bytes_.erase(0, used_);
    used_ = 0;
  }
  return frame;
}

PayloadWriter& PayloadWriter::number(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>((value >> (8 * i)) & 0xFFU);
  return *this;
}

PayloadWriter& PayloadWriter::text(std::string_view text) {
  number(text.size(), 4);
  bytes_ += text;
  return *this;
}

std::uint64_t PayloadReader::number(int bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (!good_ || bytes_.size() < size) {
    good_ = false;
    return 0;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
  }
  bytes_.remove_prefix(size);
  return value;
}

std::string PayloadReader::text(std::size_t max_size) {
  const std::uint64_t size = number(4);
  if (!good_ || size > max_size || size > bytes_.size()) {
    good_ = false;
    return {};
  }
  std::string text(bytes_.substr(0, size));
  bytes_.remove_prefix(size);
  return text;
}

std::string encode(const Message& message) {
  return frame_bytes(message.kind, PayloadWriter()
                                       .number(message.id, 8)
                                       .number(static_cast<std::uint64_t>(message.number), 8)
                                       .text(message.key)
                                       .text(message.value)
                                       .bytes());
}

std::optional<Message> decode(const Frame& frame) {
  if (frame.kind < FrameKind::kComplete) return std::nullopt;
  Message message;
  message.kind = frame.kind;
  PayloadReader reader(frame.payload);
  message.id = reader.number(8);
  message.number = static_cast<std::int64_t>(reader.number(8));
  message.key = reader.text(kMaxKey);
  message.value = reader.text(kMaxValue);
  if (!reader.complete()) return std::nullopt;
  return message;
}

std::string encode_error(const base::Error& error) {
  const auto part = [](std::string_view text) { return text.substr(0, kMaxErrorPart); };
  return PayloadWriter()
      .number(static_cast<std::uint64_t>(error.code), 1)
      .text(part(error.where))
      .text(part(error.what))
      .text(part(error.hint))
      .bytes();
}

base::Error decode_error(std::string_view bytes) {
  PayloadReader reader(bytes);
  base::Error error;
  switch (const auto code = static_cast<base::ExitCode>(reader.number(1))) {
    case base::ExitCode::kInconclusive:
    case base::ExitCode::kUnfit:
    case base::ExitCode::kUsage:
      error.code = code;
      break;
    default:
      error.code = base::ExitCode::kNo;
  }
  error.where = reader.text(kMaxErrorPart);
  error.what = reader.text(kMaxErrorPart);
  error.hint = reader.text(kMaxErrorPart);
  if (!reader.complete()) return base::failed_error("", "its reason could not be decoded");
  return error;
}

}  // namespace assay::control
