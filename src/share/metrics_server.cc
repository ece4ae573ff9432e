#include "share/metrics_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <vector>

#include "base/clock.h"
#include "share/metrics_text.h"

namespace assay::share {
namespace {

constexpr std::size_t kMostClients = 64;
constexpr std::size_t kMostHead = 8192;
constexpr std::size_t kMostDrained = 65536;
constexpr std::int64_t kPatienceNs = 5'000'000'000;
constexpr std::int64_t kPauseNs = 100'000'000;

std::string response(std::string_view status, std::string_view type, std::string_view body,
                     bool with_body, std::string_view more = "") {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}",
      status, type, body.size(), more, with_body ? body : std::string_view());
}

std::string refusal(std::string_view status, std::string_view more = "", bool with_body = true) {
  return response(status, "text/plain; charset=utf-8", fmt::format("{}: see /metrics\n", status),
                  with_body, more);
}

bool is_head_complete(std::string_view text) {
  return text.find("\r\n\r\n") != std::string_view::npos ||
         text.find("\n\n") != std::string_view::npos;
}

struct Address {
  std::string host = "127.0.0.1";
  std::string port;
};

base::Result<Address> split_address(const std::string& where, const std::string& text) {
  Address address;
  address.port = text;
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    address.port = text.substr(colon + 1);
    if (address.host.starts_with('[') && address.host.ends_with(']')) {
      address.host = address.host.substr(1, address.host.size() - 2);
    } else if (address.host.find(':') != std::string::npos) {
      return base::fail(base::usage_error(where, fmt::format("'{}' is not an address", text),
                                          "an IPv6 address stands in brackets: [::1]:9400"));
    }
  }
  std::uint16_t number = 0;
  const char* end = address.port.data() + address.port.size();
  const auto [stopped, error] = std::from_chars(address.port.data(), end, number);
  if (address.host.empty() || error != std::errc{} || stopped != end || address.port.empty()) {
    return base::fail(base::usage_error(where, fmt::format("'{}' is not an address", text),
                                        "PORT or HOST:PORT, for example 9400"));
  }
  return address;
}

std::string name_of_socket(int socket) {
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
  const bool brackets = storage.ss_family == AF_INET6;
  return fmt::format("{}{}{}:{}", brackets ? "[" : "", host.data(), brackets ? "]" : "",
                     port.data());
}

timespec until(std::int64_t now_ns, std::int64_t deadline_ns) {
  const std::int64_t left = std::max<std::int64_t>(deadline_ns - now_ns, 0);
  return {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
}

}  // namespace

std::string http_answer(std::string_view head, std::string_view metrics) {
  const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || !line.substr(second + 1).starts_with("HTTP/1.")) {
    return refusal("400 Bad Request");
  }
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD") {
    return refusal("405 Method Not Allowed", "Allow: GET, HEAD\r\n");
  }
  const std::string_view target = line.substr(first + 1, second - first - 1);
  if (target.substr(0, target.find('?')) != "/metrics") {
    return refusal("404 Not Found", "", method == "GET");
  }
  return response("200 OK", kMetricsType, metrics, method == "GET");
}

base::Result<MetricsServer> MetricsServer::listen(const std::string& where,
                                                  const std::string& address) {
  ASSAY_TRY(const Address wanted, split_address(where, address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(wanted.host.c_str(), wanted.port.c_str(), &hints, &found);
      error != 0) {
    return base::fail(base::usage_error(
        where, fmt::format("'{}' is no host: {}", wanted.host, ::gai_strerror(error))));
  }
  int reason = 0;
  base::UniqueFd listener;
  for (const addrinfo* one = found; one != nullptr && !listener.valid(); one = one->ai_next) {
    base::UniqueFd socket(
        ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    if (socket.valid() &&
        ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        ::bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0) {
      listener = std::move(socket);
    } else {
      reason = errno;
    }
  }
  ::freeaddrinfo(found);
  if (!listener.valid()) {
    return base::fail(base::system_error(where, fmt::format("cannot listen at {}", address), reason,
                                         "choose another port"));
  }
  std::string name = name_of_socket(listener.get());
  return MetricsServer(std::move(listener), std::move(name));
}

void MetricsServer::accept_all(std::int64_t now_ns) {
  while (true) {
    base::UniqueFd socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      if (clients_.size() == kMostClients) clients_.pop_front();
      Client client;
      client.socket = std::move(socket);
      client.deadline_ns = now_ns + kPatienceNs;
      clients_.push_back(std::move(client));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      // Most likely out of descriptors; the listener would be ready again at once.
      accept_again_ns_ = now_ns + kPauseNs;
      if (!clients_.empty()) clients_.pop_front();
    }
    return;
  }
}

bool MetricsServer::read_from(Client& client, const std::string& metrics) {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::recv(client.socket.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (got == 0) return false;
  if (client.answered) {
    client.drained += static_cast<std::size_t>(got);
    return client.drained < kMostDrained;
  }
  client.head.append(buffer.data(), static_cast<std::size_t>(got));
  if (is_head_complete(client.head)) {
    client.answer = http_answer(client.head, metrics);
  } else if (client.head.size() > kMostHead) {
    client.answer = refusal("431 Request Header Fields Too Large");
  }
  return true;
}

bool MetricsServer::advance(Client& client, const std::string& metrics) {
  if (client.answer.empty() || client.answered) return read_from(client, metrics);
  const std::string_view rest = std::string_view(client.answer).substr(client.written);
  const ssize_t sent = ::send(client.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  client.written += static_cast<std::size_t>(sent);
  if (client.written < client.answer.size()) return true;
  // Closing with something unread would reset the connection and could take the answer along.
  client.answered = true;
  return ::shutdown(client.socket.get(), SHUT_WR) == 0;
}

bool MetricsServer::serve_until(std::int64_t deadline_ns, const std::string& metrics,
                                const sigset_t& mask) {
  while (true) {
    const std::int64_t now = base::system_clock().monotonic_ns();
    std::erase_if(clients_, [&](const Client& client) { return client.deadline_ns <= now; });
    if (now >= deadline_ns) return true;
    std::int64_t wake = deadline_ns;
    std::vector<pollfd> polled;
    const bool accepting = now >= accept_again_ns_;
    polled.push_back({accepting ? listener_.get() : -1, POLLIN, 0});
    if (!accepting) wake = std::min(wake, accept_again_ns_);
    for (const Client& client : clients_) {
      const bool writing = !client.answer.empty() && !client.answered;
      polled.push_back({client.socket.get(), static_cast<short>(writing ? POLLOUT : POLLIN), 0});
      wake = std::min(wake, client.deadline_ns);
    }
    const timespec wait = until(now, wake);
    const int ready = ::ppoll(polled.data(), polled.size(), &wait, &mask);
    if (ready < 0 && errno == EINTR) return false;
    if (ready <= 0) continue;
    std::size_t at = 0;
    std::erase_if(clients_, [&](Client& client) {
      return polled[++at].revents != 0 && !advance(client, metrics);
    });
    if (polled[0].revents != 0) accept_all(now);
  }
}

}  // namespace assay::share
