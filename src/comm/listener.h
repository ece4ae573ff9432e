// Listener: accepts connections from all ranks with higher numbers, until all of them have
// connected.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::comm {

using Token = std::array<char, 16>;

// Sent by a rank when it connects.
struct Hello {
  std::array<char, 8> magic{};
  Token token{};
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
};
constexpr std::array<char, 8> kHelloMagic = {'a', 's', 's', 'a', 'y', 'c', '0', '1'};
// The reply.
constexpr std::array<char, 8> kWelcome = {'w', 'e', 'l', 'c', 'o', 'm', 'e', '1'};

// The addresses of a rank.
struct RankEndpoint {
  std::string host;     // identifies the machine and its network namespace
  std::string address;  // numeric
  std::string port;
  std::string name;  // of its Unix socket, in the abstract namespace, so no file is left
  Token token{};

  [[nodiscard]] std::string text() const;
  static std::optional<RankEndpoint> parsed(const std::string& text);
};

class Listener {
 public:
  static base::Result<Listener> open(int rank, int ranks, const std::string& address);
  [[nodiscard]] const RankEndpoint& endpoint() const { return endpoint_; }
  // Accepts all ranks above this one into `sockets`. Connections without a valid hello are closed.
  base::Result<void> accept_all(std::chrono::steady_clock::time_point deadline,
                                std::vector<base::UniqueFd>& sockets);

 private:
  struct PendingConnection {
    base::UniqueFd socket;
    std::size_t read = 0;
    Hello hello;
  };
  void accept_from(int listener);
  // True when the entry is no longer needed.
  bool read_hello(PendingConnection& pending, std::vector<base::UniqueFd>& sockets) const;

  int rank_ = 0;
  int ranks_ = 0;
  RankEndpoint endpoint_;
  base::UniqueFd tcp_;
  base::UniqueFd local_;
  std::vector<PendingConnection> pending_;
};

// Configures a TCP socket to detect dead machines and to send without delay. Does nothing for other
// sockets.
void set_up_tcp(int fd);

}  // namespace assay::comm
