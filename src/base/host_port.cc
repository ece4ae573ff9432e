#include "base/host_port.h"

#include <fmt/format.h>

#include "base/number.h"

namespace assay::base {

Result<HostPort> parse_host_port(const std::string& where, std::string_view text,
                                 std::string_view hint, std::string_view default_host) {
  const auto refuse = [&](std::string_view why) {
    return fail(usage_error(where, fmt::format("'{}' is not an address: {}", text, why),
                            std::string(hint)));
  };
  const std::size_t colon = text.rfind(':');
  const bool port_alone = colon == std::string_view::npos;
  if (port_alone && default_host.empty()) return refuse("it has no port");
  std::string_view host = port_alone ? default_host : text.substr(0, colon);
  const std::string_view port = port_alone ? text : text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (!port_alone && host.find(':') != std::string_view::npos) {
    return refuse("an IPv6 address needs brackets");
  }
  if (host.empty()) return refuse("it has no host");
  if (host.find_first_of("[] \t\r\n/") != std::string_view::npos) {
    return refuse("its host has a blank, a slash or a bracket");
  }
  const auto number = parse_number<std::uint16_t>(port);
  if (!number) return refuse("its port is not a number up to 65535");
  return HostPort{std::string(host), *number};
}

std::string to_text(const HostPort& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", brackets ? "[" : "", address.host, brackets ? "]" : "",
                     address.port);
}

}  // namespace assay::base
