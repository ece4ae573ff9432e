// SHA-256 (FIPS 180-4), for what a page's Content-Security-Policy lets run: browsers know no other
// digest that we have.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay::report {

std::array<std::uint8_t, 32> sha256(std::string_view text);

// "sha256-" and the digest in base 64, as a policy names a script or style sheet.
std::string policy_hash(std::string_view text);

}  // namespace assay::report
