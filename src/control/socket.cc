#include "control/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/process/process.h"

namespace assay::control {
namespace {

// An address that drops packets must not use up the time of the next one.
constexpr std::chrono::seconds kPerAddress{2};

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

base::Result<std::vector<Address>> resolve(const base::HostPort& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const int error = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    return base::fail(base::usage_error(
        to_text(endpoint),
        fmt::format("unknown host '{}': {}", endpoint.host, ::gai_strerror(error)),
        "name rank 0's host so that every rank can look it up, or give its address"));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Address address;
    address.size = std::min<socklen_t>(one->ai_addrlen, sizeof address.storage);
    std::memcpy(&address.storage, one->ai_addr, address.size);
    addresses.push_back(address);
  }
  return addresses;
}

std::string host_text(const Address& address) {
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(address.get(), address.size, host.data(), host.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return "?";
  }
  // A socket for both families shows IPv4 peers as IPv6 addresses.
  const std::string text = host.data();
  constexpr std::string_view kMapped = "::ffff:";
  return text.starts_with(kMapped) && text.find('.') != std::string::npos
             ? text.substr(kMapped.size())
             : text;
}

std::uint16_t port_of(const Address& address) {
  if (address.storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
}

using NameFunction = int (*)(int, sockaddr*, socklen_t*);

Address address_of(int socket, NameFunction function) {
  Address address;
  address.size = sizeof address.storage;
  if (function(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    address.size = 0;
  }
  return address;
}

// Invalid with errno set if it fails.
base::UniqueFd listening_socket(const Address& address, bool both_families) {
  base::UniqueFd socket(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  const int only_v6 = both_families ? 0 : 1;
  if (!socket.valid() ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      (address.storage.ss_family == AF_INET6 &&
       ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6) != 0) ||
      ::bind(socket.get(), address.get(), address.size) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    const int reason = errno;
    socket.reset();
    errno = reason;
  }
  return socket;
}

// If nobody listens at the port, the kernel may choose the same port for the outgoing side; TCP
// then connects the socket to itself.
bool connected_to_itself(int socket) {
  const Address local = address_of(socket, ::getsockname);
  const Address peer = address_of(socket, ::getpeername);
  return local.size == peer.size && port_of(local) == port_of(peer) &&
         host_text(local) == host_text(peer);
}

// 0, or the reason.
int connect_to(const Address& address, SteadyTime deadline, base::UniqueFd& socket) {
  socket.reset(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno;
  if (::connect(socket.get(), address.get(), address.size) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_for(socket.get(), POLLOUT, deadline)) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
    if (error != 0) return error;
  }
  if (connected_to_itself(socket.get())) {
    // Closed with a reset: otherwise this socket would prevent rank 0 from binding the port.
    const linger abort{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
    return ECONNREFUSED;
  }
  return 0;
}

}  // namespace

base::Result<Listener> listen_at(const base::HostPort& endpoint) {
  std::vector<Address> addresses;
  const bool any = endpoint.host.empty();
  if (any) {
    ASSAY_TRY(addresses, resolve({"::", endpoint.port}, AI_PASSIVE | AI_NUMERICHOST));
    ASSAY_TRY(const auto v4, resolve({"0.0.0.0", endpoint.port}, AI_PASSIVE | AI_NUMERICHOST));
    addresses.insert(addresses.end(), v4.begin(), v4.end());  // where there is no IPv6
  } else {
    ASSAY_TRY(addresses, resolve(endpoint, AI_PASSIVE));
  }
  int reason = EADDRNOTAVAIL;
  for (const Address& address : addresses) {
    Listener listener;
    listener.socket = listening_socket(address, any);
    if (listener.socket.valid()) {
      listener.port = port_of(address_of(listener.socket.get(), ::getsockname));
      return listener;
    }
    reason = errno;
    // The IPv4 half may be free while the dual-stack port is not; using it would hide the conflict.
    if (reason == EADDRINUSE) break;
  }
  return base::fail(base::system_error(
      any ? fmt::format("port {}", endpoint.port) : to_text(endpoint), "rank 0 cannot listen",
      reason,
      reason == EADDRINUSE ? "another program or job uses the port: set ASSAY_RENDEZVOUS=HOST:PORT "
                             "with a free one for all ranks"
                           : ""));
}

base::Result<Listener> inherited_listener(int fd) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) {
    return base::fail(base::usage_error("ASSAY_RENDEZVOUS_FD",
                                        fmt::format("descriptor {} is not a listening socket", fd),
                                        "only the launcher sets this variable"));
  }
  Listener listener;
  listener.socket.reset(fd);
  listener.port = port_of(address_of(fd, ::getsockname));
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    return base::fail(
        base::system_error("ASSAY_RENDEZVOUS_FD", "cannot use the descriptor", errno));
  }
  return listener;
}

base::Result<base::UniqueFd> connect_once(const base::HostPort& endpoint, SteadyTime deadline) {
  ASSAY_TRY(const std::vector<Address> addresses, resolve(endpoint, 0));
  int reason = ECONNREFUSED;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const bool last = i + 1 == addresses.size();
    const SteadyTime limit =
        last ? deadline : std::min(deadline, std::chrono::steady_clock::now() + kPerAddress);
    base::UniqueFd socket;
    reason = connect_to(addresses[i], limit, socket);
    if (reason == 0) {
      set_stream_options(socket.get());
      return socket;
    }
  }
  return base::fail(base::system_error(to_text(endpoint), "cannot connect", reason));
}

base::Result<std::string> address_towards(const std::string& host) {
  ASSAY_TRY(const std::vector<Address> addresses, resolve({host, 9}, 0));
  int reason = EADDRNOTAVAIL;
  for (const Address& address : addresses) {
    const base::UniqueFd socket(::socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.valid() && ::connect(socket.get(), address.get(), address.size) == 0) {
      return local_host(socket.get());
    }
    reason = errno;
  }
  return base::fail(base::system_error(host, "no route to it from this machine", reason));
}

std::string peer_text(int socket) {
  const Address address = address_of(socket, ::getpeername);
  return address.size == 0 ? "?" : to_text(base::HostPort{host_text(address), port_of(address)});
}

std::string local_host(int socket) {
  const Address address = address_of(socket, ::getsockname);
  return address.size == 0 ? "?" : host_text(address);
}

void set_stream_options(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // Data that is not acknowledged for a minute ends the connection; heartbeats detect a lost peer
  // sooner, but only while a thread is running to read them.
  const int milliseconds = 60'000;
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

bool wait_for(int fd, short events, SteadyTime deadline) {
  while (true) {
    pollfd one{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&one, 1, base::poll_timeout_ms(deadline));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() >= deadline) return false;
  }
}

}  // namespace assay::control
