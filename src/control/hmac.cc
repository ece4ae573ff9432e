// OpenSSL's SHA-256 functions rather than HMAC() or EVP: statically linked, those bring every
// algorithm and provider with them (see report/html.cc).
#define OPENSSL_API_COMPAT 0x10100000L
#include "control/hmac.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <cerrno>
#include <cstddef>

#include "base/check.h"

namespace assay::control {
namespace {

constexpr std::size_t kBlock = 64;  // of SHA-256, in bytes

Sha256 sha256_of(std::string_view first, std::string_view second) {
  Sha256 digest;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, first.data(), first.size());
  SHA256_Update(&context, second.data(), second.size());
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return digest;
}

}  // namespace

Sha256 hmac_sha256(std::string_view key, std::string_view message) {
  Sha256 short_key;
  if (key.size() > kBlock) {
    short_key = sha256_of(key, {});
    key = view(short_key);
  }
  std::array<char, kBlock> inner;
  std::array<char, kBlock> outer;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const char byte = i < key.size() ? key[i] : '\0';
    inner[i] = static_cast<char>(byte ^ 0x36);
    outer[i] = static_cast<char>(byte ^ 0x5c);
  }
  const Sha256 inside = sha256_of({inner.data(), kBlock}, message);
  return sha256_of({outer.data(), kBlock}, view(inside));
}

bool equal_digests(const Sha256& a, std::string_view b) {
  return b.size() == a.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Sha256 random_nonce() {
  Sha256 random;
  std::size_t filled = 0;
  while (filled < random.size()) {
    const ssize_t got = ::getrandom(random.data() + filled, random.size() - filled, 0);
    ASSAY_CHECK(got > 0 || errno == EINTR, "the kernel has random bytes");
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  return random;
}

}  // namespace assay::control
