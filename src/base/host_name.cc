#include "base/host_name.h"

#include <unistd.h>

#include <array>

namespace assay::base {

std::string host_name() {
  std::array<char, 256> name{};  // Linux has at most 64
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace assay::base
