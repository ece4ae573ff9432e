// The name of this host, for messages.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace assay::control {

inline std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

}  // namespace assay::control
