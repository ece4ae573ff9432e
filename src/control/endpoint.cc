#include "control/endpoint.h"

#include <fmt/format.h>

#include "base/number.h"

namespace assay::control {

base::Result<Endpoint> parse_endpoint(const std::string& where, std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return base::fail(base::usage_error(where, fmt::format("'{}' is not an address: {}", text, why),
                                        "write HOST:PORT or [IPV6]:PORT, for example node1:29500"));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refuse("it has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refuse("an IPv6 address needs brackets");
  }
  if (host.empty() || host.find_first_of("[] \t\r\n/") != std::string_view::npos) {
    return refuse("it has no host");
  }
  const auto number = base::parse_number<std::uint16_t>(port);
  if (!number) return refuse("its port is not a number up to 65535");
  Endpoint endpoint;
  endpoint.host = host;
  endpoint.port = *number;
  return endpoint;
}

std::string to_text(const Endpoint& endpoint) {
  const bool brackets = endpoint.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", brackets ? "[" : "", endpoint.host, brackets ? "]" : "",
                     endpoint.port);
}

}  // namespace assay::control
