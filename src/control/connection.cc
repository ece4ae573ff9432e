#include "control/connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace assay::control {

bool Connection::flush() {
  while (sent_ < out_.size()) {
    const ssize_t sent =
        ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    sent_ += static_cast<std::size_t>(sent);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

template <class Use>
bool Connection::read_some(const Use& use) {
  constexpr int kReads = 16;
  std::array<char, 16384> buffer;
  for (int i = 0; i < kReads; ++i) {
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got == 0) return false;
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    use(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    if (static_cast<std::size_t>(got) < buffer.size()) return true;
  }
  return true;
}

bool Connection::receive() {
  return read_some([this](std::string_view bytes) { reader_.add(bytes); });
}

bool Connection::discard() {
  return read_some([](std::string_view) {});
}

void Connection::finish_sending() {
  ::shutdown(socket_.get(), SHUT_WR);
}

}  // namespace assay::control
