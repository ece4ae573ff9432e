// A listening TCP socket, for an address as written on the command line.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay::http {

struct Listener {
  base::UniqueFd socket;  // non-blocking, close-on-exec
  std::string address;    // numeric, with the port that was chosen: "127.0.0.1:9400"
};

// "9400", "0.0.0.0:9400", "[::1]:9400"; without a host, the loopback interface. Port 0 means any
// free port. `where` is the prefix of errors.
base::Result<Listener> listen_at(const std::string& where, const std::string& address);

}  // namespace assay::http
