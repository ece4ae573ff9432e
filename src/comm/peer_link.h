// PeerLink: the connection to one other rank. Queues outgoing messages, splits incoming bytes into
// messages, and stores their payload where the Receiver says. Never blocks, and has no lock of its
// own: the Mesh locks.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>

#include "base/unique_fd.h"
#include "comm/message.h"

namespace assay::comm {

struct Operation;

// Destination of the payload after a header; null: it is discarded.
struct ReceiveBuffer {
  std::byte* data = nullptr;
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  // A header has arrived. An error ends the connection.
  virtual base::Result<ReceiveBuffer> begin(int peer, const Message& message) = 0;
  // The whole payload has arrived.
  virtual void end(int peer, const Message& message) = 0;
  // A segment has been written to the socket.
  virtual void sent(int peer, const std::shared_ptr<Operation>& operation) = 0;
};

class PeerLink {
 public:
  PeerLink(int peer, base::UniqueFd socket) : peer_(peer), socket_(std::move(socket)) {}

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] bool open() const { return socket_.valid(); }
  [[nodiscard]] bool has_unwritten() const { return !queue_.empty() && !broken_; }

  // Until `sent`, the bytes belong to the operation; without an operation they are copied.
  void send(const Message& message, const std::byte* bytes,
            const std::shared_ptr<Operation>& operation);
  // Writes as much as the socket accepts. After an error nothing more is written, but what the peer
  // sent before can still be read.
  void flush(Receiver& receiver);
  // Reads what is available, up to a limit that is fair to other links. False: the connection has
  // ended.
  base::Result<bool> receive(Receiver& receiver);
  // The bytes of these operations must not be accessed any more.
  template <class Predicate>
  void release(Predicate belongs);
  // Discards the rest of a payload that was going to an operation's buffer.
  void drop_incoming() { place_ = {}; }
  [[nodiscard]] const std::optional<Message>& incoming() const { return incoming_; }
  // Groups with operations that are not completely written.
  [[nodiscard]] std::set<std::uint64_t> unwritten_groups() const;
  void close();

 private:
  struct Queued {
    Header header;
    const std::byte* bytes = nullptr;
    std::size_t size = 0;
    std::size_t written = 0;  // bytes of header and payload together
    std::shared_ptr<Operation> operation;
    std::unique_ptr<std::byte[]> own;

    void own_bytes();
  };
  base::Result<void> take(Receiver& receiver, const std::byte* bytes, std::size_t count);
  base::Result<void> started(Receiver& receiver);
  void finished(Receiver& receiver);

  int peer_;
  base::UniqueFd socket_;
  bool broken_ = false;  // writing failed
  std::deque<Queued> queue_;

  Header header_{};
  std::size_t header_read_ = 0;
  std::optional<Message> incoming_;  // the message whose payload is being read
  std::uint64_t incoming_left_ = 0;
  ReceiveBuffer place_;
};

template <class Predicate>
void PeerLink::release(Predicate belongs) {
  std::deque<Queued> kept;
  for (Queued& queued : queue_) {
    if (queued.operation && belongs(*queued.operation)) {
      if (queued.written == 0) continue;
      queued.own_bytes();  // partly written, so the rest must follow
    }
    kept.push_back(std::move(queued));
  }
  queue_ = std::move(kept);
}

}  // namespace assay::comm
