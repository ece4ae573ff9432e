// MetricsServer: answers GET /metrics, for Prometheus and curl, and nothing else. One thread, no
// trust in anybody: a client has a few seconds and a few kilobytes, and when too many are there the
// oldest has to go, so that nobody can keep the others out.
#pragma once

#include <signal.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::share {

// What a request is answered with; `head` is everything up to the empty line.
std::string http_answer(std::string_view head, std::string_view metrics);

class MetricsServer {
 public:
  // "9400", "0.0.0.0:9400", "[::1]:9400"; without a host, this machine only. Port 0 takes a free
  // one. Errors begin with `where`.
  static base::Result<MetricsServer> listen(const std::string& where, const std::string& address);

  // "127.0.0.1:9400"
  [[nodiscard]] const std::string& address() const { return address_; }

  // Serves this text until then (monotonic). False if a signal came, which is let in by `mask`.
  bool serve_until(std::int64_t deadline_ns, const std::string& metrics, const sigset_t& mask);

 private:
  struct Client {
    base::UniqueFd socket;
    std::int64_t deadline_ns = 0;
    std::string head;
    std::string answer;  // empty: it is still asking
    std::size_t written = 0;
    std::size_t drained = 0;
    bool answered = false;  // only waits for the client to close
  };

  MetricsServer(base::UniqueFd listener, std::string address)
      : listener_(std::move(listener)), address_(std::move(address)) {}
  void accept_all(std::int64_t now_ns);
  // False: it is done with, or has to go.
  static bool advance(Client& client, const std::string& metrics);
  static bool read_from(Client& client, const std::string& metrics);

  base::UniqueFd listener_;
  std::string address_;
  std::deque<Client> clients_;        // oldest first
  std::int64_t accept_again_ns_ = 0;  // after running out of descriptors
};

}  // namespace assay::share
