#include "http/listener.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/host_port.h"
#include "base/number.h"

namespace assay::http {
namespace {

std::string bound_address(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(socket, address, &size) != 0 ||
      ::getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  return base::to_text(
      base::HostPort{host.data(), base::parse_number<std::uint16_t>(port.data()).value_or(0)});
}

// Invalid with errno set if it fails.
base::UniqueFd bound_socket(const addrinfo& address) {
  base::UniqueFd socket(
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (!socket.valid() ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    const int reason = errno;
    socket.reset();
    errno = reason;
  }
  return socket;
}

}  // namespace

base::Result<Listener> listen_at(const std::string& where, const std::string& address) {
  ASSAY_TRY(
      const base::HostPort wanted,
      base::parse_host_port(where, address,
                            "write PORT, HOST:PORT or [IPV6]:PORT, for example 9400", "127.0.0.1"));
  const std::string port = std::to_string(wanted.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(wanted.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return base::fail(base::usage_error(
        where, fmt::format("unknown host '{}': {}", wanted.host, ::gai_strerror(error))));
  }
  Listener listener;
  int reason = 0;
  for (const addrinfo* one = found; one != nullptr && !listener.socket.valid();
       one = one->ai_next) {
    listener.socket = bound_socket(*one);
    if (!listener.socket.valid()) reason = errno;
  }
  ::freeaddrinfo(found);
  if (!listener.socket.valid()) {
    return base::fail(base::system_error(where, fmt::format("cannot listen at {}", address), reason,
                                         "choose another port"));
  }
  listener.address = bound_address(listener.socket.get());
  return listener;
}

}  // namespace assay::http
