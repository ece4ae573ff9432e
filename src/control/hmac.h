// HMAC-SHA256 (RFC 2104) and random bytes, for proofs that a peer knows the job's secret.
#pragma once

#include <array>
#include <string_view>

namespace assay::control {

using Sha256 = std::array<char, 32>;

Sha256 hmac_sha256(std::string_view key, std::string_view message);

// Compares in constant time.
bool equal_digests(const Sha256& a, std::string_view b);

// From the kernel; used as a secret or a nonce.
Sha256 random_nonce();

inline std::string_view view(const Sha256& digest) {
  return {digest.data(), digest.size()};
}

}  // namespace assay::control
