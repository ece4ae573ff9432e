#include "comm/listener.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/hex.h"

namespace assay::comm {
namespace {

using Clock = std::chrono::steady_clock;

// Unidentified connections handled at once. More would be an attempt to exhaust our descriptors;
// the oldest is closed.
constexpr std::size_t kMaxPending = 256;

std::optional<Token> token_of(std::string_view text) {
  Token token{};
  if (text.size() != 2 * token.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const std::size_t digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    token[i / 2] = static_cast<char>(static_cast<unsigned char>(token[i / 2]) * 16U + digit);
  }
  return token;
}

// Boot id and network namespace: abstract sockets are reachable within both.
std::string host_identity() {
  struct stat net {};
  const auto boot = base::read_file("/proc/sys/kernel/random/boot_id", base::Bytes(100));
  if (!boot || ::stat("/proc/self/ns/net", &net) != 0) return "?";
  std::string id = boot->substr(0, boot->find('\n'));
  return fmt::format("{}.{}", id, net.st_ino);
}

base::Result<base::UniqueFd> listen_tcp(const std::string& address) {
  const auto failed = [&](std::string_view what) {
    return base::fail(
        base::system_error(address, what, errno, "is it an address of this machine?"));
  };
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), "0", &hints, &found) != 0) {
    return base::fail(base::usage_error(address, "is not a numeric address"));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  base::UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return failed("cannot create a socket");
  if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0) return failed("cannot listen");
  if (::listen(socket.get(), 4096) != 0) return failed("cannot listen");
  return socket;
}

base::Result<std::string> port_of(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  std::array<char, NI_MAXSERV> port{};
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port.data(), port.size(),
                    NI_NUMERICSERV) != 0) {
    return base::fail(base::system_error("data port", "has no number", errno));
  }
  return std::string(port.data());
}

// Failing is not an error: ranks of this machine then use TCP.
base::UniqueFd listen_local(const std::string& name) {
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof address.sun_path - 1));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(socket.get(), 4096) != 0) {
    socket.reset();
  }
  return socket;
}

}  // namespace

std::string RankEndpoint::text() const {
  return fmt::format("{} {} {} {} {}", host, address, port, name.empty() ? "-" : name,
                     base::hex_of(token));
}

std::optional<RankEndpoint> RankEndpoint::parsed(const std::string& text) {
  std::istringstream fields(text);
  RankEndpoint endpoint;
  std::string token;
  if (!(fields >> endpoint.host >> endpoint.address >> endpoint.port >> endpoint.name >> token)) {
    return std::nullopt;
  }
  const auto read = token_of(token);
  if (!read || endpoint.name.size() > 64) return std::nullopt;
  endpoint.token = *read;
  if (endpoint.name == "-") endpoint.name.clear();
  return endpoint;
}

void set_up_tcp(int fd) {
  const auto set = [&](int name, int value) {
    ::setsockopt(fd, IPPROTO_TCP, name, &value, sizeof value);
  };
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  set(TCP_NODELAY, 1);
  set(TCP_KEEPIDLE, 15);
  set(TCP_KEEPINTVL, 5);
  set(TCP_KEEPCNT, 6);
  set(TCP_USER_TIMEOUT, 120'000);
}

base::Result<Listener> Listener::open(int rank, int ranks, const std::string& address) {
  Listener listener;
  listener.rank_ = rank;
  listener.ranks_ = ranks;
  RankEndpoint& endpoint = listener.endpoint_;
  if (::getrandom(endpoint.token.data(), endpoint.token.size(), 0) !=
      static_cast<ssize_t>(endpoint.token.size())) {
    return base::fail(base::system_error(fmt::format("rank {}", rank),
                                         "the kernel returned no random bytes", errno));
  }
  ASSAY_TRY(listener.tcp_, listen_tcp(address));
  ASSAY_TRY(endpoint.port, port_of(listener.tcp_.get()));
  endpoint.address = address;
  endpoint.host = host_identity();
  // Not derived from the token: socket names are public.
  Token random{};
  if (endpoint.host != "?" && ::getrandom(random.data(), random.size(), 0) == sizeof random) {
    endpoint.name = "assay-" + base::hex_of(random);
    listener.local_ = listen_local(endpoint.name);
    if (!listener.local_.valid()) endpoint.name.clear();
  }
  return listener;
}

void Listener::accept_from(int listener) {
  for (;;) {
    base::UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    if (pending_.size() == kMaxPending) pending_.erase(pending_.begin());
    pending_.push_back({std::move(socket), 0, {}});
  }
}

bool Listener::read_hello(PendingConnection& pending, std::vector<base::UniqueFd>& sockets) const {
  const ssize_t got =
      ::recv(pending.socket.get(), reinterpret_cast<char*>(&pending.hello) + pending.read,
             sizeof pending.hello - pending.read, MSG_DONTWAIT);
  if (got < 0) return errno != EAGAIN && errno != EINTR;
  if (got == 0) return true;
  pending.read += static_cast<std::size_t>(got);
  if (pending.read < sizeof pending.hello) return false;
  const Hello& hello = pending.hello;
  if (hello.magic != kHelloMagic || hello.token != endpoint_.token || hello.ranks != ranks_ ||
      hello.rank <= rank_ || hello.rank >= ranks_) {
    return true;
  }
  base::UniqueFd& place = sockets[static_cast<std::size_t>(hello.rank)];
  if (place.valid()) return true;
  set_up_tcp(pending.socket.get());
  // A new socket always has buffer space for the reply.
  if (::send(pending.socket.get(), kWelcome.data(), kWelcome.size(), MSG_NOSIGNAL) ==
      static_cast<ssize_t>(kWelcome.size())) {
    place = std::move(pending.socket);
  }
  return true;
}

base::Result<void> Listener::accept_all(Clock::time_point deadline,
                                        std::vector<base::UniqueFd>& sockets) {
  for (;;) {
    int missing = rank_ + 1;
    while (missing < ranks_ && sockets[static_cast<std::size_t>(missing)].valid()) ++missing;
    if (missing == ranks_) return {};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      return base::fail(
          base::failed_error(fmt::format("rank {}", missing),
                             fmt::format("has not connected to rank {} in time", rank_),
                             fmt::format("check whether it can reach {}", endpoint_.address)));
    }
    std::vector<pollfd> watched = {{tcp_.get(), POLLIN, 0}, {local_.get(), POLLIN, 0}};
    for (const PendingConnection& pending : pending_) {
      watched.push_back({pending.socket.get(), POLLIN, 0});
    }
    ::poll(watched.data(), watched.size(), static_cast<int>(std::min<long>(left.count(), 1000)));
    std::size_t at = 2;
    std::erase_if(pending_, [&](PendingConnection& pending) {
      return watched[at++].revents != 0 && read_hello(pending, sockets);
    });
    if (watched[0].revents != 0) accept_from(tcp_.get());
    if (watched[1].revents != 0) accept_from(local_.get());
  }
}

}  // namespace assay::comm
