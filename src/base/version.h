// This program's release, commit and build settings. Filled in by cmake/Version.cmake.
#pragma once

#include <string_view>

namespace assay::base {

struct Version {
  std::string_view release;   // "0.1.0"
  std::string_view commit;    // "1a2b3c4d5e6f", "1a2b3c4d5e6f-dirty", or "unknown" outside git
  std::string_view compiler;  // "GNU 12.2.0"
  std::string_view build_type;
  std::string_view flags;
  std::string_view sanitizers;  // "none" in a release
};

const Version& version();

}  // namespace assay::base
