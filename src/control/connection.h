// Connection: a non-blocking TCP socket with buffers for outgoing and incoming bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "control/wire.h"

namespace assay::control {

class Connection {
 public:
  Connection(base::UniqueFd socket, std::size_t max_payload)
      : socket_(std::move(socket)), reader_(max_payload) {}

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] FrameReader& reader() { return reader_; }

  void queue(std::string_view bytes) { out_ += bytes; }
  [[nodiscard]] std::size_t queued() const { return out_.size() - sent_; }
  // Sends as much as the socket accepts now. False if the connection is broken.
  bool flush();
  // Reads what is available, up to a limit that is fair to other connections. False if the peer has
  // closed or the connection is broken; what arrived before is still in the reader.
  bool receive();
  // Reads and discards. False as above.
  bool discard();
  // Shuts down the sending direction.
  void finish_sending();

 private:
  template <class Use>
  bool read_some(const Use& use);

  base::UniqueFd socket_;
  FrameReader reader_;
  std::string out_;
  std::size_t sent_ = 0;
};

}  // namespace assay::control
