// TCP sockets for the control channel: listening, one attempt to connect with a deadline, and
// addresses as text. All sockets are non-blocking and close-on-exec.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "control/endpoint.h"

namespace assay::control {

using SteadyTime = std::chrono::steady_clock::time_point;

struct Listener {
  base::UniqueFd socket;
  std::uint16_t port = 0;
};

// An empty host stands for all addresses of this machine, IPv4 and IPv6; port 0 takes a free one.
base::Result<Listener> listen_at(const Endpoint& endpoint);

// A descriptor that was inherited and must be a listening TCP socket.
base::Result<Listener> inherited_listener(int fd);

// Tries every address of the host once, until the deadline. The error of an unknown host is a usage
// error, others are not.
base::Result<base::UniqueFd> connect_once(const Endpoint& endpoint, SteadyTime deadline);

// The local address that packets to the host would leave from, numeric; nothing is sent.
base::Result<std::string> address_towards(const std::string& host);

// "10.0.0.1:5000", or "?" if it is not connected.
std::string peer_text(int socket);
// This side's address without the port.
std::string local_host(int socket);

// No delay for small messages, and an end to waiting for a peer whose machine is gone.
void set_stream_options(int socket);

// Until the descriptor is ready for `events` (POLLIN, POLLOUT) or the deadline has passed.
bool wait_for(int fd, short events, SteadyTime deadline);

}  // namespace assay::control
