#include "comm/message.h"

#include <bit>
#include <cstring>
#include <limits>

namespace assay::comm {
namespace {

static_assert(std::endian::native == std::endian::little, "messages are little-endian");

constexpr std::uint32_t kMagic = 0x31594153;  // "SAY1"

// Copies fields to or from consecutive bytes.
class FieldWriter {
 public:
  explicit FieldWriter(Header& header) : at_(header.data()) {}
  template <class T>
  void field(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }

 private:
  std::byte* at_;
};

class FieldReader {
 public:
  explicit FieldReader(const Header& header) : at_(header.data()) {}
  template <class T>
  T field() {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

 private:
  const std::byte* at_;
};

}  // namespace

Header encoded(const Message& message) {
  Header header{};
  FieldWriter write(header);
  write.field(kMagic);
  write.field(static_cast<std::uint8_t>(message.kind));
  write.field(static_cast<std::uint8_t>(message.one_to_one ? 1 : 0));
  write.field(static_cast<std::uint8_t>(message.call.kind));
  write.field(static_cast<std::uint8_t>(message.call.type));
  write.field(static_cast<std::int32_t>(message.call.root));
  write.field(message.group);
  write.field(message.number);
  write.field(message.call.count);
  write.field(message.bytes);
  return header;
}

std::optional<Message> decoded(const Header& header) {
  FieldReader read(header);
  if (read.field<std::uint32_t>() != kMagic) return std::nullopt;
  const auto kind = read.field<std::uint8_t>();
  const auto one_to_one = read.field<std::uint8_t>();
  const auto collective = read.field<std::uint8_t>();
  const auto type = read.field<std::uint8_t>();
  const auto root = read.field<std::int32_t>();
  Message message;
  message.group = read.field<std::uint64_t>();
  message.number = read.field<std::uint64_t>();
  message.call.count = read.field<std::int64_t>();
  message.bytes = read.field<std::uint64_t>();
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (kind < static_cast<std::uint8_t>(MessageKind::kData) ||
      kind > static_cast<std::uint8_t>(MessageKind::kAbort) || one_to_one > 1 ||
      collective > static_cast<std::uint8_t>(CommKind::kReceive) ||
      type > static_cast<std::uint8_t>(ElementType::kF64) || message.call.count < 0 ||
      message.bytes > kMost) {
    return std::nullopt;
  }
  message.kind = static_cast<MessageKind>(kind);
  message.one_to_one = one_to_one != 0;
  message.call.kind = static_cast<CommKind>(collective);
  message.call.type = static_cast<ElementType>(type);
  message.call.root = root;
  if (message.kind == MessageKind::kAbort && message.bytes > kReasonBytes) return std::nullopt;
  return message;
}

std::string encoded_reason(const base::Error& error) {
  std::string bytes(1, static_cast<char>(error.code));
  for (const std::string* part : {&error.where, &error.what, &error.hint}) {
    bytes += part->substr(0, kReasonBytes / 4);
    bytes += '\0';
  }
  return bytes;
}

base::Error decoded_reason(std::string_view bytes) {
  base::Error error = base::failed_error("a rank", "failed");
  if (bytes.empty()) return error;
  switch (static_cast<base::ExitCode>(bytes.front())) {
    case base::ExitCode::kUnfit:
    case base::ExitCode::kUsage:
    case base::ExitCode::kInconclusive:
      error.code = static_cast<base::ExitCode>(bytes.front());
      break;
    default:
      break;
  }
  bytes.remove_prefix(1);
  for (std::string* part : {&error.where, &error.what, &error.hint}) {
    const std::size_t end = std::min(bytes.find('\0'), bytes.size());
    *part = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return error;
}

}  // namespace assay::comm
