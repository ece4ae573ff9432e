// Link: the connection to one other rank. Queues what is sent, cuts what is received into messages,
// and puts their bytes where the Receiver says. Never blocks, and has no lock: its mesh has.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>

#include "base/unique_fd.h"
#include "comm/message.h"

namespace assay::comm {

struct Operation;

// Where the bytes that follow a header go; null: read and dropped.
struct Place {
  std::byte* data = nullptr;
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  // A header has come. An error ends the connection.
  virtual base::Result<Place> begin(int peer, const Message& message) = 0;
  // All bytes of the message have come.
  virtual void end(int peer, const Message& message) = 0;
  // A segment has been written to the socket.
  virtual void sent(int peer, const std::shared_ptr<Operation>& operation) = 0;
};

class Link {
 public:
  Link(int peer, base::UniqueFd socket) : peer_(peer), socket_(std::move(socket)) {}

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] bool open() const { return socket_.valid(); }
  [[nodiscard]] bool has_unwritten() const { return !queue_.empty() && !broken_; }

  // The bytes stay the operation's until `sent`; without one they are copied.
  void send(const Message& message, const std::byte* bytes,
            const std::shared_ptr<Operation>& operation);
  // Writes what the socket takes. After an error nothing more is written; what the peer said before
  // is still there to be read, and then its end.
  void flush(Receiver& receiver);
  // Reads what is there, or at most some of it: fair to other links. False: the connection has
  // ended.
  base::Result<bool> receive(Receiver& receiver);
  // Bytes of these operations must not be touched any more.
  template <class Predicate>
  void release(Predicate belongs);
  // Bytes that would go to an operation's buffer are dropped.
  void drop_incoming() { place_ = {}; }
  [[nodiscard]] const std::optional<Message>& incoming() const { return incoming_; }
  // Groups with operations whose bytes have not been written.
  [[nodiscard]] std::set<std::uint64_t> unwritten_groups() const;
  void close();

 private:
  struct Queued {
    Header header;
    const std::byte* bytes = nullptr;
    std::size_t size = 0;
    std::size_t written = 0;  // of header and bytes
    std::shared_ptr<Operation> operation;
    std::unique_ptr<std::byte[]> own;

    void own_bytes();
  };
  base::Result<void> take(Receiver& receiver, const std::byte* bytes, std::size_t count);
  base::Result<void> started(Receiver& receiver);
  void finished(Receiver& receiver);

  int peer_;
  base::UniqueFd socket_;
  bool broken_ = false;  // for writing
  std::deque<Queued> queue_;

  Header header_{};
  std::size_t header_read_ = 0;
  std::optional<Message> incoming_;  // whose bytes are being read
  std::uint64_t incoming_left_ = 0;
  Place place_;
};

template <class Predicate>
void Link::release(Predicate belongs) {
  std::deque<Queued> kept;
  for (Queued& queued : queue_) {
    if (queued.operation && belongs(*queued.operation)) {
      if (queued.written == 0) continue;
      queued.own_bytes();  // begun, so the rest of it must follow
    }
    kept.push_back(std::move(queued));
  }
  queue_ = std::move(kept);
}

}  // namespace assay::comm
