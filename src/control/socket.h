// TCP sockets for the control channel: listening, one attempt to connect with a deadline, and
// addresses as text. All sockets are non-blocking and close-on-exec.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/host_port.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::control {

using SteadyTime = std::chrono::steady_clock::time_point;

struct Listener {
  base::UniqueFd socket;
  std::uint16_t port = 0;
};

// An empty host means all addresses of this machine, IPv4 and IPv6; port 0 means any free port.
base::Result<Listener> listen_at(const base::HostPort& endpoint);

// Takes over an inherited descriptor, which must be a listening TCP socket.
base::Result<Listener> inherited_listener(int fd);

// Tries every address of the host once, until the deadline. An unknown host is a usage error,
// anything else is not.
base::Result<base::UniqueFd> connect_once(const base::HostPort& endpoint, SteadyTime deadline);

// The numeric local address from which packets to the host would be sent; nothing is sent.
base::Result<std::string> address_towards(const std::string& host);

// "10.0.0.1:5000", or "?" if it is not connected.
std::string peer_text(int socket);
// This side's address without the port.
std::string local_host(int socket);

// Disables delays for small messages, and detects peers whose machine is gone.
void set_stream_options(int socket);

// Waits until the descriptor is ready for `events` (POLLIN, POLLOUT); false if the deadline has
// passed.
bool wait_for(int fd, short events, SteadyTime deadline);

}  // namespace assay::control
