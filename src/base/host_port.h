// HostPort: a host and a port as text; the name is not resolved.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::base {

struct HostPort {
  std::string host;  // a name or a numeric address, without brackets
  std::uint16_t port = 0;

  bool operator==(const HostPort&) const = default;
};

// "node1:2950", "10.0.0.1:2950", "[fe80::1%eth0]:2950"; a port alone too if there is a
// `default_host`. `where` begins the error line and `hint` ends it.
Result<HostPort> parse_host_port(const std::string& where, std::string_view text,
                                 std::string_view hint, std::string_view default_host = {});

// The same form: with brackets around an IPv6 address.
std::string to_text(const HostPort& address);

}  // namespace assay::base
