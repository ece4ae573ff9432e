// Which of this machine's addresses other ranks should use to reach this one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/place.h"

namespace assay::control {

struct Interface {
  std::string name;     // "eth0"
  std::string address;  // numeric
  bool loopback = false;

  bool operator==(const Interface&) const = default;
};

// The addresses of all interfaces that are up, in the kernel's order. IPv6 addresses that are valid
// on one link only are left out: others could not use them without knowing the link.
base::Result<std::vector<Interface>> local_interfaces();

// The address of the interface that `pattern` chooses. It is NCCL's syntax: names or beginnings of
// names with commas between, those first in the list preferred; "=" in front for whole names; "^"
// in front of the list for all but these, in front of an entry for all but this one. `variable` is
// where the pattern comes from, for the error line.
base::Result<std::string> choose_interface(const std::string& variable, std::string_view pattern,
                                           const std::vector<Interface>& interfaces);

// The address to announce to other ranks: of the interface that ASSAY_INTERFACE or
// NCCL_SOCKET_IFNAME names, else the loopback address if all ranks are on this node, else the one
// by which rank 0's host is reached, else that of the first real interface.
base::Result<std::string> data_address(const EnvironmentMap& environment,
                                       const std::string& rank_0_host, bool one_node);

}  // namespace assay::control
