#include "comm/peer_link.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "comm/mesh_group.h"

namespace assay::comm {
namespace {

// How much is read or written for one link before the next has its turn.
constexpr std::size_t kTurnBytes = 4 * 1024 * 1024;
// Headers and small segments are read many at a time; longer remainders are read directly into
// place.
constexpr std::size_t kScratchBytes = 64 * 1024;

}  // namespace

void PeerLink::Queued::own_bytes() {
  auto copy = std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(size, 1));
  if (size > 0) std::memcpy(copy.get(), bytes, size);
  own = std::move(copy);
  bytes = own.get();
  operation.reset();
}

void PeerLink::send(const Message& message, const std::byte* bytes,
                    const std::shared_ptr<Operation>& operation) {
  Queued queued = {encoded(message), bytes, static_cast<std::size_t>(message.payload()), 0,
                   operation,        {}};
  if (!operation) queued.own_bytes();
  queue_.push_back(std::move(queued));
}

void PeerLink::flush(Receiver& receiver) {
  std::size_t turn = kTurnBytes;
  while (open() && !broken_ && !queue_.empty() && turn > 0) {
    std::array<iovec, 16> parts{};
    std::size_t used = 0;
    for (std::size_t i = 0; i < queue_.size() && used + 2 <= parts.size(); ++i) {
      Queued& queued = queue_[i];
      if (queued.written < kHeaderBytes) {
        parts[used++] = {queued.header.data() + queued.written, kHeaderBytes - queued.written};
      }
      const std::size_t done = std::max(queued.written, kHeaderBytes) - kHeaderBytes;
      // sendmsg does not write to what it sends.
      auto* bytes = const_cast<std::byte*>(queued.bytes);
      if (done < queued.size) parts[used++] = {bytes + done, queued.size - done};
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = used;
    const ssize_t wrote = ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote < 0) {
      if (errno == EINTR) continue;
      broken_ = errno != EAGAIN;
      return;
    }
    auto left = static_cast<std::size_t>(wrote);
    turn -= std::min(turn, left);
    while (!queue_.empty()) {
      Queued& first = queue_.front();
      const std::size_t step = std::min(left, kHeaderBytes + first.size - first.written);
      first.written += step;
      left -= step;
      if (first.written < kHeaderBytes + first.size) break;
      const auto operation = std::move(first.operation);
      queue_.pop_front();
      if (operation) receiver.sent(peer_, operation);
    }
  }
}

base::Result<void> PeerLink::started(Receiver& receiver) {
  header_read_ = 0;
  const auto message = decoded(header_);
  if (!message) {
    return base::fail(base::failed_error(fmt::format("rank {}", peer_), "sent an invalid message"));
  }
  incoming_ = message;
  incoming_left_ = message->payload();
  ASSAY_TRY(place_, receiver.begin(peer_, *message));
  if (incoming_left_ == 0) finished(receiver);
  return {};
}

void PeerLink::finished(Receiver& receiver) {
  const Message message = *std::exchange(incoming_, std::nullopt);
  place_ = {};
  receiver.end(peer_, message);
}

// Bytes that have been read, in the order in which they came.
base::Result<void> PeerLink::take(Receiver& receiver, const std::byte* bytes, std::size_t count) {
  while (count > 0) {
    std::size_t step = 0;
    if (incoming_) {
      step = static_cast<std::size_t>(std::min<std::uint64_t>(count, incoming_left_));
      if (place_.data != nullptr) {
        std::memcpy(place_.data, bytes, step);
        place_.data += step;
      }
      incoming_left_ -= step;
      if (incoming_left_ == 0) finished(receiver);
    } else {
      step = std::min(count, kHeaderBytes - header_read_);
      std::memcpy(header_.data() + header_read_, bytes, step);
      header_read_ += step;
      if (header_read_ == kHeaderBytes) ASSAY_TRY_VOID(started(receiver));
    }
    bytes += step;
    count -= step;
  }
  return {};
}

base::Result<bool> PeerLink::receive(Receiver& receiver) {
  std::array<std::byte, kScratchBytes> scratch;  // NOLINT: filled by recv
  std::size_t turn = kTurnBytes;
  while (open() && turn > 0) {
    const bool direct = incoming_ && place_.data != nullptr && incoming_left_ >= kScratchBytes;
    std::byte* to = direct ? place_.data : scratch.data();
    const std::size_t most =
        direct ? static_cast<std::size_t>(std::min<std::uint64_t>(incoming_left_, turn))
               : scratch.size();
    const ssize_t got = ::recv(fd(), to, most, MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return true;
      return false;  // reset; for waiting calls the same as an end
    }
    const auto count = static_cast<std::size_t>(got);
    turn -= std::min(turn, count);
    if (direct) {
      place_.data += count;
      incoming_left_ -= count;
      if (incoming_left_ == 0) finished(receiver);
    } else {
      ASSAY_TRY_VOID(take(receiver, scratch.data(), count));
    }
    if (count < most) return true;
  }
  return true;
}

std::set<std::uint64_t> PeerLink::unwritten_groups() const {
  std::set<std::uint64_t> groups;
  for (const Queued& queued : queue_) {
    if (queued.operation) groups.insert(queued.operation->group);
  }
  return groups;
}

void PeerLink::close() {
  socket_.reset();
  queue_.clear();
  incoming_.reset();
  place_ = {};
}

}  // namespace assay::comm
