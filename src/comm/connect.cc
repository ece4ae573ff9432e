#include "comm/connect.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "comm/listener.h"

namespace assay::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

milliseconds until(Clock::time_point deadline) {
  return std::max(std::chrono::ceil<milliseconds>(deadline - Clock::now()), milliseconds(0));
}

// Waits for one event on a socket.
bool ready(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    pollfd watched = {fd, events, 0};
    const int count = ::poll(&watched, 1, static_cast<int>(until(deadline).count()));
    if (count > 0) return true;
    if (count == 0 || errno != EINTR) return false;
  }
}

base::UniqueFd connected(const sockaddr* address, socklen_t size, Clock::time_point deadline) {
  base::UniqueFd socket(
      ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return socket;
  if (::connect(socket.get(), address, size) == 0) return socket;
  int error = errno;
  if (error == EINPROGRESS && ready(socket.get(), POLLOUT, deadline)) {
    socklen_t length = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == 0) return socket;
  errno = error == EINPROGRESS ? ETIMEDOUT : error;
  return {};
}

base::UniqueFd connected_local(const std::string& name, Clock::time_point deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // at most 64 bytes
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return connected(reinterpret_cast<sockaddr*>(&address), size, deadline);
}

base::UniqueFd connected_tcp(const Endpoint& to, Clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  errno = EINVAL;
  if (::getaddrinfo(to.address.c_str(), to.port.c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  return connected(found->ai_addr, found->ai_addrlen, deadline);
}

// Connects to a rank with a lower number and sends the hello; that rank replies later, in
// accept_all().
base::Result<base::UniqueFd> call_on(int peer, const ConnectOptions& options,
                                     const std::string& own_host, KeyValue& store,
                                     Clock::time_point deadline) {
  const std::string where = fmt::format("rank {}", peer);
  ASSAY_TRY(const std::string text,
            store.get(fmt::format("{}/{}", options.prefix, peer), until(deadline)));
  const auto to = Endpoint::parsed(text);
  if (!to) return base::fail(base::failed_error(where, "published no usable address"));
  base::UniqueFd socket;
  if (!options.only_tcp && !to->name.empty() && to->host == own_host) {
    socket = connected_local(to->name, deadline);
  }
  if (!socket.valid()) socket = connected_tcp(*to, deadline);
  if (!socket.valid()) {
    return base::fail(base::system_error(
        where,
        fmt::format("rank {} cannot connect to {} port {}", options.rank, to->address, to->port),
        errno, "check that the machines reach each other on this address"));
  }
  set_up_tcp(socket.get());
  Hello hello;
  hello.magic = kHelloMagic;
  hello.token = to->token;
  hello.rank = options.rank;
  hello.ranks = options.ranks;
  if (::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    return base::fail(base::system_error(where, "closed the connection at once", errno));
  }
  return socket;
}

base::Result<void> read_welcome(int peer, int rank, int fd, Clock::time_point deadline) {
  std::array<char, kWelcome.size()> answer{};
  std::size_t read = 0;
  while (read < answer.size()) {
    if (!ready(fd, POLLIN, deadline)) {
      return base::fail(base::failed_error(fmt::format("rank {}", peer),
                                           fmt::format("has not answered rank {} in time", rank)));
    }
    const ssize_t got = ::recv(fd, answer.data() + read, answer.size() - read, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    read += static_cast<std::size_t>(got);
  }
  if (read < answer.size() || answer != kWelcome) {
    return base::fail(base::failed_error(fmt::format("rank {}", peer),
                                         fmt::format("rejected rank {}", rank),
                                         "two jobs may use the same address and names"));
  }
  return {};
}

}  // namespace

base::Result<std::vector<base::UniqueFd>> connect_ranks(const ConnectOptions& options,
                                                        KeyValue& store) {
  const auto deadline = Clock::now() + options.timeout;
  ASSAY_TRY(Listener listener, Listener::open(options.rank, options.ranks, options.address));
  ASSAY_TRY_VOID(
      store.put(fmt::format("{}/{}", options.prefix, options.rank), listener.endpoint().text()));
  // The kernel completes connections, so every rank can first connect to all lower ranks and then
  // accept all higher ones: no two ranks wait for each other.
  std::vector<base::UniqueFd> sockets(static_cast<std::size_t>(options.ranks));
  for (int peer = 0; peer < options.rank; ++peer) {
    ASSAY_TRY(sockets[static_cast<std::size_t>(peer)],
              call_on(peer, options, listener.endpoint().host, store, deadline));
  }
  ASSAY_TRY_VOID(listener.accept_all(deadline, sockets));
  for (int peer = 0; peer < options.rank; ++peer) {
    ASSAY_TRY_VOID(
        read_welcome(peer, options.rank, sockets[static_cast<std::size_t>(peer)].get(), deadline));
  }
  return sockets;
}

}  // namespace assay::comm
