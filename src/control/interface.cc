#include "control/interface.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/text.h"
#include "control/socket.h"

namespace assay::control {
namespace {

struct Entry {
  std::string_view name;
  bool exact = false;
  bool excluded = false;

  [[nodiscard]] bool matches(std::string_view interface) const {
    return exact ? interface == name : interface.starts_with(name);
  }
};

bool take_sign(std::string_view& text, char sign) {
  if (!text.starts_with(sign)) return false;
  text.remove_prefix(1);
  return true;
}

std::vector<Entry> parse_pattern(std::string_view pattern) {
  pattern = base::trim(pattern);
  const bool all_excluded = take_sign(pattern, '^');
  const bool all_exact = take_sign(pattern, '=');
  std::vector<Entry> entries;
  while (!pattern.empty()) {
    std::string_view text = pattern.substr(0, pattern.find(','));
    pattern.remove_prefix(std::min(pattern.size(), text.size() + 1));
    text = base::trim(text);
    Entry entry;
    entry.excluded = take_sign(text, '^') || all_excluded;
    entry.exact = take_sign(text, '=') || all_exact;
    entry.name = text;
    if (!text.empty()) entries.push_back(entry);
  }
  return entries;
}

bool is_excluded(const std::vector<Entry>& entries, std::string_view interface) {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.excluded && entry.matches(interface);
  });
}

std::string names_of(const std::vector<Interface>& interfaces) {
  std::string names;
  for (const Interface& one : interfaces) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", one.name, one.address);
  }
  return names.empty() ? "none" : names;
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

// Bridges of containers and virtual machines, whose addresses are the same on other hosts.
bool is_virtual(std::string_view name) {
  return name.starts_with("docker") || name.starts_with("virbr") || name.starts_with("veth") ||
         name.starts_with("br-") || name.starts_with("cni");
}

}  // namespace

base::Result<std::vector<Interface>> local_interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return base::fail(base::system_error("network interfaces", "cannot list them", errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, ::freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr)) {
      continue;
    }
    std::array<char, NI_MAXHOST> host{};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(one->ifa_addr, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) ==
        0) {
      interfaces.push_back({one->ifa_name, host.data(), (one->ifa_flags & IFF_LOOPBACK) != 0});
    }
  }
  return interfaces;
}

base::Result<std::string> choose_interface(const std::string& variable, std::string_view pattern,
                                           const std::vector<Interface>& interfaces) {
  const std::vector<Entry> entries = parse_pattern(pattern);
  bool names_some = false;
  for (const Entry& entry : entries) {
    if (entry.excluded) continue;
    names_some = true;
    for (const Interface& one : interfaces) {
      if (entry.matches(one.name) && !is_excluded(entries, one.name)) return one.address;
    }
  }
  if (!names_some && !entries.empty()) {
    // Exclusion: the loopback interface is used only if nothing else is left.
    for (const bool loopback : {false, true}) {
      for (const Interface& one : interfaces) {
        if (one.loopback == loopback && !is_excluded(entries, one.name)) return one.address;
      }
    }
  }
  return base::fail(
      base::usage_error(variable, fmt::format("'{}' fits no network interface that is up", pattern),
                        fmt::format("there are: {}", names_of(interfaces))));
}

base::Result<std::string> data_address(const EnvironmentMap& environment,
                                       const std::string& rank_0_host, bool one_node) {
  ASSAY_TRY(const std::vector<Interface> interfaces, local_interfaces());
  for (const char* variable : {"ASSAY_INTERFACE", "NCCL_SOCKET_IFNAME"}) {
    const auto given = environment.find(variable);
    if (given != environment.end() && !base::trim(given->second).empty()) {
      return choose_interface(variable, given->second, interfaces);
    }
  }
  if (one_node) {
    const bool v4 = std::any_of(interfaces.begin(), interfaces.end(),
                                [](const Interface& one) { return one.address == "127.0.0.1"; });
    return v4 || interfaces.empty() ? "127.0.0.1" : "::1";
  }
  ASSAY_TRY(const std::string towards, address_towards(rank_0_host));
  if (!is_loopback(towards)) return towards;
  // Rank 0 is on this host, where its name may even resolve to loopback, as in Debian's hosts file.
  // Ranks on other nodes need an address that they can reach.
  for (const Interface& one : interfaces) {
    if (!one.loopback && !is_virtual(one.name)) return one.address;
  }
  return towards;
}

}  // namespace assay::control
