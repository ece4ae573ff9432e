// Endpoint: a host and a port as text; the name is not resolved yet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::control {

struct Endpoint {
  std::string host;  // a name or a numeric address, without brackets
  std::uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};

// "node1:2950", "10.0.0.1:2950", "[fe80::1%eth0]:2950". `where` begins the error line.
base::Result<Endpoint> parse_endpoint(const std::string& where, std::string_view text);

std::string to_text(const Endpoint& endpoint);

}  // namespace assay::control
