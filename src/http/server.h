// Server: HTTP/1.1 over TCP with bounds on everything a client controls. One thread, which calls
// run(), accepts connections, reads requests, calls the handler and writes its responses.
//
// - Time: a client has a fixed time to send a whole request, and again to receive the response.
// - Size: header and body are limited; larger ones are refused before they are read.
// - Number: when all connections are taken, the one whose last request is oldest is closed, so that
//   no client can keep others out by holding connections open.
// - Malformed requests get a 4xx response and lose their connection; handlers never see them.
//
// Boost.Beast is behind the implementation pointer: its headers are included by server.cc alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "http/message.h"

namespace assay::http {

struct ServerLimits {
  std::size_t connections = 64;
  std::size_t header_bytes = 8192;
  std::size_t body_bytes = 65536;
  std::chrono::milliseconds request_timeout{5000};
};

class Server {
 public:
  // `address` as in listen_at(). Connections queue up from here on and are served by run().
  static base::Result<Server> listen(const std::string& where, const std::string& address,
                                     Handler handler, const ServerLimits& limits = {});
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;
  ~Server();

  // "127.0.0.1:9400"
  [[nodiscard]] const std::string& address() const;

  // Serves until stop(), then closes all connections.
  void run();
  // Callable from any thread or a signal handler; also before run(), which then returns at once.
  void stop();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::http
