// Selects the address by which other ranks should reach this machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/rank_assignment.h"

namespace assay::control {

struct Interface {
  std::string name;     // "eth0"
  std::string address;  // numeric
  bool loopback = false;

  bool operator==(const Interface&) const = default;
};

// The addresses of all interfaces that are up, in the kernel's order. Link-local IPv6 addresses are
// left out: other ranks could not use them without knowing the link.
base::Result<std::vector<Interface>> local_interfaces();

// The address of the interface selected by `pattern`, in NCCL's syntax: a comma-separated list of
// name prefixes, the first preferred; "=" in front means whole names; "^" in front of the list
// excludes all of them, in front of an entry only that one. `variable` is the source of the
// pattern, for errors.
base::Result<std::string> choose_interface(const std::string& variable, std::string_view pattern,
                                           const std::vector<Interface>& interfaces);

// The address to announce to other ranks: that of the interface named by ASSAY_INTERFACE or
// NCCL_SOCKET_IFNAME; else loopback if all ranks are on this node; else the one on the route to
// rank 0's host; else that of the first interface other than loopback.
base::Result<std::string> data_address(const EnvironmentMap& environment,
                                       const std::string& rank_0_host, bool one_node);

}  // namespace assay::control
