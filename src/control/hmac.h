// HMAC-SHA256 (RFC 2104) and random bytes, for proofs that a peer knows the job's secret.
#pragma once

#include <array>
#include <string_view>

namespace assay::control {

using Digest = std::array<char, 32>;

Digest hmac_sha256(std::string_view key, std::string_view message);

// Compares in constant time.
bool equal_digests(const Digest& a, std::string_view b);

// From the kernel; used as a secret or a nonce.
Digest random_digest();

inline std::string_view view(const Digest& digest) {
  return {digest.data(), digest.size()};
}

}  // namespace assay::control
